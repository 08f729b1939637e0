//! `cargo +nightly fuzz run http1_response fuzz/corpus/http1_response fuzz/targets/seeds/http1_response`

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| fuzz_targets::http1_response(data));
