//! Policies of passive health checks, which judge destinations by the requests that are forwarded to them.

use std::collections::{BTreeMap, VecDeque};
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use http::StatusCode;
use proxy_model::compiled::{Cluster, PassiveCheck};
use proxy_model::{ClusterId, DestinationId, Problem, pointer_to, same_id};
use tokio::time::Instant;

use super::Health;
use crate::error::{ForwardErrorKind, Side};

/// The name of the built-in policy.
const BUILT_IN: &str = "TransportFailureRate";

/// Time that one record of a window covers.
const RECORD: Duration = Duration::from_secs(1);

/// Judges a destination by the requests that were forwarded to it.
///
/// A program registers a policy with
/// [`ProxyBuilder::passive_health_policy`](crate::build::ProxyBuilder::passive_health_policy), and
/// clusters name it in `HealthCheck.Passive.Policy`.
///
/// # Examples
///
/// A policy that counts 5xx responses, too:
///
/// ```
/// use proxy_runtime::health::{Forwarded, Health, PassiveHealthPolicy};
///
/// struct ServerErrors;
///
/// impl PassiveHealthPolicy for ServerErrors {
///     fn evaluate(&self, request: &Forwarded<'_>) -> Health {
///         match request.status {
///             Some(status) if status.is_server_error() => Health::Unhealthy,
///             Some(_) => Health::Healthy,
///             None => request.health,
///         }
///     }
/// }
/// ```
pub trait PassiveHealthPolicy: Send + Sync {
    /// Returns the health of the destination after a request. [`Forwarded::health`] keeps the
    /// current one.
    ///
    /// Called at the end of each request, from many threads at a time: it should neither block nor
    /// allocate. An unhealthy destination becomes `Unknown` after the `ReactivationPeriod`.
    fn evaluate(&self, request: &Forwarded<'_>) -> Health;
}

/// A request that was forwarded to a destination, with its result and the recent results of the destination.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct Forwarded<'a> {
    /// The cluster.
    pub cluster: &'a ClusterId,
    /// The destination.
    pub destination: &'a DestinationId,
    /// The passive check of the cluster.
    pub check: &'a PassiveCheck,
    /// The error, if the request was not forwarded to its end.
    pub error: Option<ForwardErrorKind>,
    /// The status of the destination's response, if there was one.
    pub status: Option<StatusCode>,
    /// The health before this request.
    pub health: Health,
    /// Number of requests in the detection window, including this one.
    pub requests: u64,
    /// Number of those that failed because of the destination: [`is_failure`](Self::is_failure).
    pub failures: u64,
}

impl Forwarded<'_> {
    /// Returns true if the request failed because the destination could not be reached, did not
    /// respond in time, or closed the connection. A response is no failure, whatever its status, and
    /// neither is a client that disconnects.
    pub fn is_failure(&self) -> bool {
        self.error.is_some_and(is_failure)
    }
}

/// Returns true for the errors that YARP counts, unless the proxy itself is their cause.
pub(crate) fn is_failure(error: ForwardErrorKind) -> bool {
    const COUNTED: [ForwardErrorKind; 6] = [
        ForwardErrorKind::Request,
        ForwardErrorKind::RequestTimedOut,
        ForwardErrorKind::RequestBodyDestination,
        ForwardErrorKind::ResponseBodyDestination,
        ForwardErrorKind::UpgradeRequestDestination,
        ForwardErrorKind::UpgradeResponseDestination,
    ];
    // The cause may lie with the proxy, such as a limit of its own.
    COUNTED.contains(&error) && error.side() == Side::Destination
}

/// Marks a destination unhealthy when the share of its failed requests in the detection window
/// reaches a limit.
///
/// The limit is the metadata `TransportFailureRateHealthPolicy.RateLimit` of the cluster (default:
/// 0.3), the window `TransportFailureRateHealthPolicy.DetectionWindowSize` (default: 60 s). With
/// fewer requests in it than `TransportFailureRateHealthPolicy.MinimalTotalCountThreshold` (default:
/// 10) a destination is healthy.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct TransportFailureRate;

impl PassiveHealthPolicy for TransportFailureRate {
    fn evaluate(&self, request: &Forwarded<'_>) -> Health {
        // Few requests prove nothing.
        let is_enough = request.requests >= u64::from(request.check.least());
        let rate = match is_enough {
            true => request.failures as f64 / request.requests as f64,
            false => 0.0,
        };
        match rate < request.check.rate_limit() {
            true => Health::Healthy,
            false => Health::Unhealthy,
        }
    }
}

/// The requests of the last time, and how many of them failed. Counted in steps of a second, as YARP
/// counts them.
#[derive(Debug, Default)]
pub(super) struct FailureWindow {
    /// The end of the current record.
    ends: Option<Instant>,
    current: Counts,
    total: Counts,
    records: VecDeque<(Instant, Counts)>,
}

/// Numbers of requests.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Counts {
    pub(crate) requests: u64,
    pub(crate) failures: u64,
}

impl FailureWindow {
    /// Counts a request. Returns the counts of the last `length`.
    pub(super) fn add(&mut self, now: Instant, length: Duration, is_failure: bool) -> Counts {
        let ends = *self.ends.get_or_insert(now + RECORD);
        if now >= ends {
            self.records
                .push_back((ends, std::mem::take(&mut self.current)));
            self.ends = Some(now + RECORD);
        }
        for counts in [&mut self.current, &mut self.total] {
            counts.requests += 1;
            counts.failures += u64::from(is_failure);
        }
        while let Some((ended, counts)) = self.records.front()
            && now.saturating_duration_since(*ended) > length
        {
            // Subtracted, so that a request need not add all records up.
            self.total.requests -= counts.requests;
            self.total.failures -= counts.failures;
            self.records.pop_front();
        }
        self.total
    }
}

/// Passive policies by name. Names are compared ignoring case.
#[derive(Clone, Default)]
pub(crate) struct PassivePolicies(BTreeMap<Arc<str>, Arc<dyn PassiveHealthPolicy>>);

impl PassivePolicies {
    /// Adds a policy of the program. A later registration of the same name replaces it.
    pub(crate) fn register(&mut self, name: Arc<str>, policy: Arc<dyn PassiveHealthPolicy>) {
        // Names are compared ignoring case, so another spelling is replaced.
        self.0.retain(|registered, _| !same_id(registered, &name));
        self.0.insert(name, policy);
    }

    /// The names that were registered.
    pub(crate) fn names(&self) -> impl Iterator<Item = &Arc<str>> {
        self.0.keys()
    }

    /// The registered names that belong to built-in policies.
    pub(crate) fn taken_names(&self) -> impl Iterator<Item = &Arc<str>> {
        self.names().filter(|name| same_id(name, BUILT_IN))
    }

    /// The policy of a cluster with this passive check.
    ///
    /// # Errors
    ///
    /// The policy is not registered.
    pub(crate) fn resolve(
        &self,
        cluster: &Cluster,
        check: &PassiveCheck,
    ) -> Result<Arc<dyn PassiveHealthPolicy>, Problem> {
        if same_id(check.policy(), BUILT_IN) {
            return Ok(Arc::new(TransportFailureRate));
        }
        let mut registered = self.0.iter();
        let found = registered.find(|(known, _)| same_id(known, check.policy()));
        match found {
            Some((_, policy)) => Ok(Arc::clone(policy)),
            None => Err(not_registered(cluster, check.policy())),
        }
    }
}

/// The time for which a destination is left out that its passive check finds unhealthy.
pub(crate) fn time_out(check: &PassiveCheck) -> Duration {
    match same_id(check.policy(), BUILT_IN) {
        // What led to the verdict must not lead to the next one.
        true => check.reactivation().max(check.window()),
        false => check.reactivation(),
    }
}

fn not_registered(cluster: &Cluster, name: &str) -> Problem {
    let cluster = pointer_to("/Clusters", cluster.id().as_str());
    Problem::error(
        format!("{cluster}/HealthCheck/Passive/Policy"),
        "unknown_passive_health_policy",
        format!("this proxy has no policy of passive health checks called `{name}`"),
    )
    .with_suggestion("register it with `ProxyBuilder::passive_health_policy`")
}

impl fmt::Debug for PassivePolicies {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.0.keys()).finish()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const WINDOW: Duration = Duration::from_secs(60);

    fn counts(requests: u64, failures: u64) -> Counts {
        Counts { requests, failures }
    }

    #[test]
    fn a_window_forgets_whole_records() {
        let start = Instant::now();
        let after = |millis| start + Duration::from_millis(millis);
        let mut window = FailureWindow::default();
        assert_eq!(window.add(start, WINDOW, true), counts(1, 1));
        assert_eq!(window.add(after(999), WINDOW, false), counts(2, 1));
        // The record of the first second counts from its end.
        assert_eq!(window.add(after(61_000), WINDOW, false), counts(3, 1));
        assert_eq!(window.add(after(61_001), WINDOW, false), counts(2, 0));
    }

    proptest! {
        /// Against YARP's rule written down naively: a list of records, summed up each time.
        #[test]
        fn a_window_counts_as_the_rule_says(
            requests in prop::collection::vec((0_u64..5_000, any::<bool>()), 1..200),
            length in 1_u64..10,
        ) {
            let start = Instant::now();
            let length = Duration::from_secs(length);
            let mut window = FailureWindow::default();
            let mut records: Vec<(Instant, u64, u64)> = Vec::new();
            let (mut ends, mut open) = (start + Duration::from_millis(requests[0].0) + RECORD, (0, 0));
            let mut now = start;
            for (millis, failed) in requests {
                now += Duration::from_millis(millis);
                if now >= ends {
                    records.push((ends, open.0, open.1));
                    (ends, open) = (now + RECORD, (0, 0));
                }
                open = (open.0 + 1, open.1 + u64::from(failed));
                records.retain(|(ended, ..)| now.saturating_duration_since(*ended) <= length);
                let expected = counts(
                    records.iter().map(|record| record.1).sum::<u64>() + open.0,
                    records.iter().map(|record| record.2).sum::<u64>() + open.1,
                );
                prop_assert_eq!(window.add(now, length, failed), expected);
                prop_assert!(window.records.len() <= length.as_secs() as usize + 2);
            }
        }
    }
}
