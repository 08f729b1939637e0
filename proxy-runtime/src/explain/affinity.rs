//! Session affinity of an explained request.

use std::net::IpAddr;
use std::sync::Arc;

use http::StatusCode;
use proxy_model::DestinationId;
use proxy_model::compiled::{Cluster, ClusterIndex, Destination, DestinationIndex, WeightedTarget};
use serde::Serialize;

use super::ExplainContext;
#[cfg(feature = "affinity-keys")]
use crate::affinity::KeyRing;
use crate::affinity::{Affinities, ClusterAffinity, KeyFailure, RequestKey};
use crate::contain::contained_call;
use crate::head::HttpHead;

/// The session affinity of a request.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct ExplainedAffinity {
    /// The affinity policy.
    pub policy: String,
    /// The affinity failure policy.
    pub failure_policy: String,
    /// The name of the cookie or header.
    pub key_name: String,
    /// The use of the request's key in one word.
    pub key: KeyUse,
    /// The destination that the key names, available or not.
    pub destination: Option<DestinationId>,
}

/// The use of an affinity key in one word.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum KeyUse {
    /// The request has no key: the client gets one.
    NotSet,
    /// The request goes to the destination that its key names.
    Kept,
    /// The key names no destination that is available: the failure policy decides.
    Unavailable,
    /// The key makes no sense: the failure policy decides.
    Unreadable,
    /// The request has a key that only a running proxy can read: it is encrypted, its policy is of
    /// the program, or it may name an address of a destination whose name is resolved.
    Unknown,
}

/// The session affinity of a request, the destination that keeps it, and the status that rejects it.
pub(super) struct Affinity {
    pub(super) explained: ExplainedAffinity,
    pub(super) kept: Option<DestinationIndex>,
    pub(super) rejected: Option<(KeyFailure, StatusCode)>,
}

/// The session affinity of a request to a cluster, if the cluster has any.
pub(super) fn affinity(
    place: &ExplainContext<'_>,
    index: ClusterIndex,
    head: &HttpHead<'_>,
) -> Option<Affinity> {
    let cluster = place.snapshot.cluster_at(index);
    let config = cluster.affinity()?;
    let mut explained = ExplainedAffinity {
        policy: config.key().name().to_owned(),
        failure_policy: config.failure().name().to_owned(),
        key_name: config.key_name().to_owned(),
        key: KeyUse::Unknown,
        destination: None,
    };
    let affinity = of_cluster(place, index);
    if affinity.is_none() && (place.live.is_some() || config.key().is_sealed()) {
        // The proxy was built without it.
        return None;
    }
    let key = affinity
        .as_ref()
        .and_then(|affinity| key(place, affinity, cluster, head));
    let (Some(affinity), Some(key)) = (affinity, key) else {
        return Some(Affinity {
            explained,
            kept: None,
            rejected: None,
        });
    };
    let keeps = |destination: &DestinationIndex| {
        let live = place.live.map(|generation| generation.cluster(index));
        live.is_none_or(|state| state.keeps(cluster, *destination))
    };
    let (named, failure) = match key {
        RequestKey::NotSet => (None, None),
        RequestKey::Destination(destination) => (Some(destination), None),
        RequestKey::NotFound => (None, Some(KeyFailure::Unavailable)),
        RequestKey::Unreadable => (None, Some(KeyFailure::Unreadable)),
    };
    let kept = named.filter(keeps);
    let failure = match named {
        Some(_) if kept.is_none() => Some(KeyFailure::Unavailable),
        _ => failure,
    };
    let destination = named.and_then(|named| cluster.destinations().get(named.0 as usize));
    explained.destination = destination.map(|named| named.id().clone());
    explained.key = match failure {
        None if kept.is_some() => KeyUse::Kept,
        None => KeyUse::NotSet,
        Some(KeyFailure::Unavailable) => KeyUse::Unavailable,
        Some(KeyFailure::Unreadable) => KeyUse::Unreadable,
    };
    let rejected = failure.and_then(|failure| Some((failure, affinity.reject(failure, cluster)?)));
    Some(Affinity {
        explained,
        kept,
        rejected,
    })
}

/// Returns the key of a request. `None` if only the running proxy can decrypt it.
fn key(
    place: &ExplainContext<'_>,
    affinity: &ClusterAffinity,
    cluster: &Cluster,
    head: &HttpHead<'_>,
) -> Option<RequestKey> {
    if place.live.is_some() {
        // A policy of the program may panic, which ends no more than the explanation of the key.
        return contained_call(|| affinity.read(cluster, head)).ok();
    }
    if cluster.affinity()?.key().is_sealed() {
        return affinity.read_unopened(cluster, head);
    }
    let key = affinity.read(cluster, head);
    // The running proxy may have the addresses of a name as destinations.
    let is_name = |destination: &Destination| {
        place.resolves_destinations && destination.address().host().parse::<IpAddr>().is_err()
    };
    let destinations = cluster.destinations();
    let is_open = match key {
        RequestKey::Destination(named) => destinations.get(named.0 as usize).is_some_and(is_name),
        RequestKey::NotFound => destinations.iter().any(is_name),
        RequestKey::NotSet | RequestKey::Unreadable => false,
    };
    (!is_open).then_some(key)
}

/// The cluster that the key of a request to a weighted route is of.
pub(super) fn kept_cluster(
    place: &ExplainContext<'_>,
    targets: &[WeightedTarget],
    head: &HttpHead<'_>,
) -> Option<ClusterIndex> {
    let is_kept = |index: &ClusterIndex| {
        let cluster = place.snapshot.cluster_at(*index);
        let is_named = |affinity: Arc<ClusterAffinity>| {
            contained_call(|| affinity.is_named(cluster, head)).unwrap_or_default()
        };
        of_cluster(place, *index).is_some_and(is_named)
    };
    targets
        .iter()
        .filter_map(WeightedTarget::cluster)
        .find(is_kept)
}

/// The session affinity of a cluster: that of the running proxy, or without one that of the
/// configuration alone, which has no keys and no policies of the program.
fn of_cluster(place: &ExplainContext<'_>, index: ClusterIndex) -> Option<Arc<ClusterAffinity>> {
    if let Some(generation) = place.live {
        return generation.cluster(index).affinity().cloned();
    }
    let affinity = ClusterAffinity::of(
        place.snapshot.cluster_at(index),
        &Affinities::default(),
        #[cfg(feature = "affinity-keys")]
        &KeyRing::default(),
    );
    affinity.ok().flatten().map(Arc::new)
}
