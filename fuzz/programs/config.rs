//! `cargo +nightly fuzz run config fuzz/corpus/config fuzz/targets/seeds/config`

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| fuzz_targets::config(data));
