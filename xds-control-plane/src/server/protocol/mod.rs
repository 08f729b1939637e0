//! What a stream is told, and when: state machines without I/O, clock or encoding.
//!
//! An [`Exchange`] is one stream. It has a channel for each type that the client asked about, and decides in which order
//! changes go out. What a channel does is protocol: [`Full`](full::Full) and [`Partial`](partial::Partial) are the two
//! halves of state of the world, [`Delta`](delta::Delta) is the incremental one. The latter two keep account of what the
//! client holds in a [`Ledger`](ledger::Ledger).
//!
//! Facts are from <https://www.envoyproxy.io/docs/envoy/latest/api-docs/xds_protocol>.

mod blame;
mod channel;
mod delta;
mod exchange;
mod flights;
mod full;
mod ledger;
mod partial;

#[cfg(test)]
mod tests;

use std::sync::Arc;

pub(crate) use self::exchange::{Exchange, ExchangeOptions};
use crate::snapshot::{Resource, ResourceType, Version};

/// The name that stands for all resources of a type.
pub(crate) const WILDCARD: &str = "*";

/// Which of the two protocols a stream speaks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Protocol {
    /// State of the world: the client says each time all that it wants.
    Sotw,
    /// Incremental: the client says what it wants more and less.
    Delta,
}

/// What a client says about one type.
#[derive(Debug, Clone, Default)]
pub(crate) struct Request {
    /// The nonce of the response that this is about, empty if it is about none.
    pub(crate) nonce: String,
    /// Why that response is refused.
    pub(crate) refusal: Option<String>,
    pub(crate) wants: Wants,
}

/// The part of a request that the protocols have differently.
#[derive(Debug, Clone)]
pub(crate) enum Wants {
    /// All that the client wants from now on.
    Sotw {
        names: Vec<Arc<str>>,
        /// What it has, if this server said so.
        version: Option<Version>,
    },
    /// The same as with the request before, of a type without a wildcard. An acknowledgement with state of the world names
    /// everything once more, and in a large fleet nearly all of the work would be to find that out name by name.
    Unchanged,
    /// What it wants from now on beside the rest, and what no longer.
    Delta {
        subscribe: Vec<Arc<str>>,
        unsubscribe: Vec<Arc<str>>,
        /// What it has from an earlier stream; of another server's versions only that it has something.
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

/// What a request was, beside what it asked for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Heard {
    /// Nothing about a response.
    Asked,
    /// The response with that version has been accepted.
    Acknowledged(Version),
    /// The response with that version has been refused, and why.
    Refused(Version, String),
    /// Something about a response that is not the last one.
    Stale,
}

/// Why a stream has to end.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum Violation {
    #[error("more than {limit} names are subscribed to on this stream")]
    TooManyNames { limit: usize },
}

/// What goes out.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Reply {
    pub(crate) resource_type: ResourceType,
    /// Of all that the client then holds of the type; with the incremental protocol for people only.
    pub(crate) version: Version,
    pub(crate) nonce: u64,
    pub(crate) resources: Vec<Arc<Resource>>,
    /// Names of what is no more or never was. Empty with state of the world.
    pub(crate) removed: Vec<Arc<str>>,
}

/// What a reply says, before it is one.
#[derive(Debug, Default)]
struct Content {
    version: Version,
    resources: Vec<Arc<Resource>>,
    removed: Vec<Arc<str>>,
}

/// How much of what is due goes out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Scope {
    /// Answers only: what the client asked for and was not told yet.
    Asked,
    /// Changes as well.
    All,
}
