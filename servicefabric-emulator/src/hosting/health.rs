//! Health reports of hosting, with the source `System.Hosting` and without expiry.

use std::fmt;
use std::sync::Arc;

use serde::Serialize;

use super::key::PackageKey;

/// The source id of all reports of hosting.
pub const SOURCE: &str = "System.Hosting";

/// The health state of an entity.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, serde::Deserialize,
)]
pub enum HealthState {
    /// The entity is healthy.
    Ok,
    /// The entity is impaired.
    Warning,
    /// The entity is broken.
    Error,
}

impl fmt::Display for HealthState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Ok => "Ok",
            Self::Warning => "Warning",
            Self::Error => "Error",
        })
    }
}

/// The entity of a report. The node is the one that reports.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum HealthEntity {
    /// The application on the node.
    DeployedApplication(Arc<str>),
    /// A package instance on the node.
    DeployedServicePackage(PackageKey),
}

impl fmt::Display for HealthEntity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::DeployedApplication(name) => name.fmt(f),
            Self::DeployedServicePackage(key) => key.fmt(f),
        }
    }
}

/// A report about one property of an entity.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum HealthReport {
    /// The state from now on.
    State {
        /// The health state.
        state: HealthState,
        /// A sentence for people.
        description: String,
    },
    /// The report is withdrawn, and its event disappears.
    Removed,
}

/// The current report about a property.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct StandingHealth {
    /// The entity.
    pub entity: HealthEntity,
    /// The property.
    pub property: Arc<str>,
    /// The health state.
    pub state: HealthState,
    /// A sentence for people.
    pub description: String,
}
