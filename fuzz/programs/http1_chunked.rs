//! `cargo +nightly fuzz run http1_chunked fuzz/corpus/http1_chunked fuzz/targets/seeds/http1_chunked`

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| fuzz_targets::http1_chunked(data));
