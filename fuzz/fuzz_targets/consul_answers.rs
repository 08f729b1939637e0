//! `cargo +nightly fuzz run --features libfuzzer consul_answers fuzz/corpus/consul_answers fuzz/seeds/consul_answers`

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| fuzz::consul_answers(data));
