//! `cargo +nightly fuzz run --features libfuzzer http1_chunked fuzz/corpus/http1_chunked fuzz/seeds/http1_chunked`

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| fuzz::http1_chunked(data));
