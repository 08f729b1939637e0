//! The catalogs of a Consul's datacenters, followed with a constant number of connections: [`ConsulWatch`].
//!
//! A blocking query for each service would be exact, but would need a connection for each of them, while
//! agents reject clients with more than 200. So each datacenter is followed with two blocking queries, one
//! for the list of services and one for all checks, and the services that these touch are read, a few at a
//! time:
//!
//! | news | read |
//! |---|---|
//! | a service is new, gone, or has other tags | that service |
//! | a check is new, gone, or has changed | the service that it is of |
//! | a check of a node has changed | all services on that node |
//! | the lists have moved, and neither says why: an instance without a check, or another port or other metadata | everything, 5 s apart at least |
//! | the servers have another history, or were away | everything, likewise |
//! | none, for 90 s or so | each service once, one after the other |
//!
//! # What is believed
//!
//! * An error changes nothing. Each service in each datacenter keeps its last good state.
//! * A service whose first read fails is not one without instances: nothing is complete before every service was read once,
//!   or could not be for [a while](WatchOptions::unread_grace), and then it is told which are not known.
//! * A success without instances is believed when the list of services agrees; of anybody but the leader only after the
//!   leader has said so too.
//! * That [much is gone at once](ShrinkGuard) is believed after a second look, and that anything is gone when servers with
//!   another history say so.
//! * A datacenter that is away delays and changes no other.

mod datacenter;
mod datacenters;
mod guard;
mod instance;
mod options;
mod read;
mod resync;
mod schedule;
mod state;
mod tables;
#[cfg(test)]
mod testing;
#[cfg(test)]
mod tests;
mod unread;

pub use self::datacenters::{ConsulWatch, WatchState};
pub use self::instance::ServiceInstance;
pub use self::options::{Datacenters, ShrinkGuard, WatchOptions};
pub use self::state::{DatacenterState, ServiceState, Services};
