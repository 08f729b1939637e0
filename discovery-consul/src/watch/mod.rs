//! The catalogs of a Consul's datacenters, followed with a constant number of connections: [`ConsulWatch`].
//!
//! A blocking query for each service would be exact, but would need a connection for each of them, while
//! agents reject clients with more than 200. So each datacenter is followed with two blocking queries, one
//! for the list of services and one for all checks, and the services that these touch are read, a few at a
//! time:
//!
//! | change | read |
//! |---|---|
//! | a service is new, removed, or has other tags | that service |
//! | a check is new, removed, or has changed | its service |
//! | a check of a node has changed | all services on that node |
//! | the index of a list has moved without a visible reason | everything, at least 5 s apart |
//! | the servers have another history, or were unavailable | everything, at least 5 s apart |
//! | none for about 90 s | each service once, one after the other |
//!
//! Changes without a visible reason are those of instances without a check, of ports and of metadata.
//!
//! # Trust in results
//!
//! * An error changes nothing. Each service in each datacenter keeps its last known good state.
//! * A service whose first read fails does not count as one without instances. Nothing is complete before
//!   every service was read once, or stayed unreadable for [a while](WatchOptions::unread_grace); then the
//!   unknown services are reported.
//! * A successful empty result is trusted if the list of services agrees. From a server that is not the
//!   leader, the leader must confirm it.
//! * A [large loss](ShrinkGuard) is trusted after a second read, and any loss at servers with another
//!   history.
//! * An unavailable datacenter neither delays nor changes another one.

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
