//! The original of a resource, kept in its metadata.
//!
//! A control plane that makes resources of another model can let them carry that model's own form, so that a client
//! of the same model loses nothing. Envoy ignores it. A seal, the hash of Envoy's fields, keeps the two together:
//! if a resource was changed on its way, the carried form is [broken](Carried::Broken) and Envoy's fields are what
//! counts.

use std::collections::HashMap;

use prost::Message;

use crate::Version;
use crate::pb::envoy::config::cluster::v3::Cluster;
use crate::pb::envoy::config::core::v3::Metadata;
use crate::pb::envoy::config::endpoint::v3::LbEndpoint;
use crate::pb::envoy::config::route::v3::Route;
use crate::pb::google::protobuf::value::Kind;
use crate::pb::google::protobuf::{Struct, Value};

/// The namespace in the metadata.
const NAMESPACE: &str = "proxy_model";
/// The key of the form in JSON.
const SOURCE: &str = "source";
/// The first part of a seal's input, so that no seal equals the version of a resource.
const SEAL: &str = "seal";
/// The separator of seal and JSON: no JSON begins with it.
const BETWEEN: char = ' ';

/// A resource that can carry its original: [`Route`], [`LbEndpoint`] and [`Cluster`].
pub trait Sealable: Message + Clone + Default {
    /// The metadata of the resource.
    fn metadata(&mut self) -> &mut Option<Metadata>;

    /// The resource without the fields that the server of the resource fills in.
    #[must_use]
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
        // The source of endpoints depends on how they are asked for; those in the cluster have seals of their own.
        self.eds_cluster_config = None;
        self.load_assignment = None;
        // The choice of the socket is in the endpoints' metadata, and so in their seals.
        self.transport_socket_matches
            .iter_mut()
            .for_each(|socket| socket.r#match = None);
        self
    }
}

/// Puts the original in JSON into the metadata of `resource`, sealed. Envoy's fields must be complete before.
pub fn carry<R: Sealable>(resource: &mut R, json: &str) {
    let sealed = format!("{}{BETWEEN}{json}", seal(resource));
    let value = Value {
        kind: Some(Kind::StringValue(sealed)),
    };
    let fields = HashMap::from([(SOURCE.to_owned(), value)]);
    (resource.metadata().get_or_insert_default().filter_metadata)
        .insert(NAMESPACE.to_owned(), Struct { fields });
}

/// The original that a resource carries.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Carried {
    /// None.
    None,
    /// The original in JSON, under a seal that fits.
    Whole(String),
    /// An original that does not belong to Envoy's fields, or cannot be read.
    Broken,
}

/// Returns the original that `resource` carries.
pub fn carried<R: Sealable>(resource: &R) -> Carried {
    let mut resource = resource.clone();
    let ours = (resource.metadata().as_mut())
        .and_then(|metadata| metadata.filter_metadata.remove(NAMESPACE));
    let Some(mut ours) = ours else {
        return Carried::None;
    };
    let kind = ours.fields.remove(SOURCE).and_then(|value| value.kind);
    let Some(Kind::StringValue(sealed)) = kind else {
        return Carried::Broken;
    };
    match sealed.split_once(BETWEEN) {
        Some((found, json)) if found == seal(&resource) => Carried::Whole(json.to_owned()),
        _ => Carried::Broken,
    }
}

/// The hash of all but the metadata.
fn seal<R: Sealable>(resource: &R) -> String {
    let mut bare = resource.clone().without_additions();
    *bare.metadata() = None;
    Version::of([SEAL.as_bytes(), &bare.encode_to_vec()]).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_original_is_read_as_it_was_written() {
        let mut route = Route {
            name: "r".to_owned(),
            ..Route::default()
        };
        assert_eq!(carried(&route), Carried::None);
        carry(&mut route, "{\"a\": 1}");
        assert_eq!(carried(&route), Carried::Whole("{\"a\": 1}".to_owned()));
        route.name.push('x');
        assert_eq!(carried(&route), Carried::Broken);
    }

    #[test]
    fn fields_that_servers_fill_in_do_not_break_the_seal() {
        let mut cluster = Cluster::default();
        carry(&mut cluster, "{}");
        cluster.eds_cluster_config = Some(Default::default());
        assert_eq!(carried(&cluster), Carried::Whole("{}".to_owned()));
        cluster.name.push('x');
        assert_eq!(carried(&cluster), Carried::Broken);
    }
}
