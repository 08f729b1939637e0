//! The health store: the reports about all entities of the cluster, and the health that follows from them.
//!
//! Entities form a tree: the cluster has nodes and applications, an application has services and its
//! deployments on nodes, a service has partitions, a partition has replicas. Each has events, one for every
//! pair of source and property. An entity is as bad as the worst of its events and of the entities below it.
//!
//! | a report | does |
//! |---|---|
//! | with a time to live | counts until then; after that it is removed (`remove_when_expired`) or becomes an Error |
//! | with a lower sequence number than the one before | is rejected as stale |
//! | that is not immediate | takes effect with the next batch, every 30 s by default, as a gateway sends them |
//! | about something that is not there | vanishes |
//! | from a source `System.…` | is rejected: only the cluster itself speaks so |

mod chunk;
mod entity;
mod evaluation;
mod event;
mod filter;
mod queue;
mod statistics;
mod store;
#[cfg(test)]
mod tests;

pub use self::chunk::{
    ApplicationChunk, ApplicationFilter, ChunkQuery, ClusterHealthChunk, DeployedApplicationChunk,
    DeployedApplicationFilter, NodeChunk, NodeFilter, PackageChunk, PackageFilter, PartitionChunk,
    PartitionFilter, ReplicaChunk, ReplicaFilter, ServiceChunk, ServiceFilter,
};
pub use self::entity::{EntityKey, EntityKind};
pub use self::evaluation::{ChildHealth, EntityHealth, Evaluation, HealthQuery};
pub use self::event::{HealthEvent, HealthReport};
pub use self::filter::StateFilter;
pub(crate) use self::queue::ReportQueue;
pub use self::statistics::{Counts, Statistics};
pub use self::store::HealthStore;
pub use crate::hosting::HealthState;
