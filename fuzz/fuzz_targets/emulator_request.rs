//! `cargo +nightly fuzz run --features libfuzzer emulator_request fuzz/corpus/emulator_request fuzz/seeds/emulator_request`

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| fuzz::emulator_request(data));
