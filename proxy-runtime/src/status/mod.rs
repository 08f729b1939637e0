//! The state of a proxy as people and programs look at it.
//!
//! These are copies, taken at the moment of the call; nothing here can change the proxy. They serialise to JSON; names
//! of fields may be added, and are changed only with a new version of the API that shows them.

mod cluster;
mod failing;
mod latency;
mod overview;
mod route;
mod sampling;
pub(crate) mod secret;
pub(crate) mod shown_url;
mod traffic;

pub use self::cluster::{ClusterStatus, DestinationStatus, ResponseCounts};
pub use self::failing::Failing;
pub use self::latency::Latency;
pub use self::overview::Overview;
pub use self::route::{RouteShare, RouteStatus};
pub(crate) use self::sampling::sample;
pub(crate) use self::traffic::Traffic;
pub use crate::proxy::{Outcome, PastChange};
pub use crate::state::Ineligible;

use std::collections::BTreeMap;

use crate::observe::ErrorCounters;

/// Errors that happened, by the name of their kind.
pub type ErrorCounts = BTreeMap<&'static str, u64>;

fn error_counts(counters: &ErrorCounters) -> ErrorCounts {
    counters
        .iter()
        .map(|(kind, count)| (kind.as_str(), count))
        .collect()
}

/// Adds up requests per second.
fn add_seconds(sum: &mut [u32], seconds: &[u32]) {
    for (sum, second) in sum.iter_mut().zip(seconds) {
        *sum = sum.saturating_add(*second);
    }
}
