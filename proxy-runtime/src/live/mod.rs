//! What is known of clusters and destinations at run time and outlives a configuration: connections, requests in flight,
//! counters, health. A cluster keeps it by its id, a destination for as long as its address stays the same as well.

mod assessment;
mod available;
mod cluster;
mod destination;

pub use self::assessment::Ineligible;
pub(crate) use self::assessment::{Assessment, assess};
pub(crate) use self::available::Available;
pub(crate) use self::cluster::{ClientKey, ClusterLive};
pub(crate) use self::destination::{DestinationKey, DestinationState, InFlight, KeyHasher};
