//! What is fuzzed: one function for each kind of input that comes from outside.
//!
//! A function takes any bytes and panics when something does not hold that must hold for every input. libFuzzer calls them
//! through the programs in `fuzz_targets/`; `tests/corpus.rs` calls them with the committed seeds and with mutations of
//! those, on any toolchain.
//!
//! Inputs are texts of lines, so that seeds can be read and written by people. What is not UTF-8 is read as if it were,
//! with `U+FFFD` in place of what is wrong, but for values of headers, which are bytes.

#![forbid(unsafe_code)]

mod config;
mod config_diff;
mod explain;
mod header_matcher;
mod host_pattern;
mod input;
mod labels;
mod last_good;
pub mod mutation;
mod query_matcher;
mod route_table;
mod route_template;
mod time_span;

pub use self::config::config;
pub use self::config_diff::config_diff;
pub use self::explain::explain;
pub use self::header_matcher::header_matcher;
pub use self::host_pattern::host_pattern;
pub use self::labels::labels;
pub use self::last_good::last_good;
pub use self::query_matcher::query_matcher;
pub use self::route_table::route_table;
pub use self::route_template::route_template;
pub use self::time_span::time_span;

/// A function that takes any bytes, and panics when something does not hold.
pub type Target = fn(&[u8]);

/// All of them by name. Their seeds are in `seeds/` under the same name.
pub const TARGETS: [(&str, Target); 11] = [
    ("config", config),
    ("config_diff", config_diff),
    ("explain", explain),
    ("header_matcher", header_matcher),
    ("host_pattern", host_pattern),
    ("labels", labels),
    ("last_good", last_good),
    ("query_matcher", query_matcher),
    ("route_table", route_table),
    ("route_template", route_template),
    ("time_span", time_span),
];
