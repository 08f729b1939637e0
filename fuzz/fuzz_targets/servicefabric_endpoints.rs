//! `cargo +nightly fuzz run --features libfuzzer servicefabric_endpoints fuzz/corpus/servicefabric_endpoints fuzz/seeds/servicefabric_endpoints`

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| fuzz::servicefabric_endpoints(data));
