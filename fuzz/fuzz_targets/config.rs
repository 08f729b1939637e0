//! `cargo +nightly fuzz run --features libfuzzer config fuzz/corpus/config fuzz/seeds/config`

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| fuzz::config(data));
