//! `cargo +nightly fuzz run labels fuzz/corpus/labels fuzz/targets/seeds/labels`

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| fuzz_targets::labels(data));
