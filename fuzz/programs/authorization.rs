//! `cargo +nightly fuzz run authorization fuzz/corpus/authorization fuzz/targets/seeds/authorization`

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| fuzz_targets::authorization(data));
