//! `cargo +nightly fuzz run config_diff fuzz/corpus/config_diff fuzz/targets/seeds/config_diff`

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| fuzz_targets::config_diff(data));
