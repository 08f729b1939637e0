//! ```sh
//! cargo +nightly fuzz run servicefabric_endpoints \
//!     fuzz/corpus/servicefabric_endpoints fuzz/targets/seeds/servicefabric_endpoints
//! ```

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| fuzz_targets::servicefabric_endpoints(data));
