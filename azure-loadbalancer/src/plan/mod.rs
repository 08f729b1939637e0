//! From what is wanted and what is there to what is to be written: no clock, no randomness, no I/O.
//!
//! Load balancers, the security group and public addresses are functions of *all* services, so one plan writes each of them once,
//! whatever number of services has changed. A service that cannot have what it asks for is left as it is and harms no other.
//!
//! Some values are known only after a write (the address of a new frontend), and some steps must see that another one has worked
//! before they are taken (an old frontend goes when the new one is there). Then [`Plan::deferred`] says what is left: execute the
//! plan, read again, plan again, until there is nothing to do.

mod action;
mod assembly;
mod balancer;
mod diff;
mod error;
mod forecast;
mod locate;
mod machines;
mod members;
mod memory;
mod migration;
mod outcome;
mod placement;
mod public_ip;
mod request;
mod room;
mod round;
mod security;
mod simulate;
mod snapshot;
mod status;
mod tags;
mod target;
mod world;

pub use self::action::{Action, FieldChange, Operation};
pub use self::error::PlanError;
pub(crate) use self::forecast::from as forecast_from;
pub use self::forecast::{Forecast, forecast};
pub use self::locate::Located;
pub(crate) use self::locate::locate;
pub(crate) use self::memory::Memory;
pub use self::migration::{Migration, MigrationStage, StageKind, migrate_to_standard};
pub use self::outcome::{Deferred, Edge, Ingress, Orphan, Plan, ServiceOutcome, Warning};
pub(crate) use self::request::{Balancers, Classes, Only, Request};
pub(crate) use self::round::plan_request;
pub use self::snapshot::{Reads, Snapshot};
pub(crate) use self::tags::is_certainly_of;
use crate::config::Config;
use crate::node::Node;
use crate::service::Service;

/// Plans the writes that make `services` reachable on `nodes`, starting from `current`.
///
/// The same input in any order gives the same plan. A service that is not in `services` has gone: see [`Config::orphans`].
pub fn plan(config: &Config, services: &[Service], nodes: &[Node], current: &Snapshot) -> Plan {
    plan_request(config, &Request::EVERYTHING, services, nodes, current)
}
