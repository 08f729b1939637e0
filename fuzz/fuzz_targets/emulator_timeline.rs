//! `cargo +nightly fuzz run --features libfuzzer emulator_timeline fuzz/corpus/emulator_timeline fuzz/seeds/emulator_timeline`

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| fuzz::emulator_timeline(data));
