use std::fmt;
use std::sync::Arc;

use super::Owner;
use crate::snapshot::Snapshot;

/// What became of what the services want.
#[derive(Debug, Clone, Default)]
#[non_exhaustive]
pub struct Assembled {
    /// What is served.
    pub snapshot: Arc<Snapshot>,
    /// The services that are not served as they want to be, by owner.
    pub quarantined: Vec<Quarantined>,
    /// What is served, though not quite as was wanted.
    pub warnings: Vec<Warning>,
}

/// A service with something that Envoy would refuse.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Quarantined {
    /// Whose it is.
    pub owner: Owner,
    /// All that is wrong.
    pub reasons: Vec<Reason>,
    /// Whether its last good form is served meanwhile.
    pub serves_last_good: bool,
}

/// One thing that Envoy would refuse, or would understand otherwise than it is meant.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
#[non_exhaustive]
pub struct Reason {
    /// In which resource, such as `cluster orders-http`.
    pub resource: String,
    /// The field, such as `health_checks[0].health_checker`.
    pub field: String,
    /// What is wrong with it, and how it can be mended.
    pub message: String,
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}: {}", self.resource, self.field, self.message)
    }
}

/// Something to look at that keeps nothing from being served.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
#[non_exhaustive]
pub struct Warning {
    /// Whose it is.
    pub owner: Owner,
    /// A word for it that does not change, for metrics and alarms.
    pub code: &'static str,
    /// What it is, and what was done about it.
    pub message: String,
}

impl Warning {
    /// A warning about a service.
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
