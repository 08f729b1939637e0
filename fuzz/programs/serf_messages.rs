//! `cargo +nightly fuzz run serf_messages fuzz/corpus/serf_messages fuzz/targets/seeds/serf_messages`

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| fuzz_targets::serf_messages(data));
