//! `cargo +nightly fuzz run time_span fuzz/corpus/time_span fuzz/targets/seeds/time_span`

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| fuzz_targets::time_span(data));
