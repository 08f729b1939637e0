//! `cargo +nightly fuzz run --features libfuzzer host_pattern fuzz/corpus/host_pattern fuzz/seeds/host_pattern`

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| fuzz::host_pattern(data));
