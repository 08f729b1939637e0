//! Partitions and replicas of one service.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use proxy_model::Problem;

use super::Topology;
use super::listing::{TIMED_OUT, unreadable};
use super::memory::{Failed, KnownService, Read};
use super::resolving::Resolved;
use super::settling::Round;
use crate::cache::{Observed, StaleAnswer};
use crate::calls::{CallError, CallErrorKind, ClusterCalls};
use crate::model::{Partition, PartitionInformation, PartitionStatus, Replica, ServiceStatus};
use crate::options::EndpointSource;
use crate::service::PartitionDescription;

/// The code of a partition that could not be read while the others of its service are served.
pub(crate) const PARTITION_NOT_READ: &str = "partition_not_read";

/// The most partitions of a service.
const MAX_PARTITIONS: usize = 10_000;

/// The most replicas of a partition.
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
    /// Partitions of which nothing is known, by id, and why.
    pub(super) unread: BTreeMap<String, Failed>,
}

impl Topology {
    /// Reads partitions and replicas. A partition that vanishes meanwhile is not taken for one without replicas: the
    /// partitions are read once more.
    pub(super) async fn read_parts(
        &self,
        round: &Round<'_>,
        observed: &Watched<'_>,
        service: &KnownService,
        service_id: &str,
    ) -> Result<Parts, Problem> {
        for _ in 0..2 {
            if let Some(parts) = self.try_parts(round, observed, service, service_id).await? {
                return Ok(parts);
            }
        }
        let message = "a partition of the service is listed and does not exist";
        Err(Problem::error("", "not_read", message))
    }

    /// Reads the partitions. Returns `None` if one has disappeared meanwhile.
    async fn try_parts(
        &self,
        round: &Round<'_>,
        observed: &Watched<'_>,
        service: &KnownService,
        service_id: &str,
    ) -> Result<Option<Parts>, Problem> {
        let mut listed = match self.limited(observed.partitions(service_id)).await {
            Ok(partitions) => partitions,
            Err(error) if error.is_gone() => Vec::new(),
            Err(error) => return Err(unreadable("", "the partitions of the service", &error)),
        };
        let status = &service.info.service_status;
        if listed.is_empty() && matches!(status, ServiceStatus::Active | ServiceStatus::Upgrading) {
            // One that is being created or deleted has none, any other one has: the lists do not agree.
            let message =
                "the service is listed as active, and the cluster lists no partition of it";
            return Err(Problem::error("", "no_partitions", message));
        }
        at_most(listed.len(), MAX_PARTITIONS, "partitions")?;
        listed.sort_by(|a, b| place_of(a).cmp(&place_of(b)));
        listed.dedup_by(|a, b| a.partition_information.id == b.partition_information.id);
        let mut read = Vec::with_capacity(listed.len());
        let slow = AtomicBool::new(false);
        let reading = Reading {
            round,
            observed,
            service,
            service_id,
            slow: &slow,
        };
        let all = self.try_all(listed, |partition| self.read_replicas(reading, partition));
        for part in all.await? {
            match part {
                Some(part) => read.push(part),
                None => return Ok(None),
            }
        }
        read.sort_by(|a, b| place_of(&a.partition).cmp(&place_of(&b.partition)));
        if let Some(problem) = nothing_read(&read) {
            return Err(problem);
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
            round,
            observed,
            service,
            service_id,
            slow,
        } = reading;
        let id = partition.partition_information.id.as_str();
        let read = service.read.as_deref();
        let before = read.and_then(|read| read.unread.get(id));
        if let Some(failed) = before.filter(|failed| round.leaves_alone(failed)) {
            return Ok(Some(Part::unread(failed.clone(), partition)));
        }
        let is_known = read.is_some_and(|read| read.knows(id));
        if !is_known && slow.load(Ordering::Relaxed) {
            let failed = before.cloned().unwrap_or_else(|| {
                let message = format!("the partition {id} was not read: others took too long");
                Failed::after(None, Problem::error("", "not_read", message))
            });
            return Ok(Some(Part::unread(failed, partition)));
        }
        let mut replicas = match self.limited(observed.replicas(id)).await {
            Ok(replicas) => replicas,
            Err(error) if error.is_gone() => return Ok(None),
            Err(error) => {
                let what = format!("the replicas of the partition {id}");
                let problem = unreadable("", &what, &error);
                // The service has addresses of this partition, and keeps them.
                if is_known {
                    return Err(problem);
                }
                if problem.code == TIMED_OUT {
                    slow.store(true, Ordering::Relaxed);
                }
                return Ok(Some(Part::unread(round.failed(before, problem), partition)));
            }
        };
        at_most(replicas.len(), MAX_REPLICAS, "replicas in a partition")?;
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
        let now = tokio::time::Instant::now();
        let asked = self.resolved(service_id, information, &part.replicas, before);
        match asked.await {
            Ok(mut resolved) => {
                if resolved.names_none(&part.replicas) {
                    // Nothing is better than an instance that is about to close but a partition that nobody serves.
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

    /// Resolves a partition with the naming service. The gateway may answer from a cache, so a result that
    /// would remove a replica is checked once: a second call with its version returns a newer one, or
    /// certainly the same.
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
    round: &'a Round<'a>,
    observed: &'a Watched<'a>,
    service: &'a KnownService,
    service_id: &'a str,
    /// True if a partition was too slow. Further partitions without known state are then left for the next
    /// round.
    slow: &'a AtomicBool,
}

/// Returns the reason why none of the partitions could be read, if that is so.
fn nothing_read(read: &[Part]) -> Option<Problem> {
    let failed = read.iter().map(|part| part.unread.as_ref());
    let failed: Vec<_> = failed.collect::<Option<_>>()?;
    let slow = failed.iter().find(|of| of.problem.code == TIMED_OUT);
    let failed = slow.or_else(|| failed.first())?;
    Some(failed.problem.clone())
}

/// A partition, as it was read.
struct Part {
    partition: Partition,
    replicas: Vec<Replica>,
    resolved: Option<Resolved>,
    unresolved: Option<StaleAnswer>,
    unread: Option<Failed>,
}

impl Part {
    /// A partition of which nothing is known.
    fn unread(failed: Failed, partition: Partition) -> Self {
        Self {
            partition,
            replicas: Vec::new(),
            resolved: None,
            unresolved: None,
            unread: Some(failed),
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

fn at_most(count: usize, most: usize, what: &str) -> Result<(), Problem> {
    if count <= most {
        return Ok(());
    }
    let message = format!("the service has {count} {what}, more than {most}");
    Err(Problem::error("", "too_large", message))
}
