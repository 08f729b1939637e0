//! `cargo +nightly fuzz run --features libfuzzer labels fuzz/corpus/labels fuzz/seeds/labels`

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| fuzz::labels(data));
