//! Fuzz targets: one function for each kind of external input.
//!
//! A function takes any bytes and panics if a property of every input does not hold. libFuzzer
//! calls them through the programs in `fuzz/programs/`. `tests/corpus.rs` calls them with the
//! committed seeds and with mutations of those, on any toolchain.
//!
//! Inputs are lines of text, so that people can read and write the seeds. Invalid UTF-8 is replaced
//! by `U+FFFD`, except in header values, which are bytes.

#![forbid(unsafe_code)]

mod affinity_cookie;
mod config;
mod config_diff;
mod consul_answers;
mod consul_tags;
mod emulator_package;
mod emulator_request;
mod emulator_timeline;
mod emulator_topology;
mod explain;
mod header_matcher;
mod host_pattern;
mod http1;
mod http2_blocks;
mod http2_heads;
mod input;
mod labels;
mod last_good;
mod layers;
pub mod mutation;
mod policies;
mod proxy_header;
mod query_matcher;
mod redis_replies;
mod route_table;
mod route_template;
mod serf_catalog;
mod serf_frames;
mod serf_messages;
mod servicefabric_answers;
mod servicefabric_endpoints;
mod servicefabric_extension;
mod servicefabric_labels;
mod time_span;
mod xds_resources;
mod yaml;

pub use self::affinity_cookie::affinity_cookie;
pub use self::config::config;
pub use self::config_diff::config_diff;
pub use self::consul_answers::consul_answers;
pub use self::consul_tags::consul_tags;
pub use self::emulator_package::emulator_package;
pub use self::emulator_request::emulator_request;
pub use self::emulator_timeline::emulator_timeline;
pub use self::emulator_topology::emulator_topology;
pub use self::explain::explain;
pub use self::header_matcher::header_matcher;
pub use self::host_pattern::host_pattern;
pub use self::http1::{http1_chunked, http1_request, http1_response};
pub use self::http2_blocks::http2_blocks;
pub use self::http2_heads::http2_heads;
pub use self::labels::labels;
pub use self::last_good::last_good;
pub use self::layers::layers;
pub use self::policies::{authorization, jwt, origin};
pub use self::proxy_header::proxy_header;
pub use self::query_matcher::query_matcher;
pub use self::redis_replies::redis_replies;
pub use self::route_table::route_table;
pub use self::route_template::route_template;
pub use self::serf_catalog::serf_catalog;
pub use self::serf_frames::serf_frames;
pub use self::serf_messages::serf_messages;
pub use self::servicefabric_answers::servicefabric_answers;
pub use self::servicefabric_endpoints::servicefabric_endpoints;
pub use self::servicefabric_extension::servicefabric_extension;
pub use self::servicefabric_labels::servicefabric_labels;
pub use self::time_span::time_span;
pub use self::xds_resources::xds_resources;
pub use self::yaml::yaml;

/// A function that takes any bytes and panics if a property does not hold.
pub type Target = fn(&[u8]);

/// All targets by name. Their seeds are in `seeds/` under the same name.
pub const TARGETS: [(&str, Target); 38] = [
    ("affinity_cookie", affinity_cookie),
    ("authorization", authorization),
    ("config", config),
    ("config_diff", config_diff),
    ("consul_answers", consul_answers),
    ("consul_tags", consul_tags),
    ("emulator_package", emulator_package),
    ("emulator_request", emulator_request),
    ("emulator_timeline", emulator_timeline),
    ("emulator_topology", emulator_topology),
    ("explain", explain),
    ("header_matcher", header_matcher),
    ("host_pattern", host_pattern),
    ("http1_chunked", http1_chunked),
    ("http1_request", http1_request),
    ("http1_response", http1_response),
    ("http2_blocks", http2_blocks),
    ("http2_heads", http2_heads),
    ("jwt", jwt),
    ("labels", labels),
    ("last_good", last_good),
    ("layers", layers),
    ("origin", origin),
    ("proxy_header", proxy_header),
    ("query_matcher", query_matcher),
    ("redis_replies", redis_replies),
    ("route_table", route_table),
    ("route_template", route_template),
    ("serf_catalog", serf_catalog),
    ("serf_frames", serf_frames),
    ("serf_messages", serf_messages),
    ("servicefabric_answers", servicefabric_answers),
    ("servicefabric_endpoints", servicefabric_endpoints),
    ("servicefabric_extension", servicefabric_extension),
    ("servicefabric_labels", servicefabric_labels),
    ("time_span", time_span),
    ("xds_resources", xds_resources),
    ("yaml", yaml),
];
