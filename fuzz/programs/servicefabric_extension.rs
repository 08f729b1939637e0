//! ```sh
//! cargo +nightly fuzz run servicefabric_extension \
//!     fuzz/corpus/servicefabric_extension fuzz/targets/seeds/servicefabric_extension
//! ```

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| fuzz_targets::servicefabric_extension(data));
