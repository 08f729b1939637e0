//! `cargo +nightly fuzz run --features libfuzzer servicefabric_answers fuzz/corpus/servicefabric_answers fuzz/seeds/servicefabric_answers`

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| fuzz::servicefabric_answers(data));
