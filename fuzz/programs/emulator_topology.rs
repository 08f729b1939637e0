//! `cargo +nightly fuzz run emulator_topology fuzz/corpus/emulator_topology fuzz/targets/seeds/emulator_topology`

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| fuzz_targets::emulator_topology(data));
