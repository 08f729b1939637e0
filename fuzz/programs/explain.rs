//! `cargo +nightly fuzz run explain fuzz/corpus/explain fuzz/targets/seeds/explain`

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| fuzz_targets::explain(data));
