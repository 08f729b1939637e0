//! The time at which each part is read again.

use std::collections::HashSet;
use std::sync::Arc;

use discovery_core::Backoff;
use proxy_model::Problem;
use tokio::time::Instant;

use super::listing::TIMED_OUT;
use super::memory::{Failed, KnownService, Memory, PendingRead, Read};
use super::probe::Probe;
use crate::cache::StaleAnswer;
use crate::calls::CallError;
use crate::hash::fnv1a;
use crate::model::{PartitionStatus, ReplicaStatus, Service, ServiceKind, ServiceStatus};
use crate::options::ServiceFabricOptions;
use crate::service::PartitionDescription;

/// Number of fast refreshes of an entity that stays unchanged or keeps failing. A replica may be faulty for
/// half an hour.
const MOST_FAST_POLLS: u32 = 6;

/// The work of a cycle for a known service.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Plan {
    /// No work: the service is unchanged.
    Keep,
    /// Resolve the service and compare its endpoints with the known ones.
    Resolve,
    /// Read the service's partitions and replicas.
    Read,
}

/// The facts that decide about the work of a cycle.
#[derive(Clone, Copy, Debug)]
pub(super) struct Cycle<'a> {
    pub(super) now: Instant,
    /// True if everything is listed, false if only entities that are likely to change soon are read.
    pub(super) is_whole: bool,
    /// The start of the previous complete cycle. `None` if there was none, so that nothing counts as new.
    pub(super) before: Option<Instant>,
    /// Services that requests cannot reach. The known state of their replicas is not trusted.
    pub(super) unreachable: &'a HashSet<Arc<str>>,
    pub(super) options: &'a ServiceFabricOptions,
}

impl Cycle<'_> {
    /// Returns the work for a service that was read before.
    pub(super) fn plan(
        &self,
        known: &KnownService,
        read: &Read,
        info: &Service,
        probe: Option<&Probe>,
    ) -> Plan {
        if known.failed.is_some() {
            return Plan::Read;
        }
        if self.unreachable.contains(&known.name) || !is_same(&known.info, info) {
            return Plan::Read;
        }
        if let Some(pending_read) = read.pending_read {
            return if self.is_whole || pending_read.polls_fast() {
                Plan::Read
            } else {
                Plan::Keep
            };
        }
        if !self.is_whole {
            return Plan::Keep;
        }
        let unchanged = info.service_kind == ServiceKind::Stateless
            && self.now < read.refresh_at
            && read
                .baseline
                .as_ref()
                .zip(probe)
                .is_some_and(|(baseline, probe)| {
                    probe.is_same(&known.name, baseline, &read.description.partitions)
                });
        match (unchanged, read.resolved.is_empty()) {
            (false, _) => Plan::Read,
            (true, true) => Plan::Keep,
            (true, false) => Plan::Resolve,
        }
    }

    /// Returns the description of an old response, known `at` some time or since the last complete cycle,
    /// that replaces a failed call.
    pub(super) fn stale(&self, at: Option<Instant>, error: &CallError) -> StaleAnswer {
        StaleAnswer::new(at.or(self.before).unwrap_or(self.now), error)
    }

    /// Returns the time of the next attempt after this many consecutive time-outs: the next cycle at first,
    /// and then after growing waits.
    fn retry_at(&self, slow_in_a_row: u32) -> Instant {
        let period = self.options.discovery_period;
        let backoff = Backoff::new(period, self.options.full_refresh_period.max(period));
        Instant::now() + backoff.limit(slow_in_a_row)
    }

    /// Returns true if an entity that was too slow is skipped in this cycle.
    pub(super) fn leaves_alone(&self, failed: &Failed) -> bool {
        failed
            .retry_at
            .is_some_and(|at| !self.is_whole || self.now < at)
    }

    /// Returns a failure that follows `before`, of an entity that had little time since another one was too slow.
    /// It is skipped until the next complete cycle, and does not count as slow.
    pub(super) fn without_time(&self, before: Option<&Failed>, problem: Problem) -> Failed {
        let mut failed = Failed::after(before, problem);
        failed.slow_in_a_row = before.map_or(0, |before| before.slow_in_a_row);
        failed.retry_at = Some(self.retry_at(failed.slow_in_a_row));
        failed
    }

    /// Returns a failure that follows `before`. An entity that was too slow is skipped for a while.
    pub(super) fn failed(&self, before: Option<&Failed>, problem: Problem) -> Failed {
        let mut failed = Failed::after(before, problem);
        if failed.problem.code == TIMED_OUT {
            let slow_before = before.map_or(0, |before| before.slow_in_a_row);
            failed.slow_in_a_row = slow_before.saturating_add(1);
            failed.retry_at = Some(self.retry_at(failed.slow_in_a_row));
        }
        failed
    }

    /// Returns the time after which an entity read now is read again in any case. It differs by name, to
    /// spread the reads over cycles.
    pub(super) fn refresh_at(&self, name: &str) -> Instant {
        let share = f64::from(spread(name)) / f64::from(u32::MAX);
        self.now + self.options.full_refresh_period.mul_f64(0.5 + 0.5 * share)
    }
}

impl PendingRead {
    /// Returns true if the next read should be a fast refresh.
    pub(super) fn polls_fast(self) -> bool {
        self.unchanged < MOST_FAST_POLLS
    }
}

/// Returns the reason why a service is likely to change soon.
pub(super) fn pending_read(
    info: &Service,
    partitions: &[PartitionDescription],
    statuses: &[PartitionStatus],
    before: Option<&Read>,
    is_new: bool,
) -> Option<PendingRead> {
    let changed =
        before.is_some_and(|before| !is_alike(&before.description.partitions, partitions));
    let is_ready = |status: &PartitionStatus| {
        matches!(status, PartitionStatus::Ready | PartitionStatus::Invalid)
    };
    let mut replicas = partitions.iter().flat_map(|partition| &partition.replicas);
    let why = if is_new {
        "it is new"
    } else if changed {
        "it has just changed"
    } else if !matches!(
        info.service_status,
        ServiceStatus::Active | ServiceStatus::Unknown
    ) {
        "the service is not active"
    } else if !statuses.iter().all(is_ready) {
        "a partition is not ready"
    } else if replicas.any(|replica| replica.replica_status != ReplicaStatus::Ready) {
        "a replica is not ready"
    } else {
        return None;
    };
    Some(counted(why, before, is_new || changed))
}

/// Returns the pending state of a service that was read as well as possible and will be read again soon.
pub(super) fn counted(why: &'static str, before: Option<&Read>, is_fresh: bool) -> PendingRead {
    let before = before.and_then(|before| before.pending_read);
    let unchanged = match before {
        Some(before) if !is_fresh => before.unchanged.saturating_add(1),
        _ => 0,
    };
    PendingRead { why, unchanged }
}

/// The start of the next cycle, if it is earlier than the interval.
pub(super) fn wake(
    memory: &Memory,
    options: &ServiceFabricOptions,
    now: Instant,
) -> Option<Instant> {
    let period = options.discovery_period;
    let listing = memory.listed_at.map(|at| at + period);
    if memory.polls_fast() {
        let soon = now + options.fast_period;
        // A cycle that takes longer than the period must not be followed by the next one at once.
        let listing = listing.filter(|listing| *listing > now);
        return Some(listing.map_or(soon, |listing| soon.min(listing)));
    }
    listing.filter(|_| !memory.was_whole)
}

impl Memory {
    /// Returns true if an entity is likely to change soon.
    fn polls_fast(&self) -> bool {
        let failing = self.lists.values().filter_map(|list| list.failed.as_ref());
        let mut failing = failing.map(|failed| failed.in_a_row);
        failing.any(|in_a_row| in_a_row <= MOST_FAST_POLLS)
            || self.services.values().any(|service| service.polls_fast())
    }
}

impl KnownService {
    /// Returns true if the service is likely to change soon.
    pub(super) fn polls_fast(&self) -> bool {
        match (&self.failed, &self.read) {
            (Some(failed), _) => failed.retry_at.is_none() && failed.in_a_row <= MOST_FAST_POLLS,
            (None, Some(read)) => read.pending_read.is_some_and(PendingRead::polls_fast),
            (None, None) => false,
        }
    }
}

/// Returns true if the cluster describes a service as before, ignoring its health.
pub(super) fn is_same(before: &Service, now: &Service) -> bool {
    let facts = |service: &Service| {
        (
            service.service_kind.clone(),
            service.service_status.clone(),
            service.type_name.clone(),
            service.manifest_version.clone(),
        )
    };
    facts(before) == facts(now)
}

/// Returns true if the replicas and their addresses are unchanged, ignoring their health.
fn is_alike(before: &[PartitionDescription], now: &[PartitionDescription]) -> bool {
    before.len() == now.len()
        && before.iter().zip(now).all(|(before, now)| {
            before.information == now.information
                && before.replicas.len() == now.replicas.len()
                && before.replicas.iter().zip(&now.replicas).all(|(a, b)| {
                    a.replica_id == b.replica_id
                        && a.replica_status == b.replica_status
                        && a.replica_role == b.replica_role
                        && a.address == b.address
                })
        })
}

/// Returns a number that differs by name and is equal for one name in every process.
fn spread(name: &str) -> u32 {
    let hash = fnv1a(&[name]);
    // The last bytes of a name only reach the low bits, so these are spread over all.
    let spread = hash.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32;
    u32::try_from(spread).unwrap_or(u32::MAX)
}
