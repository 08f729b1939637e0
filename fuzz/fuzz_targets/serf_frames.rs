//! `cargo +nightly fuzz run --features libfuzzer serf_frames fuzz/corpus/serf_frames fuzz/seeds/serf_frames`

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| fuzz::serf_frames(data));
