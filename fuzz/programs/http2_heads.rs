//! `cargo +nightly fuzz run http2_heads fuzz/corpus/http2_heads fuzz/targets/seeds/http2_heads`

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| fuzz_targets::http2_heads(data));
