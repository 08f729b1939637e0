//! `cargo +nightly fuzz run serf_catalog fuzz/corpus/serf_catalog fuzz/targets/seeds/serf_catalog`

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| fuzz_targets::serf_catalog(data));
