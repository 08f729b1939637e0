//! `cargo +nightly fuzz run route_table fuzz/corpus/route_table fuzz/targets/seeds/route_table`

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| fuzz_targets::route_table(data));
