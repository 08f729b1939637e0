//! `cargo +nightly fuzz run host_pattern fuzz/corpus/host_pattern fuzz/targets/seeds/host_pattern`

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| fuzz_targets::host_pattern(data));
