//! Requests that failed in the last seconds.

use proxy_model::compiled::Cluster;
use serde::Serialize;

use crate::cluster::ClusterState;
use crate::error::ForwardErrorKind;
use crate::live::DestinationState;
use crate::observe::{RECENT, RecentFailures};

/// Requests of the last 30 seconds, of which some failed through the fault of a destination, of the proxy or of its configuration.
///
/// Requests are counted once for each destination that they were sent to.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Failing {
    /// Those that failed.
    pub failures: u64,
    /// All of them, with those that have not ended.
    pub requests: u64,
    /// Why the latest one failed, with causes.
    pub cause: String,
    /// For a cluster, the destinations at which some failed.
    pub destinations: usize,
}

impl Failing {
    /// Whether none has worked.
    #[cfg(feature = "admin")]
    pub(crate) fn is_all(&self) -> bool {
        self.failures >= self.requests
    }

    fn new(failures: &RecentFailures, requests: u64, destinations: usize) -> Option<Self> {
        let failed = failures.recent();
        if failed == 0 {
            return None;
        }
        Some(Self {
            failures: failed,
            // A request that fails now may have come long ago.
            requests: requests.max(failed),
            cause: failures.cause()?.to_string(),
            destinations,
        })
    }

    /// That of a destination, if any failed.
    pub(super) fn of_destination(live: &DestinationState) -> Option<Self> {
        Self::new(&live.metrics().failures, recent_requests(live), 1)
    }

    /// That of a cluster, of whose destinations `available` may be picked. The cause is that of the destination with most failures.
    pub(super) fn of_cluster(
        state: &ClusterState,
        available: usize,
        destinations: &[Option<Self>],
    ) -> Option<Self> {
        let own = &state.live().metrics().failures;
        // What there was no destination for says nothing of one that has come since then.
        let is_over =
            available > 0 && own.kind() == Some(ForwardErrorKind::NoAvailableDestinations);
        let own = Self::new(own, 0, 0).filter(|_| !is_over);
        let failing = destinations.iter().flatten();
        let worst = own
            .iter()
            .chain(failing.clone())
            .max_by_key(|f| f.failures)?;
        let failures = own.iter().chain(failing.clone()).map(|f| f.failures).sum();
        let requests: u64 = state
            .destinations()
            .iter()
            .map(|d| recent_requests(d))
            .sum();
        Some(Self {
            failures,
            requests: requests.max(failures),
            cause: worst.cause.clone(),
            destinations: failing.count(),
        })
    }

    /// The same, of a cluster by itself.
    pub(super) fn of(cluster: &Cluster, state: &ClusterState) -> Option<Self> {
        let destinations = state.destinations().iter();
        let destinations: Vec<_> = destinations.map(|d| Self::of_destination(d)).collect();
        let available = state.available(cluster).members().len();
        Self::of_cluster(state, available, &destinations)
    }
}

fn recent_requests(live: &DestinationState) -> u64 {
    let begun = live.traffic().recent(RECENT, live.metrics().requests());
    // Tunnels and streams that began long ago and go on have not failed.
    begun.max(u64::from(live.in_flight()))
}
