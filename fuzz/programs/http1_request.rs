//! `cargo +nightly fuzz run http1_request fuzz/corpus/http1_request fuzz/targets/seeds/http1_request`

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| fuzz_targets::http1_request(data));
