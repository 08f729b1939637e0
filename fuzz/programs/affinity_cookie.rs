//! `cargo +nightly fuzz run affinity_cookie fuzz/corpus/affinity_cookie fuzz/targets/seeds/affinity_cookie`

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| fuzz_targets::affinity_cookie(data));
