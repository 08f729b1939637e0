//! `cargo +nightly fuzz run --features libfuzzer route_table fuzz/corpus/route_table fuzz/seeds/route_table`

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| fuzz::route_table(data));
