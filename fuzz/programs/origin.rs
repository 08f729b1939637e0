//! `cargo +nightly fuzz run origin fuzz/corpus/origin fuzz/targets/seeds/origin`

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| fuzz_targets::origin(data));
