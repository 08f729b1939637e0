//! The live state of one destination.

use std::hash::Hasher;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};

use parking_lot::Mutex;
use proxy_model::compiled::{Cluster, Destination, DestinationAddress};
use proxy_model::{ClusterId, DestinationId};
use tokio::time::Instant;

use super::Ineligible;
use crate::health::{AgentState, AgentWords, Health, HealthState};
use crate::observe::Traffic;
use crate::observe::{ConnectTimes, DestinationMetrics, GaugeGuard, InFlightGuard};

/// Identifies a destination for the life of the process. A key is never reused, not even for a
/// destination that is removed and comes back with the same id and address. Pools file connections
/// under it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct DestinationKey(u64);

impl DestinationKey {
    fn next() -> Self {
        static NEXT: AtomicU64 = AtomicU64::new(1);
        Self(NEXT.fetch_add(1, Ordering::Relaxed))
    }
}

/// A hasher for [`DestinationKey`]s. The process itself assigns the keys in order, so that no
/// attacker can choose keys that collide.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct KeyHasher(u64);

impl Hasher for KeyHasher {
    fn finish(&self) -> u64 {
        self.0
    }

    #[inline]
    fn write_u64(&mut self, key: u64) {
        // Fibonacci hashing: the table uses the high bits as well.
        self.0 = key.wrapping_mul(0x9e37_79b9_7f4a_7c15);
    }

    fn write(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.write_u64(self.0 ^ u64::from(*byte));
        }
    }
}

/// The live state of one destination, which each generation inherits while the address stays the
/// same.
#[derive(Debug)]
pub(crate) struct DestinationState {
    key: DestinationKey,
    cluster: ClusterId,
    id: DestinationId,
    address: Arc<DestinationAddress>,
    removed: AtomicBool,
    health: HealthState,
    /// Made with the first check of its agent.
    agent: OnceLock<Box<AgentState>>,
    drains_since: Mutex<Option<Instant>>,
    metrics: DestinationMetrics,
    /// The durations of the whole cluster.
    connect_times: Arc<ConnectTimes>,
    traffic: Traffic,
}

impl DestinationState {
    /// The state of a new destination.
    pub(crate) fn new(
        cluster: ClusterId,
        id: DestinationId,
        address: Arc<DestinationAddress>,
        connect_times: Arc<ConnectTimes>,
    ) -> Self {
        Self {
            key: DestinationKey::next(),
            cluster,
            id,
            address,
            removed: AtomicBool::new(false),
            health: HealthState::default(),
            agent: OnceLock::new(),
            drains_since: Mutex::default(),
            metrics: DestinationMetrics::default(),
            connect_times,
            traffic: Traffic::default(),
        }
    }

    /// The key of the destination for the life of the process.
    pub(crate) fn key(&self) -> DestinationKey {
        self.key
    }

    /// The cluster of the destination, as spelled in its first configuration.
    pub(crate) fn cluster(&self) -> &ClusterId {
        &self.cluster
    }

    /// The id of the destination, as spelled in its first configuration.
    pub(crate) fn id(&self) -> &DestinationId {
        &self.id
    }

    /// The address. It never changes: a destination with another address is a new one.
    pub(crate) fn address(&self) -> &DestinationAddress {
        &self.address
    }

    /// Number of requests that were sent and whose response has not ended.
    pub(crate) fn in_flight(&self) -> u32 {
        self.metrics.in_flight()
    }

    /// Counts a request as in flight until the guard is dropped.
    #[inline]
    pub(crate) fn enter(&self) -> InFlightGuard {
        self.metrics.enter()
    }

    /// The times of opening connections, of all destinations of the cluster.
    pub(crate) fn connect_times(&self) -> &ConnectTimes {
        &self.connect_times
    }

    /// Counts an open connection until the guard is dropped.
    pub(crate) fn connection_opened(&self) -> GaugeGuard {
        self.metrics.connects.increment();
        self.metrics.failures.connected();
        self.metrics.open_connections.enter()
    }

    /// True if the destination was removed from the configuration or has another address now.
    /// Requests in flight may finish, idle connections should close, and a connection whose request
    /// ends should not be kept.
    pub(crate) fn is_removed(&self) -> bool {
        self.removed.load(Ordering::Relaxed)
    }

    pub(crate) fn mark_removed(&self) {
        self.removed.store(true, Ordering::Relaxed);
    }

    /// The reason why the destination is unhealthy, if it is. `cluster` is its cluster: results of a
    /// disabled check do not count.
    pub(crate) fn fault(&self, cluster: &Cluster) -> Option<Ineligible> {
        let health = self.health();
        // Before the checks, since a program knows more than they do.
        if health.assigned() == Health::Unhealthy {
            return Some(Ineligible::Assigned);
        }
        if cluster.active_check().is_some() && health.active() == Health::Unhealthy {
            return Some(Ineligible::Unhealthy);
        }
        if self.agent_words(cluster).is_down() {
            return Some(Ineligible::AgentDown);
        }
        let is_failing = cluster.passive_check().is_some() && health.passive() == Health::Unhealthy;
        is_failing.then_some(Ineligible::Failing)
    }

    /// The health of the destination by all that counts.
    pub(crate) fn overall_health(&self, cluster: &Cluster) -> Health {
        let health = self.health();
        let checks = [
            Some(health.assigned()),
            cluster.active_check().map(|_| health.active()),
            cluster.passive_check().map(|_| health.passive()),
            self.health_by_agent(cluster),
        ];
        let of = |wanted| checks.contains(&Some(wanted));
        match (of(Health::Unhealthy), of(Health::Healthy)) {
            // A single one is enough to make it unhealthy.
            (true, _) => Health::Unhealthy,
            (false, true) => Health::Healthy,
            (false, false) => Health::Unknown,
        }
    }

    /// The words of its agent that are in force. `cluster` is its cluster: there are none while the check is disabled.
    pub(crate) fn agent_words(&self, cluster: &Cluster) -> AgentWords {
        let agent = cluster.agent_check().and_then(|_| self.agent.get());
        agent.map(|agent| agent.words()).unwrap_or_default()
    }

    fn health_by_agent(&self, cluster: &Cluster) -> Option<Health> {
        cluster.agent_check()?;
        let words = self.agent_words(cluster);
        match (words.is_down(), words.is_up()) {
            (true, _) => Some(Health::Unhealthy),
            (_, true) => Some(Health::Healthy),
            _ => None,
        }
    }

    /// The state of its agent.
    pub(crate) fn agent(&self) -> &AgentState {
        self.agent.get_or_init(Box::default)
    }

    /// The most connections by its agent, if that has said a number; `u32::MAX` is no limit.
    pub(crate) fn max_connections_by_agent(&self) -> Option<u32> {
        self.agent.get()?.max_connections()
    }

    /// True if it gets no clients but those that it has: it has no weight, or its agent says so.
    pub(crate) fn is_drained(&self, cluster: &Cluster, destination: &Destination) -> bool {
        let words = self.agent_words(cluster);
        let weight = words
            .weight
            .map(|weight| weight.hundredths(destination.weight()));
        words.drains() || weight.unwrap_or_else(|| destination.weight()) == 0
    }

    /// The time since when the destination keeps its clients only.
    pub(crate) fn drains_since(&self) -> Option<Instant> {
        *self.drains_since.lock()
    }

    /// Notes that the destination keeps its clients only, or does not any more.
    pub(crate) fn drain(&self, is_draining: bool) {
        let mut since = self.drains_since.lock();
        match is_draining {
            // The first time counts: a further configuration does not restart the drain.
            true => drop(since.get_or_insert_with(Instant::now)),
            false => *since = None,
        }
    }

    /// The state of the health checks.
    pub(crate) fn health(&self) -> &HealthState {
        &self.health
    }

    /// The metrics of the destination.
    pub(crate) fn metrics(&self) -> &DestinationMetrics {
        &self.metrics
    }

    /// The traffic of the last minute.
    pub(crate) fn traffic(&self) -> &Traffic {
        &self.traffic
    }
}
