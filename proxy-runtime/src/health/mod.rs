//! Health checks: the health of destinations.
//!
//! # Active checks
//!
//! The [`Driver`](crate::build::Driver) probes the destinations of each cluster with an active
//! check: at once when the cluster or a destination is new, and then in cycles. The results of a
//! cycle are applied together. An [`ActiveHealthPolicy`] decides about the health;
//! `ConsecutiveFailures` is built in.
//!
//! # Passive checks
//!
//! A passive check judges a destination by the requests that are forwarded to it. A
//! [`PassiveHealthPolicy`] decides at the end of each; `TransportFailureRate` is built in. Each
//! attempt counts for the destination that it was made at. A destination that is found unhealthy is
//! left out for the `ReactivationPeriod`, at least for the detection window, and then its health is
//! unknown.
//!
//! # Agents
//!
//! A cluster with an agent check asks a program beside each destination what that may get, in the
//! protocol of HAProxy's `agent-check`: words for health, drain, maintenance, weight and connections,
//! which stay until the agent takes them back.
//!
//! # Health from outside
//!
//! [`Proxy::set_health`](crate::Proxy::set_health) tells the proxy what the program knows. It
//! counts whichever checks are enabled.
//!
//! # Changes
//!
//! A destination whose address stays the same keeps its health, its requests and its connections. A
//! change of its health address, `Host`, `HealthPath`, or of the path or query of the check
//! triggers a probe at once. The health stays until the result arrives, so neither a corrected nor
//! a wrong path changes the availability by itself. Earlier failed probes no longer count, and
//! probes in flight are cancelled.
//!
//! # Availability
//!
//! A destination is unhealthy if its active check, its passive check, its agent or the program says so.
//! Any other may be picked if it has a weight above 0 (unless all weights are
//! 0), is in the tier with the smallest `Priority` that has such destinations, and is in the
//! proxy's own zone if any of these are. If all destinations with a weight are unhealthy,
//! `HealthyOrPanic` uses all of them, of every tier and zone; `HealthyAndUnknown` uses none, and
//! requests get 503. Results count only while the check is enabled.
//!
//! An [`AvailableDestinationsPolicy`] of the program takes the place of the two.
//!
//! # Bounds
//!
//! At most 64 destinations of a cluster are probed at a time, and 512 over all clusters. The
//! timeout of a probe starts with the probe, not while it waits for a slot.
//!
//! # Differences from YARP
//!
//! * A cluster or destination that is new is probed at once; in YARP it waits for one interval.
//! * Intervals are up to a tenth shorter or longer, so that clusters and proxies do not probe in step.
//! * Probes of one destination may have a path of their own, `HealthPath`; YARP has one per cluster.
//! * A destination whose address changes starts with unknown health. YARP keeps the health of the
//!   old address.
//! * Each probe opens a connection of its own.
//! * A retried request counts for each destination that it was sent to; in YARP there are no retries.
//! * The detection window and the least number of requests are metadata of the cluster; in YARP they
//!   are options of the program.

mod agent;
mod available;
mod consecutive_failures;
mod passive;
mod policy;
mod probe;
mod state;

pub(crate) use self::agent::{
    AgentChange, AgentMode, AgentState, AgentWeight, AgentWords, Announcement, LONGEST_LINE,
};
pub(crate) use self::available::AvailabilityPolicies;
pub use self::available::AvailableDestinationsPolicy;
pub use self::passive::{Forwarded, PassiveHealthPolicy};
pub(crate) use self::passive::{PassivePolicies, is_failure, time_out};
pub(crate) use self::policy::HealthPolicies;
pub use self::policy::{ActiveHealthPolicy, Probed};
pub use self::probe::{Probe, ProbeError};
pub use self::state::Health;
pub(crate) use self::state::{HealthRecord, HealthState};
