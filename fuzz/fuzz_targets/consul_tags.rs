//! `cargo +nightly fuzz run --features libfuzzer consul_tags fuzz/corpus/consul_tags fuzz/seeds/consul_tags`

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| fuzz::consul_tags(data));
