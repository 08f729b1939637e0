//! The results of the services in one cycle.

use std::sync::Arc;
use std::time::Duration;

use proxy_model::{ClusterId, Problems, Revision, RouteId};
use serde::Serialize;

use crate::error::DiscoverErrorKind;
use crate::timestamp::Timestamp;

/// A poll of a source that has ended.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct FinishedCycle {
    /// The number of the poll, from 1.
    pub cycle: u64,
    /// The beginning of the cycle.
    pub began: Timestamp,
    /// The time that it took: the calls to the source, and what was made of the answers.
    pub took: Duration,
    /// Number of services that the source described. 0 after a failure.
    pub services: usize,
    /// True if it changed the configuration.
    pub changed: bool,
    /// The kind of failure. `None` if the source answered.
    pub error: Option<DiscoverErrorKind>,
}

/// The results of the services in one cycle.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub struct CycleReport {
    /// Counts the cycles of the runner, from 1.
    #[serde(rename = "round")]
    pub cycle: u64,
    /// The configuration after the cycle.
    pub revision: Revision,
    /// True if the cycle changed the configuration.
    pub changed: bool,
    /// The result of each service, in the order in which they were considered.
    pub services: Vec<ServiceReport>,
    /// Problems of the discovery as a whole.
    pub problems: Problems,
}

/// The result of one service.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub struct ServiceReport {
    /// The service.
    pub name: Arc<str>,
    /// The outcome.
    pub outcome: ServiceOutcome,
    /// Problems of the service: the reasons of a quarantine, or warnings. Pointers begin at the service.
    pub problems: Problems,
}

/// The outcome of one service in a cycle.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(
    rename_all = "snake_case",
    rename_all_fields = "snake_case",
    tag = "kind"
)]
#[non_exhaustive]
pub enum ServiceOutcome {
    /// An accepted service, which is part of the configuration as the source describes it now.
    Accepted {
        /// The service's clusters.
        clusters: Vec<ClusterId>,
        /// The service's routes.
        routes: Vec<RouteId>,
    },
    /// A service that did not opt in to be served.
    #[serde(rename = "not_enlisted")]
    NotEnabled,
    /// A service whose current description cannot be used.
    Quarantined {
        /// Age of the last known good rules that serve instead. `None` if nothing serves.
        #[serde(rename = "last_good_age")]
        last_known_good_age: Option<Duration>,
        /// Age of the destinations that serve.
        destinations_age: Option<Duration>,
    },
    /// A service that is missing from the discovery result, but serves in its last known good form: its
    /// group could not be listed, or its removal waits to be confirmed.
    Kept {
        /// Age of the last known good form.
        #[serde(rename = "last_good_age")]
        last_known_good_age: Duration,
    },
}
