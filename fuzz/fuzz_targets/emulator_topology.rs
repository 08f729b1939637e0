//! `cargo +nightly fuzz run --features libfuzzer emulator_topology fuzz/corpus/emulator_topology fuzz/seeds/emulator_topology`

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| fuzz::emulator_topology(data));
