//! The planner: from the requested and the current state to the writes. It has no clock, no randomness and no
//! I/O.
//!
//! Load balancers, the security group and public addresses depend on *all* services, so one plan writes each
//! of them once, however many services have changed. A service whose request cannot be met stays as it is and
//! affects no other.
//!
//! Some values are known only after a write (the address of a new frontend), and some steps depend on the
//! success of others (an old frontend is removed when the new one exists). Then [`Plan::deferred`] lists the
//! remaining work: execute the plan, read and plan again, until it is empty.

mod action;
mod assembly;
mod balancer;
mod cluster_state;
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
mod quota;
mod request;
mod round;
mod security;
mod simulate;
mod snapshot;
mod status;
mod tags;
mod target;

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
/// The result does not depend on the order of the input. A service that is not in `services` is considered
/// deleted: see [`Config::orphans`].
pub fn plan(config: &Config, services: &[Service], nodes: &[Node], current: &Snapshot) -> Plan {
    plan_request(config, &Request::EVERYTHING, services, nodes, current)
}
