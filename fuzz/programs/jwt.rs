//! `cargo +nightly fuzz run jwt fuzz/corpus/jwt fuzz/targets/seeds/jwt`

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| fuzz_targets::jwt(data));
