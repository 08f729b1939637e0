//! `cargo +nightly fuzz run --features libfuzzer serf_catalog fuzz/corpus/serf_catalog fuzz/seeds/serf_catalog`

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| fuzz::serf_catalog(data));
