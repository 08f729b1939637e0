//! Recent failures of requests.

use proxy_model::compiled::Cluster;
use serde::Serialize;

use crate::cluster::ClusterState;
use crate::error::Cause;
use crate::live::DestinationState;
use crate::observe::{RECENT, RecentFailures};

/// Requests of the last 30 seconds, some of which failed because of a destination, the proxy or its
/// configuration.
///
/// Requests are counted once for each destination that they were sent to.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Failing {
    /// Number of failed requests.
    pub failures: u64,
    /// Number of all requests, including those in progress.
    pub requests: u64,
    /// The cause of the latest failure.
    pub cause: Cause,
    /// A description; for connections, the error of the latest attempt with nested causes.
    pub detail: String,
    /// Number of destinations with failures, for a cluster.
    pub destinations: usize,
}

impl Failing {
    /// True if no request succeeded.
    #[cfg(feature = "admin")]
    pub(crate) fn is_all(&self) -> bool {
        self.failures >= self.requests
    }

    fn new(
        failures: &RecentFailures,
        requests: impl FnOnce(u64) -> u64,
        destinations: usize,
    ) -> Option<Self> {
        let failed = failures.recent();
        if failed == 0 {
            return None;
        }
        Some(Self {
            failures: failed,
            requests: requests(failed),
            cause: failures.cause()?,
            detail: failures.detail()?.to_string(),
            destinations,
        })
    }

    /// The failures of a destination, if there are any.
    pub(super) fn of_destination(live: &DestinationState) -> Option<Self> {
        let requests = |failed| recent_requests(std::iter::once(live), failed);
        Self::new(&live.metrics().failures, requests, 1)
    }

    /// The failures of a cluster with `available` destinations. The cause is that of the
    /// destination with the most failures.
    pub(super) fn of_cluster(
        state: &ClusterState,
        available: usize,
        destinations: &[Option<Self>],
    ) -> Option<Self> {
        let own = &state.live().metrics().failures;
        // Failures for lack of a destination no longer matter once one is available.
        let is_over = available > 0 && own.cause().is_some_and(Cause::is_of_lack);
        let own = Self::new(own, |failed| failed, 0).filter(|_| !is_over);
        let failing = destinations.iter().flatten();
        let worst = own
            .iter()
            .chain(failing.clone())
            .max_by_key(|f| f.failures)?;
        let failures = own.iter().chain(failing.clone()).map(|f| f.failures).sum();
        let live = state.destinations().iter().map(|d| &**d);
        Some(Self {
            failures,
            requests: recent_requests(live, failures),
            cause: worst.cause,
            detail: worst.detail.clone(),
            destinations: failing.count(),
        })
    }

    /// The failures of a cluster, computed from its state.
    pub(super) fn of(cluster: &Cluster, state: &ClusterState) -> Option<Self> {
        let destinations = state.destinations().iter();
        let destinations: Vec<_> = destinations.map(|d| Self::of_destination(d)).collect();
        let available = state.available(cluster).members().len();
        Self::of_cluster(state, available, &destinations)
    }
}

/// Number of recent requests to destinations. `failed` of them have failed.
///
/// If no destination has responded, the failed ones are all: requests in progress are undecided, and earlier ones
/// are outside the window.
fn recent_requests<'a>(
    destinations: impl Iterator<Item = &'a DestinationState>,
    failed: u64,
) -> u64 {
    let (mut begun, mut answers) = (0, 0);
    for live in destinations {
        let metrics = live.metrics();
        let recent = live.traffic().recent(RECENT, metrics.requests());
        // Long-lived tunnels and streams count as requests that have not failed.
        begun += recent.max(u64::from(live.in_flight()));
        let latency = metrics.latency();
        answers += latency.map_or(0, |now| live.traffic().answers(RECENT, &now));
    }
    match answers {
        0 => failed,
        // Failures before the pick of a destination are no requests of one.
        _ => begun.max(failed),
    }
}
