//! Session affinity of an explained request.

use std::sync::Arc;

use http::StatusCode;
use proxy_model::DestinationId;
use proxy_model::compiled::{Cluster, ClusterIndex, DestinationIndex, WeightedTarget};
use serde::Serialize;

use super::ExplainContext;
#[cfg(feature = "affinity-keys")]
use crate::affinity::KeyRing;
use crate::affinity::{Affinities, ClusterAffinity, KeyFailure, RequestKey};
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
    /// The key is encrypted, and only a running proxy can read it.
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
    let (mut kept, mut rejected) = (None, None);
    if let Some(affinity) = of_cluster(place, index) {
        let keeps = |destination| {
            let live = place.live.map(|generation| generation.cluster(index));
            live.is_none_or(|state| state.keeps(cluster, destination))
        };
        let key = affinity.read(cluster, head);
        let failure = match key {
            RequestKey::NotSet => None,
            RequestKey::Destination(destination) => {
                let named = cluster.destinations().get(destination.0 as usize);
                explained.destination = named.map(|named| named.id().clone());
                kept = keeps(destination).then_some(destination);
                kept.is_none().then_some(KeyFailure::Unavailable)
            }
            RequestKey::NotFound => Some(KeyFailure::Unavailable),
            RequestKey::Unreadable => Some(KeyFailure::Unreadable),
        };
        explained.key = match failure {
            None if kept.is_some() => KeyUse::Kept,
            None => KeyUse::NotSet,
            Some(KeyFailure::Unavailable) => KeyUse::Unavailable,
            Some(KeyFailure::Unreadable) => KeyUse::Unreadable,
        };
        rejected = failure.and_then(|failure| Some((failure, affinity.reject(failure, cluster)?)));
    }
    Some(Affinity {
        explained,
        kept,
        rejected,
    })
}

/// The cluster that the key of a request to a weighted route is of.
pub(super) fn kept_cluster(
    place: &ExplainContext<'_>,
    targets: &[WeightedTarget],
    head: &HttpHead<'_>,
) -> Option<ClusterIndex> {
    let is_kept = |index: &ClusterIndex| {
        let cluster = place.snapshot.cluster_at(*index);
        of_cluster(place, *index).is_some_and(|affinity| affinity.is_named(cluster, head))
    };
    targets
        .iter()
        .filter_map(WeightedTarget::cluster)
        .find(is_kept)
}

/// The session affinity of a cluster: that of the running proxy, or without one that of the
/// configuration alone, which reads no encrypted keys and knows no policies of the program.
fn of_cluster(place: &ExplainContext<'_>, index: ClusterIndex) -> Option<Arc<ClusterAffinity>> {
    if let Some(generation) = place.live {
        return generation.cluster(index).affinity().cloned();
    }
    let cluster: &Cluster = place.snapshot.cluster_at(index);
    if cluster.affinity()?.key().is_sealed() {
        return None;
    }
    let registered = Affinities::default();
    let affinity = ClusterAffinity::of(
        cluster,
        &registered,
        #[cfg(feature = "affinity-keys")]
        &KeyRing::default(),
    );
    affinity.ok().flatten().map(Arc::new)
}
