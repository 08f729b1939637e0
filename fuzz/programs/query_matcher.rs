//! `cargo +nightly fuzz run query_matcher fuzz/corpus/query_matcher fuzz/targets/seeds/query_matcher`

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| fuzz_targets::query_matcher(data));
