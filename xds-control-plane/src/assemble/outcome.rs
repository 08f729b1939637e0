use std::fmt;
use std::sync::Arc;

use super::Owner;
use crate::snapshot::Snapshot;

/// The result of the assembly.
#[derive(Debug, Clone, Default)]
#[non_exhaustive]
pub struct BuiltResources {
    /// The snapshot to serve.
    pub snapshot: Arc<Snapshot>,
    /// The services that are not served as requested, by owner.
    pub quarantined: Vec<Quarantined>,
    /// Differences between served and requested resources.
    pub warnings: Vec<Warning>,
}

/// A service with resources that Envoy would reject.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Quarantined {
    /// The owner.
    pub owner: Owner,
    /// All reasons.
    pub reasons: Vec<Reason>,
    /// True if its last known good form is served meanwhile.
    pub serves_last_known_good: bool,
}

/// A problem that Envoy would reject, or would interpret in an unintended way.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
#[non_exhaustive]
pub struct Reason {
    /// The resource, such as `cluster orders-http`.
    pub resource: String,
    /// The field, such as `health_checks[0].health_checker`.
    pub field: String,
    /// A description of the problem and its correction.
    pub message: String,
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}: {}", self.resource, self.field, self.message)
    }
}

/// A finding that does not keep anything from being served.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
#[non_exhaustive]
pub struct Warning {
    /// The owner.
    pub owner: Owner,
    /// A code that does not change, for metrics and alarms.
    pub code: &'static str,
    /// A description of the finding, and of the action taken.
    pub message: String,
}

impl Warning {
    /// Creates a warning about a service.
    #[must_use]
    pub fn new(owner: Owner, code: &'static str, message: impl Into<String>) -> Self {
        Self {
            owner,
            code,
            message: message.into(),
        }
    }
}

impl fmt::Display for Warning {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {} ({})", self.owner, self.message, self.code)
    }
}
