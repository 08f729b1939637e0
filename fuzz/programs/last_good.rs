//! `cargo +nightly fuzz run last_good fuzz/corpus/last_good fuzz/targets/seeds/last_good`

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| fuzz_targets::last_good(data));
