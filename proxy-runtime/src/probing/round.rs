//! One cycle of probes, and the evaluation of its results.

use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;

use discovery_core::Timestamp;
use discovery_core::text::with_causes;
use futures_util::{StreamExt, stream};
use http::{HeaderValue, StatusCode};
use proxy_model::ClusterId;
use proxy_model::compiled::{
    ActiveCheck, Cluster, ClusterIndex, Destination, DestinationAddress, ProbeKind,
};
use tokio::time::{Instant, timeout};

use super::active::Prober;
use crate::cluster::ClusterState;
use crate::contain::{Panicked, contained, contained_call};
use crate::health::{Health, HealthRecord, ProbeError, Probed};
use crate::live::{DestinationKey, DestinationState};
use crate::observe::targets;
use crate::proxy::Shared;
use crate::state::Generation;
use crate::trace;

/// Maximum of probes in flight of one cluster.
const PARALLEL: usize = 64;

/// The target and content of a probe. A result applies to these only.
#[derive(PartialEq, Eq)]
struct ProbeRequest<'a> {
    address: &'a DestinationAddress,
    host: Option<&'a HeaderValue>,
    path: &'a str,
    query: &'a str,
    kind: &'a ProbeKind,
}

impl<'a> ProbeRequest<'a> {
    fn of(check: &'a ActiveCheck, destination: &'a Destination) -> Self {
        Self {
            address: destination.health_address(),
            host: destination.host(),
            path: check.path_at(destination),
            query: check.query(),
            kind: check.probe(),
        }
    }
}

/// A cluster to probe, with the generation in which it was found.
#[derive(Clone)]
pub(crate) struct ProbeTarget {
    generation: Arc<Generation>,
    index: ClusterIndex,
}

impl ProbeTarget {
    /// The cluster called `id` of the current generation, if its check is enabled.
    pub(crate) fn find(shared: &Shared, id: &ClusterId) -> Option<Self> {
        let generation = shared.load_full();
        let index = generation.snapshot().cluster_index(id)?;
        generation.snapshot().cluster_at(index).active_check()?;
        Some(Self { generation, index })
    }

    pub(crate) fn interval(&self) -> Duration {
        self.check().interval()
    }

    /// The interval for [destinations in doubt](Self::in_doubt), if it is shorter than that of all.
    pub(crate) fn fast_interval(&self) -> Option<Duration> {
        let check = self.check();
        (check.fast_interval() < check.interval()).then(|| check.fast_interval())
    }

    /// The keys of destinations whose last probe contradicts their health.
    pub(crate) fn in_doubt(&self) -> Vec<DestinationKey> {
        let states = self.state().destinations().iter();
        let in_doubt = states.filter(|state| {
            let record = state.health().record();
            match record.health {
                Health::Unhealthy => record.successes > 0,
                Health::Healthy | Health::Unknown => record.failures > 0,
            }
        });
        in_doubt.map(|state| state.key()).collect()
    }

    /// The keys of all destinations.
    pub(crate) fn keys(&self) -> Vec<DestinationKey> {
        self.state()
            .destinations()
            .iter()
            .map(|d| d.key())
            .collect()
    }

    /// The destinations that existed in `before` and are probed with other settings now.
    pub(crate) fn changed_since(&self, before: &Self) -> HashSet<DestinationKey> {
        self.destinations()
            .filter(|(destination, state)| {
                before
                    .request(destination, state.key())
                    .is_some_and(|asked| asked != ProbeRequest::of(self.check(), destination))
            })
            .map(|(_, state)| state.key())
            .collect()
    }

    /// Resets the counts of consecutive results for the destinations that `chosen` selects. Health
    /// stays.
    pub(crate) fn restart_counts(&self, chosen: impl Fn(DestinationKey) -> bool) {
        for (_, state) in self.destinations().filter(|(_, state)| chosen(state.key())) {
            state.health().update(|record| {
                record.failures = 0;
                record.successes = 0;
            });
        }
    }

    /// The probe settings of the destination with this id, if it still has this key.
    fn request(&self, destination: &Destination, key: DestinationKey) -> Option<ProbeRequest<'_>> {
        let (index, destination) = self.cluster().destination(destination.id())?;
        let is_same = self.state().destination(index).key() == key;
        is_same.then(|| ProbeRequest::of(self.check(), destination))
    }

    /// True if the destination still exists and its probe settings are unchanged.
    fn is_current(
        &self,
        shared: &Shared,
        destination: &Destination,
        state: &DestinationState,
    ) -> bool {
        // The check may have changed while the probe ran.
        let now = Self::find(shared, self.cluster().id());
        let current = now
            .as_ref()
            .and_then(|now| now.request(destination, state.key()));
        current == Some(ProbeRequest::of(self.check(), destination))
    }

    fn cluster(&self) -> &Cluster {
        self.generation.snapshot().cluster_at(self.index)
    }

    fn state(&self) -> &ClusterState {
        self.generation.cluster(self.index)
    }

    fn check(&self) -> &ActiveCheck {
        self.cluster()
            .active_check()
            .expect("a target is found only if its check is on")
    }

    fn destinations(&self) -> impl Iterator<Item = (&Destination, &Arc<DestinationState>)> {
        self.cluster()
            .destinations()
            .iter()
            .zip(self.state().destinations())
    }
}

/// The result of one probe.
struct Finding<'a> {
    destination: &'a Destination,
    state: &'a DestinationState,
    result: Result<StatusCode, ProbeError>,
    elapsed: Duration,
}

/// Probes the destinations in `keys`, and applies all results together after the last probe has
/// ended. Those that their agent has in maintenance are left out.
///
/// Probes end early, without a result, when their destination is removed or its probe settings
/// change. Cancel safe: dropping the future ends all probes and applies nothing.
pub(crate) async fn run_cycle(prober: &Prober, target: &ProbeTarget, keys: &[DestinationKey]) {
    let chosen: HashSet<_> = keys.iter().collect();
    let probes = target
        .destinations()
        .filter(|(_, state)| chosen.contains(&state.key()))
        .filter(|(_, state)| !state.agent_words(target.cluster()).is_in_maintenance())
        .map(|(destination, state)| probe_one(prober, target, destination, state));
    // Collected, so that the stream borrows nothing from the iterator above.
    let probes: Vec<_> = probes.collect();
    let findings: Vec<_> = stream::iter(probes)
        .buffer_unordered(PARALLEL)
        .filter_map(std::future::ready)
        .collect()
        .await;
    conclude(prober, target, &findings);
}

/// Probes one destination. `None` if the result is no longer relevant.
async fn probe_one<'a>(
    prober: &'a Prober,
    target: &'a ProbeTarget,
    destination: &'a Destination,
    state: &'a DestinationState,
) -> Option<Finding<'a>> {
    let probe = async {
        let _turn = prober
            .turns
            .acquire()
            .await
            .expect("the semaphore is never closed");
        // The timeout begins after the wait for a slot.
        let limit = target.check().timeout();
        let begun = Instant::now();
        let probe = prober.probe.probe(target.cluster(), destination);
        let result = match timeout(limit, contained(probe)).await {
            Ok(Ok(result)) => result,
            Ok(Err(Panicked(message))) => Err(ProbeError::Panicked(message)),
            Err(_) => Err(ProbeError::TimedOut(limit)),
        };
        Finding {
            destination,
            state,
            result,
            elapsed: begun.elapsed(),
        }
    };
    let mut generations = prober.shared.generations();
    let out_of_date = async {
        while target.is_current(&prober.shared, destination, state) {
            if generations.changed().await.is_err() {
                // The proxy has ended: no further generation comes.
                return std::future::pending().await;
            }
        }
    };
    // Checked first, so that no outdated result counts.
    tokio::select! {
        biased;
        () = out_of_date => None,
        finding = probe => Some(finding),
    }
}

fn conclude(prober: &Prober, target: &ProbeTarget, findings: &[Finding<'_>]) {
    let check = target.check();
    let Some(policy) = prober.shared.health_policies().find(check.policy()) else {
        // A configuration with an unknown policy is rejected before it gets here.
        return;
    };
    let mut changes = Vec::new();
    // Results may be outdated by the time the last probe ends.
    let is_current = |f: &&Finding<'_>| target.is_current(&prober.shared, f.destination, f.state);
    for finding in findings.iter().filter(is_current) {
        let text: Arc<str> = describe(check.probe(), &finding.result).into();
        if let Some(tracer) = prober.shared.tracer() {
            let result = finding.result.as_ref().copied().map_err(ProbeError::name);
            trace::probed(tracer, finding.state, result, finding.elapsed);
        }
        let state = finding.state.health();
        // Counted first, since the policy gets the counts with this probe.
        let record = state.update(|record| {
            count(record, &finding.result, Arc::clone(&text));
            record.clone()
        });
        let probed = Probed {
            cluster: target.cluster(),
            check,
            destination: finding.destination,
            result: finding.result.as_ref().copied(),
            elapsed: finding.elapsed,
            health: record.health,
            failures: record.failures,
            successes: record.successes,
        };
        // The policy runs without a lock, since it may read the state of the proxy.
        let health = match contained_call(|| policy.evaluate(&probed)) {
            Ok(health) => health,
            Err(Panicked(message)) => {
                tracing::error!(
                    target: targets::HEALTH,
                    policy = check.policy(),
                    destination = %finding.destination.id(),
                    message,
                    "the health policy panicked; the destination's health stays unchanged"
                );
                continue;
            }
        };
        if health == record.health {
            continue;
        }
        let reason: Arc<str> = match record.failures {
            0 | 1 => text,
            failures => format!("{failures} probes in a row failed, the last: {text}").into(),
        };
        state.update(|record| {
            record.health = health;
            record.since = Some(Timestamp::now());
            record.reason = Some(Arc::clone(&reason));
        });
        changes.push((finding.destination, (record.health, health, reason)));
    }
    if changes.is_empty() {
        return;
    }
    // Once per round: it makes requests compute the candidates again.
    target.state().live().health_changed();
    for (destination, (before, health, reason)) in changes {
        log(target, destination, before, health, &reason);
    }
}

fn count(record: &mut HealthRecord, result: &Result<StatusCode, ProbeError>, text: Arc<str>) {
    record.probes += 1;
    record.last_result = Some(text);
    // Only consecutive results count.
    if result.as_ref().is_ok_and(StatusCode::is_success) {
        record.failures = 0;
        record.successes = record.successes.saturating_add(1);
    } else {
        record.failures = record.failures.saturating_add(1);
        record.successes = 0;
    }
}

fn describe(kind: &ProbeKind, result: &Result<StatusCode, ProbeError>) -> String {
    match result {
        Ok(_) if *kind == ProbeKind::Tcp => "connected".to_owned(),
        Ok(StatusCode::OK) if matches!(kind, ProbeKind::Grpc(_)) => "answered SERVING".to_owned(),
        Ok(status) => format!("answered {status}"),
        Err(error) => with_causes(error),
    }
}

fn log(target: &ProbeTarget, destination: &Destination, before: Health, now: Health, reason: &str) {
    // One event per change, not one per probe.
    macro_rules! event {
        ($level:ident) => {
            tracing::$level!(
                target: targets::HEALTH,
                cluster = %target.cluster().id(),
                destination = %destination.id(),
                address = %destination.health_address(),
                path = target.check().path_at(destination),
                %before,
                health = %now,
                reason,
                "the health of a destination has changed"
            )
        };
    }
    match now {
        Health::Unhealthy => event!(warn),
        Health::Healthy | Health::Unknown => event!(info),
    }
}
