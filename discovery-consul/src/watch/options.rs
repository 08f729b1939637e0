//! How datacenters are watched.

use std::sync::Arc;
use std::time::Duration;

use crate::client::{Consistency, FollowOptions};

/// How datacenters are watched.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct WatchOptions {
    /// Which datacenters are watched. The agent's own.
    pub datacenters: Datacenters,
    /// The agent's own datacenter. Unset: the agent is asked, for which a token needs `agent_prefix "" { policy = "read" }`.
    pub own_datacenter: Option<Arc<str>>,
    /// How the two blocking queries of each datacenter are made.
    pub follow: FollowOptions,
    /// Who answers. The leader. Any other answer that is empty, or comes from a server without a leader, is asked for once
    /// more at the leader before it is believed.
    pub consistency: Consistency,
    /// The most reads of single services at the same time, over all datacenters; one of them gets no more than half. 16;
    /// at least 2.
    pub reads: usize,
    /// How long ago a service was read at most, whatever the blocking queries say. 90 s; it varies by a third, so that
    /// services are read one after the other.
    pub reread: Duration,
    /// How long services are waited for that cannot be read at the beginning, before the others count without them. 15 s.
    pub unread_grace: Duration,
    /// The least time between two reads of everything that were not asked for by news of each service. 5 s.
    pub resync_gap: Duration,
    /// What happens when much is gone at once.
    pub shrink: ShrinkGuard,
    /// How often the list of datacenters is read. 45 s.
    pub datacenters_interval: Duration,
    /// How long a datacenter is kept that is not in that list any more. 10 min.
    pub datacenter_grace: Duration,
}

/// Which datacenters are watched.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Datacenters {
    /// The agent's own.
    #[default]
    Own,
    /// The agent's own and these.
    Listed(Vec<Arc<str>>),
    /// All that the servers know of.
    All,
}

/// What happens when much is gone at once.
///
/// A server that has lost its memory, and a token that has lost its rights, answer successfully that there is nothing.
/// When so many instances are gone at once they are kept until a second look has confirmed it. Instances that are there
/// and not healthy are not gone; they are believed at once.
///
/// When the servers have another history than before, or were away, they may not know everything yet: then any loss is kept
/// until it is confirmed, however small.
///
/// A token that could see Consul's own service and cannot any more has lost its rights: nothing is believed to be gone as
/// long as that is so.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub struct ShrinkGuard {
    /// What share of a datacenter's instances must be gone, from 0 to 1. More than 0.5.
    pub share: f64,
    /// How many at least. 2.
    pub least: usize,
    /// How long they are kept before the second look. 10 s.
    pub settle: Duration,
}

impl Default for WatchOptions {
    fn default() -> Self {
        Self {
            datacenters: Datacenters::Own,
            own_datacenter: None,
            follow: FollowOptions::default(),
            consistency: Consistency::Default,
            reads: 16,
            reread: Duration::from_secs(90),
            unread_grace: Duration::from_secs(15),
            resync_gap: Duration::from_secs(5),
            shrink: ShrinkGuard::default(),
            datacenters_interval: Duration::from_secs(45),
            datacenter_grace: Duration::from_secs(600),
        }
    }
}

impl Default for ShrinkGuard {
    fn default() -> Self {
        Self {
            share: 0.5,
            least: 2,
            settle: Duration::from_secs(10),
        }
    }
}

macro_rules! setters {
    ($options:ident: $($(#[$doc:meta])* $setter:ident $field:ident: $type:ty;)*) => {
        impl $options {
            $(
                $(#[$doc])*
                #[must_use]
                pub fn $setter(mut self, value: $type) -> Self {
                    self.$field = value;
                    self
                }
            )*
        }
    };
}

setters! { WatchOptions:
    /// Sets [`datacenters`](Self::datacenters).
    with_datacenters datacenters: Datacenters;
    /// Sets [`follow`](Self::follow).
    with_follow follow: FollowOptions;
    /// Sets [`consistency`](Self::consistency).
    with_consistency consistency: Consistency;
    /// Sets [`reads`](Self::reads).
    with_reads reads: usize;
    /// Sets [`reread`](Self::reread).
    with_reread reread: Duration;
    /// Sets [`unread_grace`](Self::unread_grace).
    with_unread_grace unread_grace: Duration;
    /// Sets [`resync_gap`](Self::resync_gap).
    with_resync_gap resync_gap: Duration;
    /// Sets [`shrink`](Self::shrink).
    with_shrink shrink: ShrinkGuard;
    /// Sets [`datacenters_interval`](Self::datacenters_interval).
    with_datacenters_interval datacenters_interval: Duration;
    /// Sets [`datacenter_grace`](Self::datacenter_grace).
    with_datacenter_grace datacenter_grace: Duration;
}

setters! { ShrinkGuard:
    /// Sets [`share`](Self::share).
    with_share share: f64;
    /// Sets [`least`](Self::least).
    with_least least: usize;
    /// Sets [`settle`](Self::settle).
    with_settle settle: Duration;
}

impl WatchOptions {
    /// Sets [`own_datacenter`](Self::own_datacenter).
    #[must_use]
    pub fn with_own_datacenter(mut self, own_datacenter: impl Into<Arc<str>>) -> Self {
        self.own_datacenter = Some(own_datacenter.into());
        self
    }
}
