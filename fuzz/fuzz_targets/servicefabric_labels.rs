//! `cargo +nightly fuzz run --features libfuzzer servicefabric_labels fuzz/corpus/servicefabric_labels fuzz/seeds/servicefabric_labels`

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| fuzz::servicefabric_labels(data));
