//! ```sh
//! cargo +nightly fuzz run servicefabric_labels \
//!     fuzz/corpus/servicefabric_labels fuzz/targets/seeds/servicefabric_labels
//! ```

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| fuzz_targets::servicefabric_labels(data));
