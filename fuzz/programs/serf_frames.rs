//! `cargo +nightly fuzz run serf_frames fuzz/corpus/serf_frames fuzz/targets/seeds/serf_frames`

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| fuzz_targets::serf_frames(data));
