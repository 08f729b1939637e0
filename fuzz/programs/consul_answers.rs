//! `cargo +nightly fuzz run consul_answers fuzz/corpus/consul_answers fuzz/targets/seeds/consul_answers`

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| fuzz_targets::consul_answers(data));
