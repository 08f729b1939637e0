//! Live state of one destination.

use std::fmt;
use std::hash::Hasher;
use std::ops::Deref;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use proxy_model::compiled::DestinationAddress;
use proxy_model::{ClusterId, DestinationId};

use crate::health::HealthState;
use crate::observe::Traffic;
use crate::observe::{DestinationMetrics, GaugeGuard, InFlightGuard};

/// Names a destination for the life of the process: never given to another one, not even to one of the same id and
/// address that comes back after it was removed. Pools file their connections under it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct DestinationKey(u64);

impl DestinationKey {
    fn next() -> Self {
        static NEXT: AtomicU64 = AtomicU64::new(1);
        Self(NEXT.fetch_add(1, Ordering::Relaxed))
    }
}

/// Spreads [`DestinationKey`]s over a table. They are given in order by the process itself, so that nobody can choose ones
/// that collide.
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

/// Live state of one destination, carried over from generation to generation while its address stays the same.
#[derive(Debug)]
pub(crate) struct DestinationState {
    key: DestinationKey,
    cluster: ClusterId,
    id: DestinationId,
    address: DestinationAddress,
    removed: AtomicBool,
    health: HealthState,
    metrics: DestinationMetrics,
    traffic: Traffic,
}

impl DestinationState {
    /// A destination of which nothing is known yet.
    pub(crate) fn new(cluster: ClusterId, id: DestinationId, address: DestinationAddress) -> Self {
        Self {
            key: DestinationKey::next(),
            cluster,
            id,
            address,
            removed: AtomicBool::new(false),
            health: HealthState::default(),
            metrics: DestinationMetrics::default(),
            traffic: Traffic::default(),
        }
    }

    /// Names it for the life of the process.
    pub(crate) fn key(&self) -> DestinationKey {
        self.key
    }

    /// The cluster that it belongs to, as it was spelled when the destination first came.
    pub(crate) fn cluster(&self) -> &ClusterId {
        &self.cluster
    }

    /// Its id, as it was spelled when the destination first came.
    pub(crate) fn id(&self) -> &DestinationId {
        &self.id
    }

    /// Where it is. This never changes: a destination with another address is another destination.
    pub(crate) fn address(&self) -> &DestinationAddress {
        &self.address
    }

    /// Requests that were sent to it and whose response has not ended.
    pub(crate) fn in_flight(&self) -> u32 {
        self.metrics.in_flight()
    }

    /// Counts a request until the guard is dropped.
    #[inline]
    pub(crate) fn enter(&self) -> InFlightGuard {
        self.metrics.enter()
    }

    /// Counts an open connection until the guard is dropped.
    pub(crate) fn connection_opened(&self) -> GaugeGuard {
        self.metrics.connects.increment();
        self.metrics.failures.connected();
        self.metrics.open_connections.enter()
    }

    /// Whether it is no longer part of the configuration, or has another address now. Requests in flight may finish,
    /// idle connections should close, and a connection whose request ends should not be kept.
    pub(crate) fn is_removed(&self) -> bool {
        self.removed.load(Ordering::Relaxed)
    }

    pub(crate) fn mark_removed(&self) {
        self.removed.store(true, Ordering::Relaxed);
    }

    /// What is known of its health.
    pub(crate) fn health(&self) -> &HealthState {
        &self.health
    }

    /// What is counted of it.
    pub(crate) fn metrics(&self) -> &DestinationMetrics {
        &self.metrics
    }

    /// What it did in the last minute.
    pub(crate) fn traffic(&self) -> &Traffic {
        &self.traffic
    }
}

/// A request in flight, with the destination that it is at. Dropped, it is in flight no more.
#[must_use = "dropped at once, it counts nothing"]
pub(crate) struct InFlight {
    destination: Arc<DestinationState>,
    _guard: InFlightGuard,
}

impl InFlight {
    /// `guard` is of `destination`.
    pub(crate) fn new(destination: Arc<DestinationState>, guard: InFlightGuard) -> Self {
        Self {
            destination,
            _guard: guard,
        }
    }
}

impl Deref for InFlight {
    type Target = DestinationState;

    fn deref(&self) -> &DestinationState {
        &self.destination
    }
}

impl fmt::Debug for InFlight {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("InFlight").field(&self.id).finish()
    }
}
