//! Labels: the settings that owners of services write into their manifests, and their conversion to configuration.

mod endpoints;
mod ids;
mod layout;
mod options;
mod partitions;
mod path;
mod read;
mod replicas;
#[cfg(test)]
mod tests;
mod yarp;

use std::sync::Arc;

use discovery_core::LabelsParser;
use proxy_model::Problems;
use proxy_model::config::ProxyConfig;

pub use self::endpoints::{Endpoint, EndpointError, Endpoints, Rejection, Schemes};
pub(crate) use self::ids::partition_prefix;
pub(crate) use self::layout::NO_USABLE_ENDPOINT;
pub use self::options::{LabelOptions, ListenerMode, PartitionMode, ReplicaSelection, RoleRouting};
pub use self::yarp::YarpLabels;
use crate::model::ServiceKind;
use crate::service::ServiceDescription;

/// A parser of services, as this crate uses it.
pub(crate) type ServiceParser = dyn LabelsParser<ServiceDescription, ParsedService>;

/// The result of parsing a service.
#[derive(Clone, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct ParsedService {
    /// The service's clusters and routes. `None` if the service did not opt in to be served. With an error
    /// among the problems it has no meaning.
    pub config: Option<Arc<ProxyConfig>>,
    /// Problems, with pointers that begin at the service: `/YARP.Routes.r1.Path`. An error keeps the
    /// service from serving in this form.
    pub problems: Problems,
    /// The outcome of each replica that was considered: those that are ready and have a selected role.
    pub replicas: Vec<ReplicaOutcome>,
}

/// The outcome of a replica.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ReplicaOutcome {
    /// The partition that it belongs to.
    pub partition_id: String,
    /// The replica's id.
    pub replica_id: i64,
    /// The kind of the service: stateless or stateful.
    pub kind: ServiceKind,
    /// The listeners that requests are sent to, or the reason why there is no destination for the replica.
    pub result: Result<Vec<String>, String>,
}

impl ReplicaOutcome {
    /// Creates the outcome of a replica.
    pub fn new(
        partition_id: impl Into<String>,
        replica_id: i64,
        kind: ServiceKind,
        result: Result<Vec<String>, String>,
    ) -> Self {
        Self {
            partition_id: partition_id.into(),
            replica_id,
            kind,
            result,
        }
    }
}
