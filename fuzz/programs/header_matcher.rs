//! `cargo +nightly fuzz run header_matcher fuzz/corpus/header_matcher fuzz/targets/seeds/header_matcher`

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| fuzz_targets::header_matcher(data));
