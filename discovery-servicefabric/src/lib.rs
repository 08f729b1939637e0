#![doc = include_str!("../README.md")]

pub mod cache;
mod calls;
pub mod client;
mod discoverer;
pub mod extension;
mod hash;
pub mod health;
mod id;
pub mod labels;
pub mod model;
pub mod options;
mod service;
#[cfg(any(test, feature = "testing"))]
pub mod testing;
mod topology;

pub use self::calls::{CallError, CallErrorKind, ClusterCalls, HealthEntity, ServiceReplicas};
pub use self::discoverer::{Decision, Decisions, ServiceFabric, ServiceFabricDiscoverer, Verdict};
pub use self::id::{NameError, check_name, id_of, name_of};
pub use self::options::{EndpointSource, ServiceFabricOptions};
pub use self::service::{PartitionDescription, ServiceDescription};
