//! The options of the watch.

use std::sync::Arc;
use std::time::Duration;

use crate::client::{Consistency, FollowOptions};

/// The options of the watch.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct WatchOptions {
    /// The watched datacenters. Default: the agent's own.
    pub datacenters: Datacenters,
    /// The agent's own datacenter. `None` to read it from the agent, for which a token needs `agent_prefix
    /// "" { policy = "read" }`. Default: `None`.
    pub own_datacenter: Option<Arc<str>>,
    /// The options of the two blocking queries of each datacenter.
    pub follow: FollowOptions,
    /// The server that responds. Unless it is the leader, a response that is empty, or comes from a server
    /// without a leader, is checked once at the leader before it is trusted. Default: the leader.
    pub consistency: Consistency,
    /// Maximum number of concurrent reads of single services, over all datacenters. One datacenter gets at
    /// most half. At least 2. Default: 16.
    pub reads: usize,
    /// The longest time between two reads of a service, independent of the blocking queries. It varies by a
    /// third, so that services are read one after the other. Default: 90 s.
    pub reread: Duration,
    /// The time for which the first result waits for unreadable services, before the others count without
    /// them. Default: 15 s.
    pub unread_grace: Duration,
    /// The least time between two reads of everything that changes of single services did not cause.
    /// Default: 5 s.
    pub resync_gap: Duration,
    /// The handling of large losses.
    pub shrink: ShrinkGuard,
    /// The interval at which the list of datacenters is read. Default: 45 s.
    pub datacenters_interval: Duration,
    /// The time for which a datacenter is kept that is no longer in that list. Default: 10 min.
    pub datacenter_grace: Duration,
}

/// The watched datacenters.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Datacenters {
    /// The agent's own.
    #[default]
    Own,
    /// The agent's own and these.
    Listed(Vec<Arc<str>>),
    /// All datacenters that the servers know.
    All,
}

/// The handling of large losses: many instances that disappear at once.
///
/// A server that has lost its data, and a token that has lost its rights, successfully return an empty
/// result. If so many instances disappear at once, they are kept until a second read has confirmed it.
/// Instances that exist but are unhealthy do not count as lost; they are trusted at once.
///
/// Servers with another history than before, or after an outage, may not know everything yet. Then any loss
/// is held until it is confirmed, even a small one.
///
/// A token that could see Consul's own service and no longer can has lost its rights: meanwhile no loss is
/// trusted.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub struct ShrinkGuard {
    /// The share of a datacenter's instances that must be exceeded, from 0 to 1. Default: 0.5.
    pub share: f64,
    /// Minimum number of lost instances. Default: 2.
    pub least: usize,
    /// The time for which they are kept before the second read. Default: 10 s.
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
