//! `cargo +nightly fuzz run --features libfuzzer http1_request fuzz/corpus/http1_request fuzz/seeds/http1_request`

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| fuzz::http1_request(data));
