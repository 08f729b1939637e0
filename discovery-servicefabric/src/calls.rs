//! The calls that discovery makes to a cluster.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use discovery_core::text::with_causes;

use crate::model::{
    Application, ApplicationType, HealthInformation, Partition, PartitionInformation, Property,
    Replica, ResolvedPartition, Service, ServiceKind, ServiceType,
};

/// The queries that discovery makes to a cluster, and its reports to it.
///
/// [`Client`](crate::client::Client) queries a REST gateway, [`CachedCalls`](crate::cache::CachedCalls)
/// caches the responses of another implementation, and a test or another access to a cluster can provide
/// its own. Lists are complete: the implementation joins pages. Ids are those of paths (`Shop~Web`), see
/// [`id_of`](crate::id_of).
///
/// # Cancel safety
///
/// Every call may be dropped at any await point. A report may then have been made or not.
#[async_trait]
pub trait ClusterCalls: Send + Sync {
    /// Returns all types of applications, in all versions.
    async fn application_types(&self) -> Result<Vec<ApplicationType>, CallError>;

    /// Returns all applications, with their parameters.
    async fn applications(&self) -> Result<Vec<Application>, CallError>;

    /// The types of services that an application type declares in one version.
    async fn service_types(
        &self,
        application_type: &str,
        version: &str,
    ) -> Result<Vec<ServiceType>, CallError>;

    /// A service manifest, as XML.
    async fn service_manifest(
        &self,
        application_type: &str,
        version: &str,
        manifest: &str,
    ) -> Result<String, CallError>;

    /// The services of an application.
    async fn services(&self, application_id: &str) -> Result<Vec<Service>, CallError>;

    /// The partitions of a service.
    async fn partitions(&self, service_id: &str) -> Result<Vec<Partition>, CallError>;

    /// The replicas of a partition, in every status.
    async fn replicas(&self, partition_id: &str) -> Result<Vec<Replica>, CallError>;

    /// Resolves a partition with the naming service. `previous` is the version of the last result: it
    /// requests a newer one, since the gateway may answer from a cache otherwise.
    async fn resolve(
        &self,
        service_id: &str,
        partition: &PartitionInformation,
        previous: Option<&str>,
    ) -> Result<ResolvedPartition, CallError>;

    /// Returns all properties of a name, with their values.
    async fn properties(&self, name_id: &str) -> Result<Vec<Property>, CallError>;

    /// Lists the ids of all replicas of the cluster in one call, as a cheap check for changes.
    async fn replica_ids(&self) -> Result<Vec<ServiceReplicas>, CallError>;

    /// Reports the health of something. `immediate`: at once instead of with the gateway's next batch.
    async fn report_health(
        &self,
        entity: &HealthEntity,
        health: &HealthInformation,
        immediate: bool,
    ) -> Result<(), CallError>;
}

#[async_trait]
impl<C: ClusterCalls + ?Sized> ClusterCalls for Arc<C> {
    async fn application_types(&self) -> Result<Vec<ApplicationType>, CallError> {
        (**self).application_types().await
    }

    async fn applications(&self) -> Result<Vec<Application>, CallError> {
        (**self).applications().await
    }

    async fn service_types(
        &self,
        application_type: &str,
        version: &str,
    ) -> Result<Vec<ServiceType>, CallError> {
        (**self).service_types(application_type, version).await
    }

    async fn service_manifest(
        &self,
        application_type: &str,
        version: &str,
        manifest: &str,
    ) -> Result<String, CallError> {
        (**self)
            .service_manifest(application_type, version, manifest)
            .await
    }

    async fn services(&self, application_id: &str) -> Result<Vec<Service>, CallError> {
        (**self).services(application_id).await
    }

    async fn partitions(&self, service_id: &str) -> Result<Vec<Partition>, CallError> {
        (**self).partitions(service_id).await
    }

    async fn replicas(&self, partition_id: &str) -> Result<Vec<Replica>, CallError> {
        (**self).replicas(partition_id).await
    }

    async fn resolve(
        &self,
        service_id: &str,
        partition: &PartitionInformation,
        previous: Option<&str>,
    ) -> Result<ResolvedPartition, CallError> {
        (**self).resolve(service_id, partition, previous).await
    }

    async fn properties(&self, name_id: &str) -> Result<Vec<Property>, CallError> {
        (**self).properties(name_id).await
    }

    async fn replica_ids(&self) -> Result<Vec<ServiceReplicas>, CallError> {
        (**self).replica_ids().await
    }

    async fn report_health(
        &self,
        entity: &HealthEntity,
        health: &HealthInformation,
        immediate: bool,
    ) -> Result<(), CallError> {
        (**self).report_health(entity, health, immediate).await
    }
}

/// The replicas of a service.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct ServiceReplicas {
    /// Name of the service.
    pub service: String,
    /// The service's partitions by id, with the ids of their replicas; both sorted.
    pub partitions: Vec<(String, Vec<i64>)>,
}

impl ServiceReplicas {
    /// Creates the replicas of a service. They need not be sorted.
    pub fn new(service: impl Into<String>, mut partitions: Vec<(String, Vec<i64>)>) -> Self {
        for (_, replicas) in &mut partitions {
            replicas.sort_unstable();
        }
        partitions.sort_unstable();
        Self {
            service: service.into(),
            partitions,
        }
    }
}

/// The entity that a health report is about.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum HealthEntity {
    /// The cluster.
    Cluster,
    /// A node.
    Node {
        /// The node's name.
        node: String,
    },
    /// An application.
    Application {
        /// The application's id in paths.
        application_id: String,
    },
    /// An application on a node.
    DeployedApplication {
        /// Name of the node.
        node: String,
        /// The application's id in paths.
        application_id: String,
    },
    /// A service package on a node.
    DeployedServicePackage {
        /// Name of the node.
        node: String,
        /// The application's id in paths.
        application_id: String,
        /// Name of the service manifest.
        service_package: String,
    },
    /// A service.
    Service {
        /// The service's id in paths.
        service_id: String,
    },
    /// A partition of a service.
    Partition {
        /// The partition's id.
        partition_id: String,
    },
    /// A replica of a stateful service or an instance of a stateless one.
    Replica {
        /// The partition that it belongs to.
        partition_id: String,
        /// The replica's id.
        replica_id: i64,
        /// The kind of the service, stateless or stateful, which the gateway requires.
        kind: ServiceKind,
    },
}

/// The error of a failed call.
///
/// The message names the call (`GET /Applications`), and contains no credential.
#[derive(Debug, thiserror::Error)]
#[error("{call}: {message}")]
pub struct CallError {
    kind: CallErrorKind,
    call: String,
    message: String,
    status: Option<u16>,
    code: Option<String>,
    retry_after: Option<Duration>,
    source: Option<Box<dyn std::error::Error + Send + Sync>>,
}

/// The kind of error.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum CallErrorKind {
    /// The requested entity does not exist, or no longer does, according to an error body of the gateway.
    Gone,
    /// The gateway could not be reached, or did not respond with HTTP.
    Unreachable,
    /// The gateway or the cluster behind it timed out.
    TimedOut,
    /// The cluster is temporarily unavailable: no quorum, a primary that moves, overload.
    Busy,
    /// The gateway requires another credential, or does not authorize this one.
    Denied,
    /// The gateway rejects the call: bad arguments, or an unknown request.
    Rejected,
    /// The gateway failed for a reason of its own.
    Failed,
    /// The response is malformed or too large, perhaps from another server than a gateway.
    Malformed,
}

impl CallError {
    /// Creates an error of a call such as `GET /Applications`.
    pub fn new(kind: CallErrorKind, call: impl Into<String>, message: impl Into<String>) -> Self {
        Self {
            kind,
            call: call.into(),
            message: message.into(),
            status: None,
            code: None,
            retry_after: None,
            source: None,
        }
    }

    /// Adds the status of the response.
    #[must_use]
    pub fn with_status(mut self, status: u16) -> Self {
        self.status = Some(status);
        self
    }

    /// Adds the gateway's code: `FABRIC_E_TIMEOUT`.
    #[must_use]
    pub fn with_code(mut self, code: impl Into<String>) -> Self {
        self.code = Some(code.into());
        self
    }

    /// Adds the wait that the gateway requested.
    #[must_use]
    pub fn with_retry_after(mut self, wait: Duration) -> Self {
        self.retry_after = Some(wait);
        self
    }

    /// Adds the cause.
    #[must_use]
    pub fn with_source(
        mut self,
        source: impl Into<Box<dyn std::error::Error + Send + Sync>>,
    ) -> Self {
        self.source = Some(source.into());
        self
    }

    /// Adds the probable cause, or a remedy, to the message.
    pub(crate) fn with_hint(mut self, hint: &str) -> Self {
        self.message.push_str("; ");
        self.message.push_str(hint);
        self
    }

    /// The kind of error.
    pub fn kind(&self) -> CallErrorKind {
        self.kind
    }

    /// The call: `GET /Applications`.
    pub fn call(&self) -> &str {
        &self.call
    }

    /// The status of the response, if there was one.
    pub fn status(&self) -> Option<u16> {
        self.status
    }

    /// The gateway's error code, if there was one.
    pub fn code(&self) -> Option<&str> {
        self.code.as_deref()
    }

    /// The time to wait before a retry, if the gateway named one.
    pub fn retry_after(&self) -> Option<Duration> {
        self.retry_after
    }

    /// Returns true if the requested entity does not exist, or no longer does.
    pub fn is_gone(&self) -> bool {
        self.kind == CallErrorKind::Gone
    }

    /// Returns true if a retry of the same call may succeed soon.
    pub fn is_retryable(&self) -> bool {
        matches!(
            self.kind,
            CallErrorKind::Unreachable
                | CallErrorKind::TimedOut
                | CallErrorKind::Busy
                | CallErrorKind::Failed
        )
    }

    /// The message with all its causes, separated by `: `.
    pub fn chain(&self) -> String {
        with_causes(self)
    }
}

impl fmt::Display for HealthEntity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Cluster => f.write_str("cluster"),
            Self::Node { node } => write!(f, "node {node}"),
            Self::Application { application_id } => write!(f, "application {application_id}"),
            Self::DeployedApplication {
                node,
                application_id,
            } => write!(f, "application {application_id} on node {node}"),
            Self::DeployedServicePackage {
                node,
                application_id,
                service_package,
            } => write!(
                f,
                "service package {service_package} of application {application_id} on node {node}"
            ),
            Self::Service { service_id } => write!(f, "service {service_id}"),
            Self::Partition { partition_id } => write!(f, "partition {partition_id}"),
            Self::Replica {
                partition_id,
                replica_id,
                ..
            } => write!(f, "replica {partition_id}/{replica_id}"),
        }
    }
}
