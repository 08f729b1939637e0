//! `cargo +nightly fuzz run --features libfuzzer http1_response fuzz/corpus/http1_response fuzz/seeds/http1_response`

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| fuzz::http1_response(data));
