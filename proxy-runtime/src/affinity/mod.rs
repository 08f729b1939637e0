//! Session affinity: the requests of one client stay at one destination.
//!
//! A response gives the client a key, in a cookie or a header, which names the destination. A later
//! request with the key goes to this destination for as long as it is available, whatever the load
//! balancing policy and the weights say. The built-in policies are those of YARP: `HashCookie` (the
//! default), `ArrCookie`, `Cookie` and `CustomHeader`. A program adds a policy by implementing
//! [`AffinityPolicy`] and registering it with
//! [`ProxyBuilder::affinity_policy`](crate::build::ProxyBuilder::affinity_policy).
//!
//! # The key
//!
//! | policy | carries | value |
//! |---|---|---|
//! | `HashCookie` | cookie | XXH64 of the destination's id in upper case (UTF-16, little endian), as lower-case hex |
//! | `ArrCookie` | cookie | SHA-256 of the destination's id in lower case (UTF-16, little endian), as upper-case hex |
//! | `Cookie` | cookie | encrypted with the first of the proxy's keys; values of all keys are accepted |
//! | `CustomHeader` | header | the same |
//!
//! The first two have the values of YARP and of Application Request Routing, so clients keep their
//! destination when one proxy replaces the other. They can be forged by a client that knows the ids
//! of destinations, which is no more than to choose a destination. Encrypted values are those of
//! this proxy alone.
//!
//! On a route with `WeightedClusters` the key also names the cluster, so that a client stays on its
//! side while the weights change. The weights apply to requests without a key.
//!
//! # Which destination
//!
//! A destination keeps its clients while it is not unhealthy, or while all are unhealthy and the
//! cluster uses them all (`HealthyOrPanic`). Tiers and zones apply to requests without a key. A
//! destination whose weight has become 0 keeps its clients and gets no new ones, for
//! `SessionAffinity.DrainTimeout`.
//!
//! A key that is unreadable, or that names no such destination, is a matter of the failure policy:
//! `Redistribute` (the default) picks any destination and gives the client a new key,
//! `Return503Error` rejects the request. A program registers an [`AffinityFailurePolicy`] with
//! [`ProxyBuilder::affinity_failure_policy`](crate::build::ProxyBuilder::affinity_failure_policy).
//!
//! A request that could not be sent to its destination goes to another one under `Redistribute`
//! alone, and the client gets a new key.

mod cluster;
#[cfg_attr(
    not(feature = "testing"),
    allow(
        unreachable_pub,
        reason = "a part of it is reached by fuzz targets, with the feature `testing`"
    )
)]
mod cookie;
mod hash;
#[cfg(feature = "affinity-keys")]
mod keys;
mod registry;
#[cfg(test)]
mod tests;

use std::fmt;

use http::{HeaderName, HeaderValue, StatusCode};
use proxy_model::RequestHead;
use proxy_model::compiled::{Cluster, Destination, DestinationIndex};

pub(crate) use self::cluster::{ClusterAffinity, NewKey};
#[cfg(feature = "testing")]
#[doc(hidden)]
pub use self::cookie::{KeyText, find_cookie};
#[cfg(feature = "affinity-keys")]
pub(crate) use self::keys::KeyRing;
#[cfg(feature = "affinity-keys")]
pub use self::keys::{AffinityKeys, InvalidAffinityKeys, random_affinity_keys};
pub(crate) use self::registry::Affinities;

/// Reads the affinity keys of requests, and gives clients keys.
///
/// Called on the path of every request of a cluster that names the policy, from many threads at a
/// time: it should neither block nor allocate.
///
/// # Examples
///
/// A policy that keeps the requests of one tenant together, by a header that clients send anyway:
///
/// ```
/// use proxy_model::RequestHead;
/// use proxy_model::compiled::{Cluster, Destination, DestinationIndex};
/// use proxy_runtime::affinity::{AffinityPolicy, RequestKey};
/// use proxy_runtime::http::{HeaderName, HeaderValue};
///
/// struct ByTenant;
///
/// impl AffinityPolicy for ByTenant {
///     fn read(&self, head: &dyn RequestHead, cluster: &Cluster) -> RequestKey {
///         let mut key = RequestKey::NotSet;
///         head.for_each_header("x-tenant", &mut |tenant| {
///             let sum: usize = tenant.iter().map(|byte| usize::from(*byte)).sum();
///             let count = cluster.destinations().len().max(1);
///             key = RequestKey::Destination(DestinationIndex((sum % count) as u32));
///             false
///         });
///         key
///     }
///
///     fn give(&self, _: &Destination, _: &Cluster) -> Option<(HeaderName, HeaderValue)> {
///         None // Clients have their key already.
///     }
/// }
/// ```
pub trait AffinityPolicy: Send + Sync {
    /// Reads the key of a request. The destination that it names need not be available.
    fn read(&self, head: &dyn RequestHead, cluster: &Cluster) -> RequestKey;

    /// Returns the header that gives a client the key of a destination. It is added to the
    /// response of a request without a valid key.
    fn give(
        &self,
        destination: &Destination,
        cluster: &Cluster,
    ) -> Option<(HeaderName, HeaderValue)>;
}

/// The affinity key of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum RequestKey {
    /// The request has no key.
    NotSet,
    /// The key names this destination of the cluster.
    Destination(DestinationIndex),
    /// The key names no destination of the cluster.
    NotFound,
    /// The key makes no sense.
    Unreadable,
}

/// Decides about requests whose affinity key is of no use.
///
/// # Examples
///
/// A policy that tells clients that their session is gone:
///
/// ```
/// use proxy_model::compiled::Cluster;
/// use proxy_runtime::affinity::{AffinityFailurePolicy, KeyFailure};
/// use proxy_runtime::http::StatusCode;
///
/// struct SessionGone;
///
/// impl AffinityFailurePolicy for SessionGone {
///     fn reject(&self, failure: KeyFailure, _: &Cluster) -> Option<StatusCode> {
///         match failure {
///             KeyFailure::Unavailable => Some(StatusCode::GONE),
///             KeyFailure::Unreadable => None, // It gets a new session.
///         }
///     }
/// }
/// ```
pub trait AffinityFailurePolicy: Send + Sync {
    /// Returns the status that rejects the request. `None`: the request goes to any destination,
    /// and the client gets a new key.
    fn reject(&self, failure: KeyFailure, cluster: &Cluster) -> Option<StatusCode>;
}

/// The reason why an affinity key is of no use.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum KeyFailure {
    /// The key makes no sense (`AffinityKeyExtractionFailed` of YARP).
    Unreadable,
    /// The key names no destination that is available (`DestinationNotFound` of YARP).
    Unavailable,
}

impl fmt::Display for KeyFailure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Unreadable => "its affinity key makes no sense",
            Self::Unavailable => "its affinity key names no destination that is available",
        })
    }
}

/// The relation of a picked destination to the affinity key of its request.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Bond {
    /// The cluster has no session affinity.
    #[default]
    None,
    /// The key of the request names the destination.
    Kept,
    /// The client gets a key. `is_https`: the request came over TLS.
    New { is_https: bool },
}
