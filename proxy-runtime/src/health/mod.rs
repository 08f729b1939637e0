//! Which destinations are fit to serve.
//!
//! A cluster whose active check is on has its destinations probed by the [`Driver`](crate::build::Driver): at once when the
//! cluster or a destination is new, and then in rounds. A round's verdicts are applied together. Verdicts come from an
//! [`ActiveHealthPolicy`]; `ConsecutiveFailures` is built in.
//!
//! # Changes
//!
//! A destination whose address stays the same keeps its health, its requests and its connections. When it is asked
//! something else, for its health address, `Host`, `HealthPath` or the path or query of the check has changed, it is
//! probed at once. Until it has answered, the verdict stays, so that a corrected path takes nobody out of service and a
//! wrong one puts nobody in; probes that failed before count no more, and those under way are given up.
//!
//! # Availability
//!
//! Of a cluster's destinations those may be picked that are not unhealthy, have a weight (unless none has), are of the
//! tier with the smallest `Priority` that has such destinations, and are in the proxy's own zone if any of these are. If
//! all destinations with a weight are unhealthy, `HealthyOrPanic` uses all of them, of every tier and zone;
//! `HealthyAndUnknown` uses none, and requests get 503. What a check found counts only while it is on.
//!
//! # Bounds
//!
//! 64 destinations of a cluster are probed at a time, and 512 over all clusters. A probe that waits for its turn is not
//! late: its timeout begins with it.
//!
//! # Differences from YARP
//!
//! * A cluster or destination that is new is probed at once; in YARP it waits for one interval.
//! * Intervals are up to a tenth shorter or longer, so that clusters and proxies do not probe in step.
//! * Probes of one destination may have a path of their own, `HealthPath`; YARP has one per cluster.
//! * A destination whose address has changed is a new one: nothing is known of its health. YARP keeps what it knew of the
//!   old address.
//! * Each probe opens a connection of its own.

mod consecutive_failures;
mod policy;
mod probe;
mod state;

pub use self::consecutive_failures::ConsecutiveFailures;
pub(crate) use self::policy::HealthPolicies;
pub use self::policy::{ActiveHealthPolicy, Probed};
pub use self::probe::{Probe, ProbeError};
pub use self::state::Health;
pub(crate) use self::state::{HealthRecord, HealthState};
