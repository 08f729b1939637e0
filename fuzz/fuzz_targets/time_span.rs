//! `cargo +nightly fuzz run --features libfuzzer time_span fuzz/corpus/time_span fuzz/seeds/time_span`

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| fuzz::time_span(data));
