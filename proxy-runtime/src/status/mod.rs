//! The state of a proxy for users and programs.
//!
//! The values are copies from the moment of the call; they cannot change the proxy. They serialise
//! to JSON. Fields may be added; they are renamed only with a new version of the API that returns
//! them.

#[cfg(feature = "admin")]
mod charts;
mod cluster;
mod failing;
mod latency;
mod overview;
mod route;
mod sampling;
pub(crate) mod secret;
#[cfg(feature = "server")]
pub(crate) mod shown_url;

#[cfg(feature = "admin")]
pub(crate) use self::charts::{ChartView, LastMinute, chart};
pub use self::cluster::{AgentStatus, ClusterStatus, DestinationStatus, ResponseCounts};
pub use self::failing::Failing;
pub use self::latency::Latency;
pub use self::overview::Overview;
pub use self::route::{RouteShare, RouteStatus};
pub(crate) use self::sampling::sample;
pub use crate::live::Ineligible;
pub use crate::proxy::{PastChange, PublishOutcome};

use std::collections::BTreeMap;

use proxy_model::ClusterId;

use crate::observe::ErrorCounters;
use crate::proxy::Proxy;

/// Number of errors by the name of their kind, or of their cause.
pub(crate) type ErrorCounts = BTreeMap<&'static str, u64>;

fn error_counts(counters: &ErrorCounters) -> ErrorCounts {
    counters
        .iter()
        .map(|(kind, count)| (kind.as_str(), count))
        .collect()
}

fn cause_counts(counters: &ErrorCounters) -> ErrorCounts {
    counters
        .causes()
        .map(|(cause, count)| (cause.as_str(), count))
        .collect()
}

/// Adds up requests per second.
fn add_seconds(sum: &mut [u32], seconds: &[u32]) {
    for (sum, second) in sum.iter_mut().zip(seconds) {
        *sum = sum.saturating_add(*second);
    }
}

impl Proxy {
    /// The proxy in a few numbers.
    pub fn overview(&self) -> Overview {
        Overview::of(self.shared())
    }

    /// The state of every cluster, in the order of the configuration.
    pub fn clusters(&self) -> Vec<ClusterStatus> {
        let generation = self.shared().load();
        let clusters = generation.clusters();
        clusters
            .map(|(cluster, state)| ClusterStatus::of(cluster, state))
            .collect()
    }

    /// The state of the cluster called `id`.
    pub fn cluster(&self, id: &ClusterId) -> Option<ClusterStatus> {
        let generation = self.shared().load();
        let (cluster, state) = generation.find_cluster(id)?;
        Some(ClusterStatus::of(cluster, state))
    }

    /// The state of every route, in the order of the configuration.
    pub fn routes(&self) -> Vec<RouteStatus> {
        let generation = self.shared().load();
        let routes = generation
            .snapshot()
            .routes()
            .iter()
            .zip(generation.routes());
        routes
            .map(|(route, state)| RouteStatus::of(&generation, route, state))
            .collect()
    }
}
