//! `cargo +nightly fuzz run emulator_timeline fuzz/corpus/emulator_timeline fuzz/targets/seeds/emulator_timeline`

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| fuzz_targets::emulator_timeline(data));
