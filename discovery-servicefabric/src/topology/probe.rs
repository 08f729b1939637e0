//! A cheap check that nothing has changed.
//!
//! An instance of a stateless service gets another id after every failover, on any node, and an instance
//! does not change its address while it lives. So a stateless service that has the same instances as when
//! it was read, all of them ready, has the same endpoints. One call lists all instances of the cluster.
//! Replicas of stateful services keep their ids when they come back and change roles, so the check does not
//! apply to them.

use std::collections::HashMap;
use std::sync::Arc;

use tokio::time::Instant;

use crate::calls::{CallError, CallErrorKind, ServiceReplicas};
use crate::model::ReplicaStatus;
use crate::service::PartitionDescription;

/// The replicas of one service, when it was read.
///
/// Two results of the probe are compared with each other, not with the list of replicas: the two lists come
/// from different parts of the cluster, which may count a removed replica differently.
pub(crate) type Baseline = Arc<[(String, Vec<i64>)]>;

/// The availability of the probe.
#[derive(Clone, Debug, Default)]
pub(crate) struct ProbeState {
    /// The time until which the probe is skipped, because the cluster rejected it.
    pub(crate) rejected_until: Option<Instant>,
}

/// A result of the probe.
#[derive(Debug, Default)]
pub(crate) struct Probe {
    by_service: HashMap<String, Baseline>,
}

impl Probe {
    pub(crate) fn new(replicas: Vec<ServiceReplicas>) -> Self {
        let by_service = replicas
            .into_iter()
            .map(|of| (of.service, of.partitions.into()))
            .collect();
        Self { by_service }
    }

    pub(crate) fn baseline(&self, service: &str) -> Option<Baseline> {
        self.by_service.get(service).cloned()
    }

    /// Returns true if the service has the same replicas as when it was read.
    pub(crate) fn is_same(
        &self,
        service: &str,
        baseline: &Baseline,
        partitions: &[PartitionDescription],
    ) -> bool {
        let Some(now) = self.by_service.get(service) else {
            return false;
        };
        now == baseline && sees(now, partitions)
    }
}

/// Returns true if the response lists every replica that was ready. A response that is empty for lack of
/// permission would never change.
fn sees(now: &Baseline, partitions: &[PartitionDescription]) -> bool {
    partitions.iter().all(|partition| {
        let id = partition.information.id.as_str();
        let listed = now.iter().find(|(listed, _)| listed == id);
        let is_listed = |id: i64| listed.is_some_and(|(_, ids)| ids.binary_search(&id).is_ok());
        partition
            .replicas
            .iter()
            .filter(|replica| replica.replica_status == ReplicaStatus::Ready)
            .all(|replica| is_listed(replica.replica_id))
    })
}

/// Returns true if the probe should be skipped for a while: the cluster would reject it again, or it would
/// delay every cycle.
pub(crate) fn is_lasting(error: &CallError) -> bool {
    !matches!(
        error.kind(),
        CallErrorKind::Unreachable | CallErrorKind::Busy | CallErrorKind::Failed
    )
}
