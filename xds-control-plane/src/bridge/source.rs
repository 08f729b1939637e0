//! The model's own form beside Envoy's: what a resource was made of, kept in its metadata.
//!
//! Envoy looks at its own fields only, and a proxy of this family at these. A seal, the hash of Envoy's fields, keeps the
//! two together: where somebody changed a resource on its way, the model's form is not believed any more and Envoy's fields
//! are what counts.

use std::collections::HashMap;

use envoy_types::pb::envoy::config::cluster::v3::Cluster;
use envoy_types::pb::envoy::config::core::v3::Metadata;
use envoy_types::pb::envoy::config::endpoint::v3::LbEndpoint;
use envoy_types::pb::envoy::config::route::v3::Route;
use envoy_types::pb::google::protobuf::value::Kind;
use envoy_types::pb::google::protobuf::{Struct, Value};
use prost::Message;
use serde::Serialize;

use crate::snapshot::Version;

/// Under which the model keeps what it knows.
const NAMESPACE: &str = "proxy_model";
/// The key of the form in JSON.
const SOURCE: &str = "source";
/// What seals begin with, so that they are no versions of resources.
const SEAL: &str = "seal";
/// Between the two, where they are one text: no JSON begins with it.
const BETWEEN: char = ' ';

/// A resource that can have metadata.
pub(super) trait Sealable: Message + Clone + Default {
    fn metadata(&mut self) -> &mut Option<Metadata>;

    /// Without what whoever serves the resource fills in.
    fn without_additions(self) -> Self {
        self
    }
}

impl Sealable for Route {
    fn metadata(&mut self) -> &mut Option<Metadata> {
        &mut self.metadata
    }
}

impl Sealable for LbEndpoint {
    fn metadata(&mut self) -> &mut Option<Metadata> {
        &mut self.metadata
    }
}

impl Sealable for Cluster {
    fn metadata(&mut self) -> &mut Option<Metadata> {
        &mut self.metadata
    }

    fn without_additions(mut self) -> Self {
        // Where endpoints come from depends on how they are asked for; those in the cluster have seals of their own.
        self.eds_cluster_config = None;
        self.load_assignment = None;
        // Which endpoints get which socket is in their metadata, and so in their seals.
        self.transport_socket_matches
            .iter_mut()
            .for_each(|socket| socket.r#match = None);
        self
    }
}

/// Puts the form in JSON of `value` into the metadata of `resource`, sealed.
pub(super) fn carry<R: Sealable, T: Serialize>(resource: &mut R, value: &T) {
    let Ok(json) = serde_json::to_string(value) else {
        return;
    };
    let sealed = format!("{}{BETWEEN}{json}", seal(resource));
    let value = Value {
        kind: Some(Kind::StringValue(sealed)),
    };
    let fields = HashMap::from([(SOURCE.to_owned(), value)]);
    (resource.metadata().get_or_insert_default().filter_metadata)
        .insert(NAMESPACE.to_owned(), Struct { fields });
}

/// What a resource carries.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Source {
    /// Nothing of ours.
    None,
    /// The form in JSON, under a seal that is whole.
    Whole(String),
    /// Something of ours that does not belong to its fields.
    Broken,
}

/// What `resource` carries of the model's own form.
pub(super) fn carried<R: Sealable>(resource: &R) -> Source {
    let mut resource = resource.clone();
    let ours = (resource.metadata().as_mut())
        .and_then(|metadata| metadata.filter_metadata.remove(NAMESPACE));
    let Some(mut ours) = ours else {
        return Source::None;
    };
    let kind = ours.fields.remove(SOURCE).and_then(|value| value.kind);
    let Some(Kind::StringValue(sealed)) = kind else {
        return Source::Broken;
    };
    match sealed.split_once(BETWEEN) {
        Some((found, json)) if found == seal(&resource) => Source::Whole(json.to_owned()),
        _ => Source::Broken,
    }
}

/// The hash of all but the metadata.
fn seal<R: Sealable>(resource: &R) -> String {
    let mut bare = resource.clone().without_additions();
    *bare.metadata() = None;
    Version::of([SEAL.as_bytes(), &bare.encode_to_vec()]).to_string()
}
