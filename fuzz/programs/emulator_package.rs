//! `cargo +nightly fuzz run emulator_package fuzz/corpus/emulator_package fuzz/targets/seeds/emulator_package`

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| fuzz_targets::emulator_package(data));
