//! `cargo +nightly fuzz run --features libfuzzer header_matcher fuzz/corpus/header_matcher fuzz/seeds/header_matcher`

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| fuzz::header_matcher(data));
