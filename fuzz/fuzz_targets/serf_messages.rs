//! `cargo +nightly fuzz run --features libfuzzer serf_messages fuzz/corpus/serf_messages fuzz/seeds/serf_messages`

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| fuzz::serf_messages(data));
