#![doc = include_str!("../README.md")]

pub mod carried;
mod resource_type;
mod version;

#[allow(
    clippy::all,
    missing_docs,
    unnameable_types,
    unreachable_pub,
    unused_qualifications,
    reason = "generated"
)]
#[rustfmt::skip]
pub mod pb;

pub use self::resource_type::ResourceType;
pub use self::version::{ForeignVersion, Version};

/// A feature that clients name in [`Node::client_features`](pb::envoy::config::core::v3::Node::client_features): of a
/// response they reject only the resources that their NACK names, and accept the others.
pub const ACCEPTS_IN_PART: &str = "xds-control-plane.accepts-in-part";
