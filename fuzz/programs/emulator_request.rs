//! `cargo +nightly fuzz run emulator_request fuzz/corpus/emulator_request fuzz/targets/seeds/emulator_request`

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| fuzz_targets::emulator_request(data));
