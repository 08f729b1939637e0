//! What hosting reports to the health store, as source `System.Hosting` and without expiry.

use std::fmt;
use std::sync::Arc;

use serde::Serialize;

use super::key::PackageKey;

/// The source id of all reports of hosting.
pub const SOURCE: &str = "System.Hosting";

/// How well something is.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, serde::Deserialize,
)]
pub enum HealthState {
    /// Well.
    Ok,
    /// Not as it should be.
    Warning,
    /// Broken.
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

/// What a report is about. The node is the one that reports.
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

/// What is said about one property of an entity.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum HealthReport {
    /// Its state, from now on.
    State {
        /// How well it is.
        state: HealthState,
        /// A sentence for people.
        description: String,
    },
    /// There is nothing to say any more: the event disappears.
    Removed,
}

/// A report that stands: the last one about its property.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct StandingHealth {
    /// What it is about.
    pub entity: HealthEntity,
    /// The property.
    pub property: Arc<str>,
    /// How well it is.
    pub state: HealthState,
    /// A sentence for people.
    pub description: String,
}
