//! `cargo +nightly fuzz run --features libfuzzer route_template fuzz/corpus/route_template fuzz/seeds/route_template`

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| fuzz::route_template(data));
