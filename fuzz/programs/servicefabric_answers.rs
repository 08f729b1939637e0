//! ```sh
//! cargo +nightly fuzz run servicefabric_answers \
//!     fuzz/corpus/servicefabric_answers fuzz/targets/seeds/servicefabric_answers
//! ```

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| fuzz_targets::servicefabric_answers(data));
