//! `cargo +nightly fuzz run yaml fuzz/corpus/yaml fuzz/targets/seeds/yaml`

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| fuzz_targets::yaml(data));
