//! `cargo +nightly fuzz run redis_replies fuzz/corpus/redis_replies fuzz/targets/seeds/redis_replies`

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| fuzz_targets::redis_replies(data));
