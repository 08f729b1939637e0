//! `cargo +nightly fuzz run --features libfuzzer explain fuzz/corpus/explain fuzz/seeds/explain`

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| fuzz::explain(data));
