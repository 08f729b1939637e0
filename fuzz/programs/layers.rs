//! `cargo +nightly fuzz run layers fuzz/corpus/layers fuzz/targets/seeds/layers`

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| fuzz_targets::layers(data));
