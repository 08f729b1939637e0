//! The runtime state of clusters and destinations that survives a new configuration: connections,
//! requests in flight, counters, health. A cluster keeps its state by id; a destination keeps it
//! while its address stays the same as well.

mod assessment;
mod available;
mod cluster;
mod destination;
mod faults;
mod passive;

pub use self::assessment::Ineligible;
pub(crate) use self::assessment::{Assessment, assess};
pub(crate) use self::available::Available;
pub(crate) use self::cluster::{ClientKey, ClusterLive};
pub(crate) use self::destination::{DestinationKey, DestinationState, KeyHasher};
pub(crate) use self::faults::{AvailabilityRule, Faults};
pub(crate) use self::passive::PassiveRule;
