//! The passive check of a cluster.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use http::StatusCode;
use proxy_model::compiled::{Cluster, PassiveCheck};
use proxy_model::{ClusterId, Problem};
use tokio::time::Instant;

use super::{ClusterLive, DestinationState};
use crate::contain::contained_call;
use crate::error::ForwardErrorKind;
use crate::health::{
    Forwarded, Health, PassiveHealthPolicy, PassivePolicies, is_failure, time_out,
};
use crate::observe::targets;

/// The passive check of one cluster in one generation. It gets the result of each request.
pub(crate) struct PassiveRule {
    cluster: ClusterId,
    check: PassiveCheck,
    policy: Arc<dyn PassiveHealthPolicy>,
    /// The time for which a destination is left out.
    reactivation: Duration,
    live: Arc<ClusterLive>,
}

impl PassiveRule {
    /// The rule of a cluster, if its passive check is enabled.
    ///
    /// # Errors
    ///
    /// The cluster names a policy that is not registered.
    pub(crate) fn of(
        cluster: &Cluster,
        policies: &PassivePolicies,
        live: &Arc<ClusterLive>,
    ) -> Result<Option<Arc<Self>>, Problem> {
        let Some(check) = cluster.passive_check() else {
            return Ok(None);
        };
        Ok(Some(Arc::new(Self {
            cluster: cluster.id().clone(),
            check: check.clone(),
            policy: policies.resolve(cluster, check)?,
            reactivation: time_out(check),
            live: Arc::clone(live),
        })))
    }

    /// Judges a destination after a request, which ended at `now`.
    pub(crate) fn report(
        &self,
        destination: &DestinationState,
        error: Option<ForwardErrorKind>,
        status: Option<StatusCode>,
        now: Instant,
    ) {
        let passive = destination.health().passive_state();
        let is_failure = error.is_some_and(is_failure);
        let (health, counts) = passive.count(now, self.check.window(), is_failure);
        let request = Forwarded {
            cluster: &self.cluster,
            destination: destination.id(),
            check: &self.check,
            error,
            status,
            health,
            requests: counts.requests,
            failures: counts.failures,
        };
        // The policy runs without a lock, since it may read the state of the proxy.
        let judged = match contained_call(|| self.policy.evaluate(&request)) {
            Ok(judged) => judged,
            Err(panicked) => return self.panicked(&panicked.0),
        };
        if judged != health {
            self.change(destination, judged, &request, now);
        }
    }

    #[cold]
    fn change(
        &self,
        destination: &DestinationState,
        health: Health,
        request: &Forwarded<'_>,
        now: Instant,
    ) {
        let reason = || {
            let Forwarded {
                requests, failures, ..
            } = *request;
            format!("{failures} of the last {requests} requests failed").into()
        };
        let passive = destination.health().passive_state();
        if !passive.change(health, now, self.reactivation, reason) {
            // Another request has changed the health already.
            return;
        }
        self.live.health_changed();
        match health {
            Health::Unhealthy => self.report_unhealthy(destination, request),
            // Only after a report, so that the log has no end without a beginning.
            Health::Healthy if passive.take_reported() => tracing::info!(
                target: targets::HEALTH,
                cluster = %self.cluster,
                destination = %destination.id(),
                "a destination is healthy again by its passive check",
            ),
            Health::Healthy | Health::Unknown => {}
        }
    }

    fn report_unhealthy(&self, destination: &DestinationState, request: &Forwarded<'_>) {
        // A verdict may change with each request while all destinations are in use.
        let Some(left_out) = self.live.passive_log().unhealthy.pass() else {
            return;
        };
        destination.health().passive_state().note_reported();
        tracing::warn!(
            target: targets::HEALTH,
            cluster = %self.cluster,
            destination = %destination.id(),
            requests = request.requests,
            failures = request.failures,
            error = request.error.map(ForwardErrorKind::as_str),
            reactivation = ?self.reactivation,
            left_out,
            "a destination is unhealthy by its passive check",
        );
    }

    #[cold]
    fn panicked(&self, message: &str) {
        if let Some(left_out) = self.live.passive_log().panics.pass() {
            tracing::error!(
                target: targets::HEALTH,
                policy = self.check.policy(),
                cluster = %self.cluster,
                message,
                left_out,
                "the passive health policy panicked; the destination's health stays unchanged",
            );
        }
    }
}

impl fmt::Debug for PassiveRule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PassiveRule")
            .field("check", &self.check)
            .finish_non_exhaustive()
    }
}
