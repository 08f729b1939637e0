//! `cargo +nightly fuzz run --features libfuzzer config_diff fuzz/corpus/config_diff fuzz/seeds/config_diff`

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| fuzz::config_diff(data));
