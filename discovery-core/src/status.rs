//! The status of a source.

use std::sync::Arc;
use std::time::Duration;

use proxy_model::Problems;
use serde::Serialize;
use tokio::time::Instant;

use crate::error::{DiscoverError, DiscoverErrorKind};
use crate::timestamp::Timestamp;

/// The status of a provider, for people and for metrics.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub struct ProviderStatus {
    /// The state, in one word.
    pub state: SourceState,
    /// The time since which the provider is in that state.
    pub since: Timestamp,
    /// The time of the last successful poll. In the state [`Partial`](SourceState::Partial) it is the time
    /// of the oldest data that serves. Its age is the age of the configuration that serves.
    pub last_ok: Option<Timestamp>,
    /// The last failure, kept after the source has recovered.
    pub last_error: Option<Failure>,
    /// Number of failures since the source last returned complete data.
    pub consecutive_failures: u32,
    /// Number of polls.
    #[serde(rename = "rounds")]
    pub cycles: u64,
    /// Number of changes of the configuration.
    pub changes: u64,
    /// The time of the next poll. `None` during a poll, and for providers that do not poll.
    #[serde(serialize_with = "due_in_seconds", rename = "next_round_in")]
    pub next_cycle: Option<Instant>,
    /// Services that do not serve as the source describes them.
    pub quarantined: Vec<QuarantinedService>,
    /// The state of the file that keeps the last known good configuration. `None` if there is no file.
    pub persistence: Option<PersistenceStatus>,
}

impl ProviderStatus {
    /// Creates the status of a provider that is in this state since now.
    pub fn new(state: SourceState) -> Self {
        Self {
            state,
            since: Timestamp::now(),
            last_ok: None,
            last_error: None,
            consecutive_failures: 0,
            cycles: 0,
            changes: 0,
            next_cycle: None,
            quarantined: Vec::new(),
            persistence: None,
        }
    }

    /// Returns what happens with a source that fails, whole or in part, as the log says it. `None` for others.
    pub fn condition(&self, has_config: bool) -> Option<String> {
        let kind = self.last_error.as_ref()?.kind;
        match self.state {
            SourceState::Failing => Some(format!("the {}", kind.outage(1, has_config))),
            SourceState::Partial => Some(format!("the {}", kind.partial_outage(1))),
            _ => None,
        }
    }

    /// Enters a state. Returns true if it differs from the one before.
    pub fn enter(&mut self, state: SourceState) -> bool {
        let changed = self.state != state;
        if changed {
            self.state = state;
            self.since = Timestamp::now();
        }
        changed
    }
}

/// The state of a provider.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum SourceState {
    /// Not polled successfully yet; nothing serves.
    Starting,
    /// Not polled successfully yet; the configuration restored from disk serves.
    Restored,
    /// Live: the last poll succeeded and its result serves.
    Live,
    /// Some calls of the poll failed, and older data replaces their results.
    Partial,
    /// Failing. The last known configuration serves, if there is one.
    Failing,
    /// Stopped, no longer polled. The last known configuration serves, if there is one.
    Stopped,
}

impl SourceState {
    /// The state in lower case.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Starting => "starting",
            Self::Restored => "restored",
            Self::Live => "live",
            Self::Partial => "partial",
            Self::Failing => "failing",
            Self::Stopped => "stopped",
        }
    }

    /// Returns true if the configuration that serves may be older than the source's.
    pub const fn is_stale(self) -> bool {
        !matches!(self, Self::Live)
    }
}

/// One failure of a source.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub struct Failure {
    /// The time.
    pub at: Timestamp,
    /// The kind.
    pub kind: DiscoverErrorKind,
    /// The message with its causes.
    pub message: String,
}

impl Failure {
    /// Creates a failure that happened now.
    pub fn now(error: &DiscoverError) -> Self {
        Self {
            at: Timestamp::now(),
            kind: error.kind(),
            message: error.chain(),
        }
    }
}

/// A service that does not serve as its source describes it.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub struct QuarantinedService {
    /// The service.
    pub service: Arc<str>,
    /// The time since which the service is quarantined.
    pub since: Timestamp,
    /// The time at which the rules that serve instead, routes and cluster settings, were last confirmed.
    /// `None` if nothing serves.
    #[serde(rename = "last_good")]
    pub last_known_good: Option<Timestamp>,
    /// The time at which the destinations that serve were last confirmed. They follow the source while the
    /// rules stay, unless the source cannot provide them. `None` if nothing serves, or if the service has no
    /// destination.
    pub destinations: Option<Timestamp>,
    /// The reasons. Pointers begin at the service.
    pub problems: Problems,
    /// True if the service is described correctly, and lacks only destinations that can be used.
    #[serde(skip)]
    pub(crate) is_unusable: bool,
    /// True if there are instances that cannot be destinations.
    #[serde(skip)]
    pub(crate) has_unusable: bool,
}

impl QuarantinedService {
    /// Returns true if a cluster of the service has no destination although there are instances: their addresses cannot
    /// be used. A service without an instance has no destination either.
    pub fn has_unusable_instances(&self) -> bool {
        self.has_unusable
    }

    /// Returns a text for people about what serves: `rules of 12 minutes ago, destinations of 2 s ago`, or
    /// `rules of 2 s ago, no destination`, or `nothing serves`.
    pub fn serves(&self) -> String {
        let Some(rules) = self.last_known_good else {
            return "nothing serves".to_owned();
        };
        let rules = rough_age(rules.age());
        match self.destinations {
            Some(destinations) => {
                let destinations = rough_age(destinations.age());
                format!("rules of {rules} ago, destinations of {destinations} ago")
            }
            None => format!("rules of {rules} ago, no destination"),
        }
    }
}

/// An age in the unit that a person would choose.
pub fn rough_age(age: Duration) -> String {
    let seconds = age.as_secs();
    match (seconds / 86_400, seconds / 3600, seconds / 60) {
        (0, 0, 0..=1) => format!("{seconds} s"),
        (0, 0 | 1, minutes) => format!("{minutes} minutes"),
        (0 | 1, hours, _) => format!("{hours} hours"),
        (days, _, _) => format!("{days} days"),
    }
}

/// The state of the file that keeps the last known good configuration.
#[derive(Clone, Debug, Default, Serialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub struct PersistenceStatus {
    /// The time of the last write.
    pub last_saved: Option<Timestamp>,
    /// The reason why the file is not up to date. `None` if it is.
    pub error: Option<String>,
}

fn due_in_seconds<S: serde::Serializer>(
    due: &Option<Instant>,
    serializer: S,
) -> Result<S::Ok, S::Error> {
    let seconds = due.map(|due| due.saturating_duration_since(Instant::now()).as_secs_f64());
    seconds.serialize(serializer)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ages_have_the_unit_that_a_person_would_choose() {
        for (seconds, text) in [
            (0, "0 s"),
            (119, "119 s"),
            (120, "2 minutes"),
            (12 * 60 + 59, "12 minutes"),
            (2 * 3600 - 1, "119 minutes"),
            (2 * 3600, "2 hours"),
            (47 * 3600, "47 hours"),
            (48 * 3600, "2 days"),
        ] {
            assert_eq!(rough_age(Duration::from_secs(seconds)), text);
        }
    }

    #[tokio::test(start_paused = true)]
    async fn what_serves_of_a_service_is_told_with_both_ages() {
        let mut service = QuarantinedService {
            service: "web".into(),
            since: Timestamp::now(),
            last_known_good: Some(Timestamp::ago(Duration::from_secs(12 * 60))),
            destinations: Some(Timestamp::ago(Duration::from_secs(2))),
            problems: Problems::new(),
            is_unusable: false,
            has_unusable: false,
        };
        assert_eq!(
            service.serves(),
            "rules of 12 minutes ago, destinations of 2 s ago"
        );
        service.destinations = None;
        assert_eq!(service.serves(), "rules of 12 minutes ago, no destination");
        service.last_known_good = None;
        assert_eq!(service.serves(), "nothing serves");
    }
}
