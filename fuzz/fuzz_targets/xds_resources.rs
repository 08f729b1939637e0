//! `cargo +nightly fuzz run --features libfuzzer xds_resources fuzz/corpus/xds_resources fuzz/seeds/xds_resources`

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| fuzz::xds_resources(data));
