//! `cargo +nightly fuzz run xds_resources fuzz/corpus/xds_resources fuzz/targets/seeds/xds_resources`

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| fuzz_targets::xds_resources(data));
