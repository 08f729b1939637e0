//! `cargo +nightly fuzz run --features libfuzzer query_matcher fuzz/corpus/query_matcher fuzz/seeds/query_matcher`

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| fuzz::query_matcher(data));
