//! What became of the services of one round.

use std::sync::Arc;
use std::time::Duration;

use proxy_model::{ClusterId, Problems, Revision, RouteId};
use serde::Serialize;

/// What became of the services of one round.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub struct RoundReport {
    /// Counts the rounds of the runner, from 1.
    pub round: u64,
    /// The configuration after the round.
    pub revision: Revision,
    /// Whether the round changed it.
    pub changed: bool,
    /// What became of each service, in the order in which they were considered.
    pub services: Vec<ServiceReport>,
    /// What is wrong with the answer as a whole.
    pub problems: Problems,
}

/// What became of one service.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub struct ServiceReport {
    /// The service.
    pub name: Arc<str>,
    /// What became of it.
    pub outcome: ServiceOutcome,
    /// What is wrong with it: the reasons of a quarantine, or warnings. Pointers begin at the service.
    pub problems: Problems,
}

/// What became of one service.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(
    rename_all = "snake_case",
    rename_all_fields = "snake_case",
    tag = "kind"
)]
#[non_exhaustive]
pub enum ServiceOutcome {
    /// It is part of the configuration as the source describes it now.
    Accepted {
        /// Its clusters.
        clusters: Vec<ClusterId>,
        /// Its routes.
        routes: Vec<RouteId>,
    },
    /// It did not ask to be served.
    NotEnlisted,
    /// What the source says about it now cannot be used.
    Quarantined {
        /// How old the rules are that serve instead; `None`: nothing serves.
        last_good_age: Option<Duration>,
        /// How old the destinations are that serve.
        destinations_age: Option<Duration>,
    },
    /// The source did not mention it, and it serves in its last good form: its group could not be listed, or its
    /// removal waits to be confirmed.
    Kept {
        /// How old that form is.
        last_good_age: Duration,
    },
}
