//! Calls with a record of their old responses.

use async_trait::async_trait;
use parking_lot::Mutex;
use tokio::time::Instant;

use super::CachedCalls;
use crate::calls::{CallError, CallErrorKind, ClusterCalls, HealthEntity, ServiceReplicas};
use crate::model::{
    Application, ApplicationType, HealthInformation, Partition, PartitionInformation, Property,
    Replica, ResolvedPartition, Service, ServiceType,
};

/// An old response that was returned because the call failed.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct StaleAnswer {
    /// The time at which the cluster returned it.
    pub at: Instant,
    /// The reason why there is no newer response, with all causes.
    pub error: String,
    /// The kind of that error.
    pub kind: CallErrorKind,
}

impl StaleAnswer {
    pub(crate) fn new(at: Instant, error: &CallError) -> Self {
        Self {
            at,
            error: error.chain(),
            kind: error.kind(),
        }
    }

    /// Returns the older one of two.
    pub(crate) fn older(first: Option<Self>, second: Option<Self>) -> Option<Self> {
        match (first, second) {
            (Some(first), Some(second)) if second.at < first.at => Some(second),
            (Some(first), _) => Some(first),
            (None, second) => second,
        }
    }
}

/// The calls of a [`CachedCalls`], with a record of the oldest response that they returned. For a few
/// related calls: those about one service.
#[derive(Debug)]
pub struct Observed<'c, C> {
    calls: &'c CachedCalls<C>,
    stale: Mutex<Option<StaleAnswer>>,
}

impl<'c, C: ClusterCalls> Observed<'c, C> {
    pub(super) fn new(calls: &'c CachedCalls<C>) -> Self {
        Self {
            calls,
            stale: Mutex::new(None),
        }
    }

    /// The oldest of the old responses that were returned, if there was one.
    pub fn stale(&self) -> Option<StaleAnswer> {
        let stale = self.stale.lock();
        stale.clone()
    }

    fn note<T>(
        &self,
        settled: Result<(Vec<T>, Option<StaleAnswer>), CallError>,
    ) -> Result<Vec<T>, CallError> {
        let (answer, stale) = settled?;
        if stale.is_some() {
            let mut oldest = self.stale.lock();
            *oldest = StaleAnswer::older(oldest.take(), stale);
        }
        Ok(answer)
    }
}

#[async_trait]
impl<C: ClusterCalls> ClusterCalls for Observed<'_, C> {
    async fn application_types(&self) -> Result<Vec<ApplicationType>, CallError> {
        let result = self.calls.calls.application_types().await;
        self.note(
            self.calls
                .settle(&[""; 3], result, |memory| &mut memory.application_types),
        )
    }

    async fn applications(&self) -> Result<Vec<Application>, CallError> {
        let result = self.calls.calls.applications().await;
        self.note(
            self.calls
                .settle(&[""; 3], result, |memory| &mut memory.applications),
        )
    }

    async fn service_types(
        &self,
        application_type: &str,
        version: &str,
    ) -> Result<Vec<ServiceType>, CallError> {
        let question = [application_type, version, ""];
        let result = self
            .calls
            .calls
            .service_types(application_type, version)
            .await;
        self.note(
            self.calls
                .settle(&question, result, |memory| &mut memory.service_types),
        )
    }

    async fn service_manifest(
        &self,
        application_type: &str,
        version: &str,
        manifest: &str,
    ) -> Result<String, CallError> {
        let question = [application_type, version, manifest];
        let calls = &self.calls.calls;
        let result = calls
            .service_manifest(application_type, version, manifest)
            .await
            .map(String::into_bytes);
        let bytes = self.note(
            self.calls
                .settle(&question, result, |memory| &mut memory.manifests),
        )?;
        Ok(String::from_utf8(bytes).expect("they were the bytes of a string"))
    }

    async fn services(&self, application_id: &str) -> Result<Vec<Service>, CallError> {
        let result = self.calls.calls.services(application_id).await;
        self.note(
            self.calls
                .settle(&[application_id, "", ""], result, |memory| {
                    &mut memory.services
                }),
        )
    }

    async fn partitions(&self, service_id: &str) -> Result<Vec<Partition>, CallError> {
        let result = self.calls.calls.partitions(service_id).await;
        self.note(self.calls.settle(&[service_id, "", ""], result, |memory| {
            &mut memory.partitions
        }))
    }

    async fn replicas(&self, partition_id: &str) -> Result<Vec<Replica>, CallError> {
        let result = self.calls.calls.replicas(partition_id).await;
        self.note(
            self.calls
                .settle(&[partition_id, "", ""], result, |memory| {
                    &mut memory.replicas
                }),
        )
    }

    async fn resolve(
        &self,
        service_id: &str,
        partition: &PartitionInformation,
        previous: Option<&str>,
    ) -> Result<ResolvedPartition, CallError> {
        self.calls.resolve(service_id, partition, previous).await
    }

    async fn properties(&self, name_id: &str) -> Result<Vec<Property>, CallError> {
        let result = self.calls.calls.properties(name_id).await;
        self.note(
            self.calls
                .settle(&[name_id, "", ""], result, |memory| &mut memory.properties),
        )
    }

    async fn replica_ids(&self) -> Result<Vec<ServiceReplicas>, CallError> {
        self.calls.replica_ids().await
    }

    async fn report_health(
        &self,
        entity: &HealthEntity,
        health: &HealthInformation,
        immediate: bool,
    ) -> Result<(), CallError> {
        self.calls.report_health(entity, health, immediate).await
    }
}
