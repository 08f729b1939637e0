//! Resolution of partitions by the naming service: from a cache that may be stale.

use std::collections::BTreeMap;

use super::{EndpointKind, ResolvedEndpoint, ResolvedPartition};
use crate::cluster::{
    Cluster, ErrorCode, FabricError, FabricName, Partition, PartitionId, PartitionKey, ReplicaRole,
    ServiceKind,
};
use crate::hosting::{Span, Timestamp};

/// The gateway's cache of earlier answers.
#[derive(Clone, Debug)]
pub(in crate::cluster) struct ResolveCache {
    /// The maximum age of an answer.
    age: Span,
    answers: BTreeMap<PartitionId, ResolvedService>,
}

#[derive(Clone, Debug)]
struct ResolvedService {
    endpoints: Vec<ResolvedEndpoint>,
    lookup: u64,
    at: Timestamp,
}

impl ResolveCache {
    pub(in crate::cluster) fn new(age: Span) -> Self {
        Self {
            age,
            answers: BTreeMap::new(),
        }
    }

    pub(in crate::cluster) fn set_age(&mut self, age: Span) {
        self.age = age;
    }

    pub(in crate::cluster) fn forget(&mut self, partition: PartitionId) {
        self.answers.remove(&partition);
    }

    /// Returns a cached answer that is still valid: not too old, and not the one that the caller already has.
    fn usable(
        &self,
        partition: PartitionId,
        previous: Option<u64>,
        now: Timestamp,
    ) -> Option<&ResolvedService> {
        let answer = self.answers.get(&partition)?;
        let fresh = self.age.is_infinite() || now.since(answer.at) < self.age;
        // The client has this result already, and it did not work.
        let challenged = previous.is_some_and(|previous| previous >= answer.lookup);
        (fresh && !challenged).then_some(answer)
    }
}

impl Cluster {
    /// Returns the endpoints of the partition of a service that has `key`.
    ///
    /// The answer comes from a cache, and may be older than the listed replicas. A client that finds it stale
    /// passes the version of that answer as `previous`, and gets a newer one.
    ///
    /// # Errors
    ///
    /// `FABRIC_E_SERVICE_DOES_NOT_EXIST`; `FABRIC_E_INVALID_PARTITION_KEY` for a key that does not fit the
    /// service's scheme or that no partition has; `E_INVALIDARG` for a version that no answer had;
    /// `FABRIC_E_SERVICE_OFFLINE` if no replica is resolvable.
    pub fn resolve(
        &mut self,
        service: &FabricName,
        key: &PartitionKey,
        previous: Option<&str>,
    ) -> Result<ResolvedPartition, FabricError> {
        let previous = previous
            .filter(|text| !text.is_empty())
            .map(lookup_of)
            .transpose()?;
        let partition = self.partition_with(service, key)?;
        let (id, now) = (partition.id, self.now);
        let epoch = partition.created_as;
        if let Some(answer) = self.resolve_cache.usable(id, previous, now) {
            return Ok(resolved(partition, answer, epoch));
        }
        let endpoints = endpoints(partition);
        if endpoints.is_empty() {
            // A failure is not cached.
            self.resolve_cache.forget(id);
            return Err(FabricError::new(
                ErrorCode::ServiceOffline,
                format!("nothing of service '{service}' answers for this partition"),
            ));
        }
        let answer = ResolvedService {
            endpoints,
            lookup: partition.lookup,
            at: now,
        };
        let resolved = resolved(partition, &answer, epoch);
        self.resolve_cache.answers.insert(id, answer);
        Ok(resolved)
    }

    /// The partition of a service that has a key.
    ///
    /// # Errors
    ///
    /// `FABRIC_E_SERVICE_DOES_NOT_EXIST`; `FABRIC_E_INVALID_PARTITION_KEY`.
    pub fn partition_with(
        &self,
        service: &FabricName,
        key: &PartitionKey,
    ) -> Result<&Partition, FabricError> {
        let found = self.existing_service(service)?;
        let candidate = found.by_key.candidate(key);
        let partition = candidate.and_then(|id| self.partitions.get(&id));
        // The candidate may end before the key.
        let partition = partition.filter(|found| found.information.has(key) == Some(true));
        partition.ok_or_else(|| {
            FabricError::new(
                ErrorCode::InvalidPartitionKey,
                format!("no partition of service '{service}' has this key"),
            )
        })
    }
}

/// Returns the number in a version, which grows with each change.
fn lookup_of(version: &str) -> Result<u64, FabricError> {
    let mut parts = version.split(':');
    let lookup = parts.nth(1).and_then(|part| part.parse().ok());
    lookup.ok_or_else(|| {
        let shown: String = version.chars().take(120).collect();
        FabricError::invalid_argument(format!("'{shown}' is not the version of an answer"))
    })
}

fn resolved(partition: &Partition, answer: &ResolvedService, epoch: i64) -> ResolvedPartition {
    ResolvedPartition {
        service: partition.service.clone(),
        partition: partition.id,
        information: partition.information.clone(),
        endpoints: answer.endpoints.clone(),
        version: format!("{epoch}:{}:{epoch}", answer.lookup),
    }
}

/// Returns the endpoints that can be called now, a primary first.
fn endpoints(partition: &Partition) -> Vec<ResolvedEndpoint> {
    let replicas = partition
        .replicas
        .values()
        .filter(|replica| replica.is_resolvable());
    let mut endpoints: Vec<ResolvedEndpoint> = replicas
        .filter_map(|replica| {
            let kind = match (partition.kind, replica.role) {
                (ServiceKind::Stateless, _) => EndpointKind::Stateless,
                (ServiceKind::Stateful, ReplicaRole::Primary) => EndpointKind::StatefulPrimary,
                (ServiceKind::Stateful, ReplicaRole::ActiveSecondary) => {
                    EndpointKind::StatefulSecondary
                }
                (ServiceKind::Stateful, _) => return None,
            };
            Some(ResolvedEndpoint {
                kind,
                address: replica.address.clone(),
            })
        })
        .collect();
    endpoints.sort_by_key(|endpoint| endpoint.kind);
    endpoints
}
