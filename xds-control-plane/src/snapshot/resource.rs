use std::sync::Arc;

use bytes::Bytes;

use super::{Subscription, Version};

/// The encoded message, once for all subscriptions or once for each.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Bodies {
    /// One encoded resource for all subscribers.
    Same(Bytes),
    /// One for each [`Subscription`], since the resource contains the source of the resources that it
    /// refers to.
    PerSubscription {
        /// The body for aggregated streams.
        aggregated: Bytes,
        /// The body for streams and calls of one type.
        separate: Bytes,
        /// The body for polls.
        rest: Bytes,
    },
}

/// A named, encoded message with its version.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Resource {
    name: Arc<str>,
    version: Version,
    bodies: Bodies,
}

impl Resource {
    /// Creates a resource. `bodies` must be encoded deterministically: equal content, equal bytes.
    #[must_use]
    pub fn new(name: impl Into<Arc<str>>, bodies: Bodies) -> Self {
        let version = match &bodies {
            Bodies::Same(body) => Version::of([body.as_ref()]),
            Bodies::PerSubscription {
                aggregated,
                separate,
                rest,
            } => Version::of([aggregated.as_ref(), separate, rest]),
        };
        Self {
            name: name.into(),
            version,
            bodies,
        }
    }

    /// The name, unique among the resources of its type.
    #[must_use]
    pub fn name(&self) -> &Arc<str> {
        &self.name
    }

    /// The hash of its content.
    #[must_use]
    pub fn version(&self) -> Version {
        self.version
    }

    /// The encoded message, as the `value` of an `Any`.
    #[must_use]
    pub fn body(&self, subscription: Subscription) -> &Bytes {
        match (&self.bodies, subscription) {
            (Bodies::Same(body), _)
            | (
                Bodies::PerSubscription {
                    aggregated: body, ..
                },
                Subscription::Aggregated,
            )
            | (Bodies::PerSubscription { separate: body, .. }, Subscription::Separate)
            | (Bodies::PerSubscription { rest: body, .. }, Subscription::Rest) => body,
        }
    }
}
