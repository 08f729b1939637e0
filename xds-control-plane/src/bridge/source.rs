//! The model's own form beside Envoy's: what a resource was made of, kept in its metadata.
//!
//! Envoy looks at its own fields only. A reader believes the metadata when writing them again gives the same resource, so
//! they can never say anything else than what Envoy does.

use std::collections::HashMap;

use envoy_types::pb::envoy::config::core::v3::Metadata;
use envoy_types::pb::google::protobuf::value::Kind;
use envoy_types::pb::google::protobuf::{Struct, Value};
use serde::Serialize;

/// Under which the model keeps what it knows.
const NAMESPACE: &str = "proxy_model";
/// The key of the form in JSON.
const KEY: &str = "source";

/// Metadata with the form in JSON of `value`.
pub(super) fn carry<T: Serialize>(value: &T) -> Option<Metadata> {
    let json = serde_json::to_string(value).ok()?;
    let text = Value {
        kind: Some(Kind::StringValue(json)),
    };
    let fields = HashMap::from([(KEY.to_owned(), text)]);
    Some(Metadata {
        filter_metadata: HashMap::from([(NAMESPACE.to_owned(), Struct { fields })]),
        ..Metadata::default()
    })
}

/// The form in JSON that `metadata` have.
#[cfg_attr(not(feature = "client"), expect(dead_code, reason = "for the reader"))]
pub(super) fn carried(metadata: Option<&Metadata>) -> Option<&str> {
    let value = metadata?.filter_metadata.get(NAMESPACE)?.fields.get(KEY)?;
    match value.kind.as_ref()? {
        Kind::StringValue(json) => Some(json),
        _ => None,
    }
}
