//! Responses that are kept for the case that a call fails.

mod answers;
mod observed;
#[cfg(test)]
mod tests;

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use parking_lot::{Mutex, MutexGuard};
use tokio::time::Instant;

use self::answers::{Answers, Question};
pub use self::observed::{Observed, StaleAnswer};
use crate::calls::{CallError, CallErrorKind, ClusterCalls, HealthEntity, ServiceReplicas};
use crate::model::{
    Application, ApplicationType, HealthInformation, Partition, PartitionInformation, Property,
    Replica, ResolvedPartition, Service, ServiceType,
};

/// The time for which a response is kept, unless [`CachedCalls::with_duration`] sets another one.
pub const DEFAULT_DURATION: Duration = Duration::from_secs(30 * 60);

/// Keeps the responses of another implementation, for the case that it fails.
///
/// Every call is made. Its last known good response is used only if the call fails in a way that reveals nothing
/// about the cluster: it could not be reached, timed out, rejected the credential, or sent a malformed
/// response. The response that something no longer exists ([`CallErrorKind::Gone`]) is valid, and removes
/// the old one. A dropped call changes nothing.
///
/// Reports, [`resolve`](ClusterCalls::resolve) and [`replica_ids`](ClusterCalls::replica_ids) bypass the
/// cache: their old responses would be wrong rather than late.
///
/// Use [`observe`](Self::observe) to detect old responses.
#[derive(Debug)]
pub struct CachedCalls<C> {
    calls: C,
    duration: Duration,
    memory: Mutex<CachedResponses>,
    tally: Mutex<Tally>,
}

/// Counts of the results of calls, without those that bypass the cache.
#[derive(Clone, Debug, Default)]
pub(crate) struct Tally {
    /// Number of calls that the cluster answered. The response that something does not exist counts too.
    pub(crate) answered: u64,
    /// The last failure since the last response.
    pub(crate) failure: Option<(CallErrorKind, String)>,
}

/// The responses, by kind of call.
#[derive(Debug, Default)]
struct CachedResponses {
    application_types: Answers<ApplicationType>,
    applications: Answers<Application>,
    service_types: Answers<ServiceType>,
    manifests: Answers<u8>,
    services: Answers<Service>,
    partitions: Answers<Partition>,
    replicas: Answers<Replica>,
    properties: Answers<Property>,
}

impl<C: ClusterCalls> CachedCalls<C> {
    /// Keeps the responses of `calls` for 30 minutes.
    pub fn new(calls: C) -> Self {
        Self {
            calls,
            duration: DEFAULT_DURATION,
            memory: Mutex::default(),
            tally: Mutex::default(),
        }
    }

    /// Sets the time for which a response may be used. Zero disables the cache.
    #[must_use]
    pub fn with_duration(mut self, duration: Duration) -> Self {
        self.duration = duration;
        self
    }

    /// Returns a view of the cache that records which of its calls were answered from an old response.
    pub fn observe(&self) -> Observed<'_, C> {
        Observed::new(self)
    }

    /// Removes the responses that are too old to be used, and those that were not requested within
    /// `unused`. Responses that each cycle requests stay, and those about deleted services go.
    pub fn evict(&self, unused: Duration) {
        let now = Instant::now();
        let mut memory = self.memory();
        let CachedResponses {
            application_types,
            applications,
            service_types,
            manifests,
            services,
            partitions,
            replicas,
            properties,
        } = &mut *memory;
        let keep = (self.duration, unused);
        application_types.evict(now, keep);
        applications.evict(now, keep);
        service_types.evict(now, keep);
        manifests.evict(now, keep);
        services.evict(now, keep);
        partitions.evict(now, keep);
        replicas.evict(now, keep);
        properties.evict(now, keep);
    }

    /// Number of cached responses.
    pub fn remembered(&self) -> usize {
        let memory = self.memory();
        memory.application_types.len()
            + memory.applications.len()
            + memory.service_types.len()
            + memory.manifests.len()
            + memory.services.len()
            + memory.partitions.len()
            + memory.replicas.len()
            + memory.properties.len()
    }

    fn memory(&self) -> MutexGuard<'_, CachedResponses> {
        // Each step under the lock leaves the memory whole.
        self.memory.lock()
    }

    /// The counts of the results of calls so far.
    pub(crate) fn tally(&self) -> Tally {
        let tally = self.tally.lock();
        tally.clone()
    }

    fn count<T>(&self, result: &Result<T, CallError>) {
        let mut tally = self.tally.lock();
        match result {
            Err(error) if !error.is_gone() => tally.failure = Some((error.kind(), error.chain())),
            Ok(_) | Err(_) => {
                tally.answered += 1;
                tally.failure = None;
            }
        }
    }

    /// Records the result of a call. The second value is set if the response is an old one.
    fn settle<T: Clone>(
        &self,
        question: &Question<'_>,
        result: Result<Vec<T>, CallError>,
        answers: fn(&mut CachedResponses) -> &mut Answers<T>,
    ) -> Result<(Vec<T>, Option<StaleAnswer>), CallError> {
        let now = Instant::now();
        self.count(&result);
        match result {
            Ok(answer) => {
                if !self.duration.is_zero() {
                    let kept: Arc<[T]> = answer.as_slice().into();
                    answers(&mut self.memory()).keep(question, kept, now);
                }
                Ok((answer, None))
            }
            Err(error) if error.is_gone() => {
                answers(&mut self.memory()).forget(question);
                Err(error)
            }
            Err(error) if may_be_replaced(error.kind()) => {
                let known = answers(&mut self.memory()).find(question, now, self.duration);
                match known {
                    Some((answer, at)) => Ok((answer.to_vec(), Some(StaleAnswer::new(at, &error)))),
                    None => Err(error),
                }
            }
            Err(error) => Err(error),
        }
    }
}

/// Returns true if an old response may replace an error of this kind: an error that reveals nothing about
/// the cluster's state.
fn may_be_replaced(kind: CallErrorKind) -> bool {
    match kind {
        CallErrorKind::Unreachable
        | CallErrorKind::TimedOut
        | CallErrorKind::Busy
        | CallErrorKind::Denied
        | CallErrorKind::Failed
        | CallErrorKind::Malformed => true,
        CallErrorKind::Gone | CallErrorKind::Rejected => false,
    }
}

/// The calls without a record of old responses.
#[async_trait]
impl<C: ClusterCalls> ClusterCalls for CachedCalls<C> {
    async fn application_types(&self) -> Result<Vec<ApplicationType>, CallError> {
        self.observe().application_types().await
    }

    async fn applications(&self) -> Result<Vec<Application>, CallError> {
        self.observe().applications().await
    }

    async fn service_types(
        &self,
        application_type: &str,
        version: &str,
    ) -> Result<Vec<ServiceType>, CallError> {
        self.observe()
            .service_types(application_type, version)
            .await
    }

    async fn service_manifest(
        &self,
        application_type: &str,
        version: &str,
        manifest: &str,
    ) -> Result<String, CallError> {
        self.observe()
            .service_manifest(application_type, version, manifest)
            .await
    }

    async fn services(&self, application_id: &str) -> Result<Vec<Service>, CallError> {
        self.observe().services(application_id).await
    }

    async fn partitions(&self, service_id: &str) -> Result<Vec<Partition>, CallError> {
        self.observe().partitions(service_id).await
    }

    async fn replicas(&self, partition_id: &str) -> Result<Vec<Replica>, CallError> {
        self.observe().replicas(partition_id).await
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
        self.observe().properties(name_id).await
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
