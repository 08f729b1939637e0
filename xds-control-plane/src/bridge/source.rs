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

/// The form in JSON that `resource` carries, if its seal is whole.
pub(super) fn carried<R: Sealable>(resource: &R) -> Option<String> {
    let mut resource = resource.clone();
    let metadata = resource.metadata().as_mut()?;
    let mut ours = metadata.filter_metadata.remove(NAMESPACE)?;
    let Kind::StringValue(sealed) = ours.fields.remove(SOURCE)?.kind? else {
        return None;
    };
    let (found, json) = sealed.split_once(BETWEEN)?;
    (found == seal(&resource)).then(|| json.to_owned())
}

/// The hash of all but the metadata.
fn seal<R: Sealable>(resource: &R) -> String {
    let mut bare = resource.clone().without_additions();
    *bare.metadata() = None;
    Version::of([SEAL.as_bytes(), &bare.encode_to_vec()]).to_string()
}
