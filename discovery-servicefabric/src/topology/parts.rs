//! Partitions and replicas of one service.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::OnceLock;
use std::time::Duration;

use proxy_model::Problem;
use tokio::time::Instant;

use super::listing::{TIMED_OUT, unreadable};
use super::memory::{Failed, KnownService, Read};
use super::resolving::Resolved;
use super::settling::Cycle;
use super::{PATIENCE, Topology};
use crate::cache::{Observed, StaleAnswer};
use crate::calls::{CallError, CallErrorKind, ClusterCalls};
use crate::model::{Partition, PartitionInformation, PartitionStatus, Replica, ServiceStatus};
use crate::options::EndpointSource;
use crate::service::PartitionDescription;

/// The code of a partition that could not be read while the others of its service are served.
pub(crate) const PARTITION_NOT_READ: &str = "partition_not_read";

/// Maximum number of partitions of a service.
const MAX_PARTITIONS: usize = 10_000;

/// The time limit for reading a partition after another one of its service was too slow.
const IMPATIENCE: Duration = Duration::from_secs(1);

/// The time for which reads of further partitions begin after one was too slow.
const LAST_ORDERS: Duration = Duration::from_secs(10);

/// Maximum number of replicas of a partition.
const MAX_REPLICAS: usize = 10_000;

pub(super) type Watched<'a> = Observed<'a, Arc<dyn ClusterCalls>>;

/// The partitions of a service, as they were read.
#[derive(Default)]
pub(super) struct Parts {
    pub(super) partitions: Vec<PartitionDescription>,
    pub(super) statuses: Vec<PartitionStatus>,
    pub(super) resolved: BTreeMap<String, Resolved>,
    /// The oldest of the old responses among them, also if the naming service did not respond.
    pub(super) stale: Option<StaleAnswer>,
    /// Partitions that could not be read, by id, and why.
    pub(super) unread: BTreeMap<String, Failed>,
}

/// The reason why no partition of a service could be read.
pub(super) struct NoneRead {
    pub(super) problem: Problem,
    /// The partitions that could not be read, by id. Those that hang take no time of the next attempt.
    pub(super) unread: BTreeMap<String, Failed>,
    /// True if partitions had little or no time, because others hang. The next attempt may read them.
    pub(super) lacked_time: bool,
}

impl From<Problem> for NoneRead {
    fn from(problem: Problem) -> Self {
        Self {
            problem,
            unread: BTreeMap::new(),
            lacked_time: false,
        }
    }
}

impl Topology {
    /// Reads partitions and replicas. A partition that vanishes meanwhile is not taken for one without replicas: the
    /// partitions are read once more.
    pub(super) async fn read_parts(
        &self,
        cycle: &Cycle<'_>,
        observed: &Watched<'_>,
        service: &KnownService,
        service_id: &str,
    ) -> Result<Parts, NoneRead> {
        let slow = OnceLock::new();
        let mut reading = Reading {
            cycle,
            observed,
            service,
            service_id,
            slow: &slow,
            is_last: false,
        };
        if let Some(parts) = self.try_parts(reading).await? {
            return Ok(parts);
        }
        // The second attempt has the same little time for what was slow, counted from its own beginning.
        let still_slow = OnceLock::new();
        if slow.get().is_some() {
            let _ = still_slow.set(Instant::now());
        }
        reading.slow = &still_slow;
        reading.is_last = true;
        let parts = self.try_parts(reading).await?;
        parts.ok_or_else(|| {
            let message = "a partition of the service is listed and does not exist";
            Problem::error("", "not_read", message).into()
        })
    }

    /// Reads the partitions. Returns `None` if one has disappeared meanwhile.
    async fn try_parts(&self, reading: Reading<'_>) -> Result<Option<Parts>, NoneRead> {
        let Reading {
            observed,
            service,
            service_id,
            ..
        } = reading;
        let listed = match self.limited(observed.partitions(service_id)).await {
            Ok(partitions) => partitions,
            Err(error) if error.is_gone() => Vec::new(),
            Err(error) => {
                return Err(unreadable("", "the partitions of the service", &error).into());
            }
        };
        let status = &service.info.service_status;
        if listed.is_empty() && matches!(status, ServiceStatus::Active | ServiceStatus::Upgrading) {
            // One that is being created or deleted has none, any other one has: the lists do not agree.
            let message =
                "the service is listed as active, and the cluster lists no partition of it";
            return Err(Problem::error("", "no_partitions", message).into());
        }
        let mut listed = at_most(listed, MAX_PARTITIONS, "partitions of a service")?;
        listed.sort_by(|a, b| place_of(a).cmp(&place_of(b)));
        listed.dedup_by(|a, b| a.partition_information.id == b.partition_information.id);
        let mut read = Vec::with_capacity(listed.len());
        let all = self.try_all(listed, |partition| self.read_replicas(reading, partition));
        for part in all.await? {
            let Some(part) = part else { return Ok(None) };
            read.push(part);
        }
        read.sort_by(|a, b| place_of(&a.partition).cmp(&place_of(&b.partition)));
        if let Some(none) = nothing_read(&read) {
            return Err(none);
        }
        let mut parts = Parts::default();
        for part in read {
            let information = part.partition.partition_information;
            if let Some(resolved) = part.resolved {
                parts.resolved.insert(information.id.clone(), resolved);
            }
            if let Some(failed) = part.unread {
                parts.unread.insert(information.id.clone(), failed);
            }
            parts.stale = StaleAnswer::older(parts.stale, part.unresolved);
            parts.statuses.push(part.partition.partition_status);
            parts.partitions.push(PartitionDescription {
                information,
                replicas: part.replicas,
                ..PartitionDescription::default()
            });
        }
        parts.partitions.shrink_to_fit();
        Ok(Some(parts))
    }

    /// Reads the replicas. Returns `None` if the partition has disappeared meanwhile.
    async fn read_replicas(
        &self,
        reading: Reading<'_>,
        partition: Partition,
    ) -> Result<Option<Part>, Problem> {
        let Reading {
            cycle,
            observed,
            service,
            service_id,
            slow,
            is_last,
        } = reading;
        let id = partition.partition_information.id.as_str();
        let read = service.read.as_deref();
        let before = service.unread_part(id);
        if let Some(failed) = before.filter(|failed| cycle.leaves_alone(failed)) {
            return Ok(Some(Part::unread(failed.clone(), partition)));
        }
        // The last known good state of a partition serves for a while. No other partition waits for it.
        let patience = match slow.get() {
            None => PATIENCE,
            Some(since) if since.elapsed() < LAST_ORDERS => IMPATIENCE,
            Some(_) => Duration::ZERO,
        };
        let unread = |problem: Problem| {
            let mut failed = match problem.code == TIMED_OUT && patience < PATIENCE {
                true => cycle.without_time(before, problem),
                false => cycle.failed(before, problem),
            };
            if before.is_none() {
                failed.since = read.and_then(Read::last_read).unwrap_or(failed.since);
            }
            failed
        };
        if patience.is_zero() {
            let message = format!("the partition {id} was not read: others took too long");
            let failed = before.cloned();
            let failed = failed.unwrap_or_else(|| unread(Problem::error("", "not_read", message)));
            return Ok(Some(Part::without_time(failed, partition)));
        }
        let what = format!("the replicas of the partition {id}");
        let replicas = match self.within(patience, observed.replicas(id)).await {
            Ok(replicas) => at_most(replicas, MAX_REPLICAS, "replicas").map_err(|mut problem| {
                problem.message = format!("{what} are not used: {}", problem.message);
                problem
            }),
            Err(error) if error.is_gone() && !is_last => return Ok(None),
            Err(error) => Err(unreadable("", &what, &error)),
        };
        let mut replicas = match replicas {
            Ok(replicas) => replicas,
            Err(problem) => {
                let timed_out = problem.code == TIMED_OUT;
                if timed_out {
                    slow.get_or_init(Instant::now);
                }
                let failed = unread(problem);
                return Ok(Some(match timed_out && patience < PATIENCE {
                    true => Part::without_time(failed, partition),
                    false => Part::unread(failed, partition),
                }));
            }
        };
        replicas.sort_by_key(|replica| replica.replica_id);
        replicas.dedup_by_key(|replica| replica.replica_id);
        // It is kept, for each of tens of thousands of partitions.
        replicas.shrink_to_fit();
        let mut part = Part {
            partition,
            replicas,
            resolved: None,
            unresolved: None,
            unread: None,
            lacked_time: false,
        };
        if self.options.endpoint_source == EndpointSource::ReplicasAndResolve {
            let before = service.read.as_deref();
            self.leave_out_drained(service_id, &mut part, before).await;
        }
        Ok(Some(part))
    }

    async fn leave_out_drained(&self, service_id: &str, part: &mut Part, before: Option<&Read>) {
        let information = &part.partition.partition_information;
        let before = before.and_then(|read| read.resolved.get(&information.id));
        let now = Instant::now();
        let asked = self.resolved(service_id, information, &part.replicas, before);
        match asked.await {
            Ok(mut resolved) => {
                if resolved.names_none(&part.replicas) {
                    // An instance that is about to close is better than a partition without any.
                    let message = format!(
                        "it names none of the replicas of the partition {} that are ready",
                        information.id
                    );
                    let kind = CallErrorKind::Failed;
                    let error = CallError::new(kind, "the naming service", message);
                    part.unresolved = Some(StaleAnswer::new(now, &error));
                } else {
                    resolved.keep_named(&mut part.replicas);
                }
                part.resolved = Some(resolved);
            }
            Err(error) => {
                if let Some(before) = before {
                    before.keep_undrained(&mut part.replicas);
                }
                part.resolved = before.cloned();
                part.unresolved = Some(StaleAnswer::new(now, &error));
            }
        }
    }

    /// Resolves a partition with the naming service. The gateway may answer from a cache, so a result that would
    /// remove a replica is checked once: a second call with its version returns a newer result, or confirms this
    /// one.
    async fn resolved(
        &self,
        service_id: &str,
        information: &PartitionInformation,
        replicas: &[Replica],
        before: Option<&Resolved>,
    ) -> Result<Resolved, CallError> {
        let version = before.map(|before| before.version.as_str());
        let call = self.calls.resolve(service_id, information, version);
        let first = Resolved::new(self.limited(call).await?);
        let is_certain = version == Some(first.version.as_str());
        if is_certain || !first.drops_more(replicas, before) {
            return Ok(first);
        }
        let call = self
            .calls
            .resolve(service_id, information, Some(&first.version));
        Ok(Resolved::new(self.limited(call).await?))
    }

    /// Returns true if the naming service gives the same addresses as when the service was read. A failed
    /// call counts as unchanged.
    pub(super) async fn is_resolved_as_before(
        &self,
        service: &KnownService,
        service_id: &str,
    ) -> bool {
        let Some(read) = &service.read else {
            return false;
        };
        let partitions = read.description.partitions.iter();
        let current = partitions.map(|partition| partition.information.clone());
        let same = self.all(current.collect(), |information| async move {
            let Some(before) = read.resolved.get(&information.id) else {
                return false;
            };
            let version = Some(before.version.as_str());
            let call = self.calls.resolve(service_id, &information, version);
            let answer = self.limited(call).await;
            answer.is_ok_and(|now| Resolved::new(now).addresses == before.addresses)
        });
        same.await.into_iter().all(|same| same)
    }
}

/// The context for reading the partitions of one service.
#[derive(Clone, Copy)]
struct Reading<'a> {
    cycle: &'a Cycle<'a>,
    observed: &'a Watched<'a>,
    service: &'a KnownService,
    service_id: &'a str,
    /// The time at which the first read of a partition timed out. Reads that begin soon after it have a
    /// shorter time limit; later partitions are skipped until the next cycle.
    slow: &'a OnceLock<Instant>,
    /// True if the partitions were listed again, because one of them did not exist. Another one that does
    /// not exist then counts as unreadable.
    is_last: bool,
}

/// Returns the reason why none of the partitions could be read, if that is so.
fn nothing_read(read: &[Part]) -> Option<NoneRead> {
    let failed = read.iter().map(|part| part.unread.as_ref());
    let failed: Vec<_> = failed.collect::<Option<_>>()?;
    let slow = failed.iter().find(|of| of.problem.code == TIMED_OUT);
    let problem = slow.or_else(|| failed.first())?.problem.clone();
    let ids = read
        .iter()
        .map(|part| &part.partition.partition_information.id);
    let unread = ids.cloned().zip(failed.into_iter().cloned());
    Some(NoneRead {
        problem,
        unread: unread.collect(),
        lacked_time: read.iter().any(|part| part.lacked_time),
    })
}

/// A partition, as it was read.
struct Part {
    partition: Partition,
    replicas: Vec<Replica>,
    resolved: Option<Resolved>,
    unresolved: Option<StaleAnswer>,
    unread: Option<Failed>,
    /// True if it had little or no time, because others hang.
    lacked_time: bool,
}

impl Part {
    /// Creates the part of a partition that could not be read.
    fn unread(failed: Failed, partition: Partition) -> Self {
        Self {
            partition,
            replicas: Vec::new(),
            resolved: None,
            unresolved: None,
            unread: Some(failed),
            lacked_time: false,
        }
    }

    /// Creates the part of a partition that had little or no time to be read.
    fn without_time(failed: Failed, partition: Partition) -> Self {
        Self {
            lacked_time: true,
            ..Self::unread(failed, partition)
        }
    }
}

/// Ranges by their lowest key, named partitions by name.
fn place_of(partition: &Partition) -> (Option<i64>, Option<&str>, &str) {
    let information = &partition.partition_information;
    (
        information.low_key,
        information.name.as_deref(),
        &information.id,
    )
}

/// The list, unless it is too long.
fn at_most<T>(list: Vec<T>, most: usize, what: &str) -> Result<Vec<T>, Problem> {
    let count = list.len();
    if count <= most {
        return Ok(list);
    }
    let message = format!("there are {count} {what}, more than {most}");
    Err(Problem::error("", "too_large", message))
}
