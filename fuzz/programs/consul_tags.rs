//! `cargo +nightly fuzz run consul_tags fuzz/corpus/consul_tags fuzz/targets/seeds/consul_tags`

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| fuzz_targets::consul_tags(data));
