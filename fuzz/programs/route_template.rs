//! `cargo +nightly fuzz run route_template fuzz/corpus/route_template fuzz/targets/seeds/route_template`

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| fuzz_targets::route_template(data));
