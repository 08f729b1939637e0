//! Which destinations are fit to serve.
//!
//! A cluster whose active check is on has its destinations probed by the [`Driver`](crate::Driver): at once when the
//! cluster or a destination is new, and then in rounds. A round's verdicts are applied together. Verdicts come from an
//! [`ActiveHealthPolicy`]; `ConsecutiveFailures` is built in.

mod active;
mod consecutive_failures;
mod policy;
mod probe;
mod round;
mod state;
mod upstream_probe;

pub(crate) use self::active::ActiveChecks;
pub use self::consecutive_failures::ConsecutiveFailures;
pub(crate) use self::policy::HealthPolicies;
pub use self::policy::{ActiveHealthPolicy, Probed};
pub use self::probe::{Probe, ProbeError};
pub use self::state::Health;
pub(crate) use self::state::{HealthRecord, HealthState};
pub(crate) use self::upstream_probe::UpstreamProbe;

#[cfg(test)]
mod tests;
