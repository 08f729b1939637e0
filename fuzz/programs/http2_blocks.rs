//! `cargo +nightly fuzz run http2_blocks fuzz/corpus/http2_blocks fuzz/targets/seeds/http2_blocks`

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| fuzz_targets::http2_blocks(data));
