//! `cargo +nightly fuzz run --features libfuzzer servicefabric_extension fuzz/corpus/servicefabric_extension fuzz/seeds/servicefabric_extension`

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| fuzz::servicefabric_extension(data));
