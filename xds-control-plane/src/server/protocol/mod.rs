//! The decisions about responses and their time: state machines without I/O, clock or encoding.
//!
//! An [`Exchange`] is one stream. It has a channel for each type that the client has requested, and decides
//! on the order of changes. A channel implements the protocol: [`Full`](full::Full) and
//! [`Partial`](partial::Partial) are the two halves of state of the world (SotW), [`Delta`](delta::Delta)
//! is the incremental protocol. The latter two keep the client's state in a
//! [`SubscriptionState`](subscription_state::SubscriptionState).
//!
//! Facts are from <https://www.envoyproxy.io/docs/envoy/latest/api-docs/xds_protocol>.

mod channel;
mod delta;
mod exchange;
mod full;
mod in_flight;
mod nack;
mod partial;
mod subscription_state;

#[cfg(test)]
mod tests;

use std::sync::Arc;

pub(crate) use self::exchange::{Exchange, ExchangeOptions};
use crate::snapshot::{Resource, ResourceType, Version};

/// The name for all resources of a type.
pub(crate) const WILDCARD: &str = "*";

/// The variant of the protocol on a stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum StreamProtocol {
    /// State of the world (SotW): the client repeats its whole subscription each time.
    Sotw,
    /// Delta (incremental): the client sends the changes of its subscription.
    Delta,
}

/// The request of a client for one type.
#[derive(Debug, Clone, Default)]
pub(crate) struct Request {
    /// The nonce of the response that this request acknowledges or rejects, or empty.
    pub(crate) nonce: String,
    /// The client's error message, if it rejects that response.
    pub(crate) rejection: Option<String>,
    pub(crate) wants: Wants,
}

/// The part of a request that the protocols have differently.
#[derive(Debug, Clone)]
pub(crate) enum Wants {
    /// The whole subscription from now on.
    Sotw {
        names: Vec<Arc<str>>,
        /// The client's version, if it comes from this server.
        version: Option<Version>,
    },
    /// The request names the same resources as the one before, of a type without a wildcard. An acknowledgement
    /// with state of the world names all resources again. In a large fleet, comparing them name by name would be
    /// nearly all of the work.
    Unchanged,
    /// The changes of the subscription.
    Delta {
        subscribe: Vec<Arc<str>>,
        unsubscribe: Vec<Arc<str>>,
        /// Resources from an earlier stream. Of another server's versions only their presence is known.
        initial: Vec<(Arc<str>, Option<Version>)>,
    },
}

impl Default for Wants {
    fn default() -> Self {
        Self::Sotw {
            names: Vec::new(),
            version: None,
        }
    }
}

/// The meaning of a request, apart from its subscription.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Heard {
    /// A request that refers to no response.
    Asked,
    /// Acceptance of the response with that version.
    Acknowledged(Version),
    /// Rejection of the response with that version, with the client's message.
    Rejected(Version, String),
    /// A request that refers to a response before the last one.
    Stale,
}

/// The reason why a stream has to end.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum Violation {
    #[error("more than {limit} names are subscribed to on this stream")]
    TooManyNames { limit: usize },
}

/// A response to send.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Reply {
    pub(crate) resource_type: ResourceType,
    /// The version of all resources of the type that the client then has. In the delta protocol it is only
    /// informational.
    pub(crate) version: Version,
    pub(crate) nonce: u64,
    pub(crate) resources: Vec<Arc<Resource>>,
    /// Names of resources that are removed or never existed. Empty with state of the world.
    pub(crate) removed: Vec<Arc<str>>,
}

/// The content of a response.
#[derive(Debug, Default)]
struct Content {
    version: Version,
    resources: Vec<Arc<Resource>>,
    removed: Vec<Arc<str>>,
}

/// The part of the due resources to send.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Scope {
    /// Only requested resources that were not sent yet.
    Asked,
    /// Requested resources and changes.
    All,
}
