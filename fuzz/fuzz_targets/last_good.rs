//! `cargo +nightly fuzz run --features libfuzzer last_good fuzz/corpus/last_good fuzz/seeds/last_good`

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| fuzz::last_good(data));
