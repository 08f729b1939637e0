//! How a source is doing.

use std::sync::Arc;
use std::time::Duration;

use proxy_model::Problems;
use serde::Serialize;
use tokio::time::Instant;

use crate::error::{DiscoverError, DiscoverErrorKind};
use crate::moment::Moment;

/// How a provider is doing, for people and for metrics.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub struct ProviderStatus {
    /// What it is doing, in one word.
    pub state: SourceState,
    /// Since when it is in that state.
    pub since: Moment,
    /// When the source last answered, in the state [`Partial`](SourceState::Partial) the oldest answer that serves. The age
    /// of the configuration that serves is the age of this.
    pub last_ok: Option<Moment>,
    /// The last failure, kept after the source has recovered.
    pub last_error: Option<Failure>,
    /// Failures since the source last answered all that it was asked.
    pub consecutive_failures: u32,
    /// How often the source was asked.
    pub rounds: u64,
    /// How often the configuration changed.
    pub changes: u64,
    /// When the source is asked next; `None` while it is being asked, and for providers that do not ask.
    #[serde(serialize_with = "due_in_seconds", rename = "next_round_in")]
    pub next_round: Option<Instant>,
    /// Services that do not serve as the source describes them.
    pub quarantined: Vec<QuarantinedService>,
    /// How keeping the last good configuration on disk is doing; `None`: it is not kept.
    pub persistence: Option<PersistenceStatus>,
}

impl ProviderStatus {
    /// A provider in this state since now.
    pub fn new(state: SourceState) -> Self {
        Self {
            state,
            since: Moment::now(),
            last_ok: None,
            last_error: None,
            consecutive_failures: 0,
            rounds: 0,
            changes: 0,
            next_round: None,
            quarantined: Vec::new(),
            persistence: None,
        }
    }

    /// Enters a state. Returns whether it is another one than before.
    pub fn enter(&mut self, state: SourceState) -> bool {
        let changed = self.state != state;
        if changed {
            self.state = state;
            self.since = Moment::now();
        }
        changed
    }
}

/// What a provider is doing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum SourceState {
    /// It has not answered yet, and nothing serves.
    Starting,
    /// It has not answered yet; what was kept on disk serves.
    Restored,
    /// Its last answer serves.
    Live,
    /// It answers in part: some calls fail, and older answers stand in for theirs.
    Partial,
    /// It does not answer. What it last answered serves, if anything.
    Failing,
    /// Nothing asks it any more. What it last answered serves, if anything.
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

    /// Whether what serves may be older than what the source would say now.
    pub const fn is_stale(self) -> bool {
        !matches!(self, Self::Live)
    }
}

/// One failure of a source.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub struct Failure {
    /// When.
    pub at: Moment,
    /// What kind.
    pub kind: DiscoverErrorKind,
    /// The message with its causes.
    pub message: String,
}

impl Failure {
    /// A failure that happened now.
    pub fn now(error: &DiscoverError) -> Self {
        Self {
            at: Moment::now(),
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
    /// Since when.
    pub since: Moment,
    /// When the rules that serve instead, its routes and the settings of its clusters, were last confirmed; `None`:
    /// nothing serves.
    pub last_good: Option<Moment>,
    /// When the destinations that serve were last confirmed. They follow the source while the rules stay, unless the
    /// source cannot tell them.
    pub destinations: Option<Moment>,
    /// Why. Pointers begin at the service.
    pub problems: Problems,
}

impl QuarantinedService {
    /// What serves, for people: `rules of 12 minutes ago, destinations of 2 s ago`, or `nothing serves`.
    pub fn serves(&self) -> String {
        let Some(rules) = self.last_good else {
            return "nothing serves".to_owned();
        };
        let destinations = self.destinations.unwrap_or(rules);
        format!(
            "rules of {} ago, destinations of {} ago",
            rough_age(rules.age()),
            rough_age(destinations.age())
        )
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

/// How keeping the last good configuration on disk is doing.
#[derive(Clone, Debug, Default, Serialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub struct PersistenceStatus {
    /// When it was last written.
    pub last_saved: Option<Moment>,
    /// Why it is not up to date on disk; `None`: it is.
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
            since: Moment::now(),
            last_good: Some(Moment::ago(Duration::from_secs(12 * 60))),
            destinations: Some(Moment::ago(Duration::from_secs(2))),
            problems: Problems::new(),
        };
        assert_eq!(
            service.serves(),
            "rules of 12 minutes ago, destinations of 2 s ago"
        );
        service.last_good = None;
        assert_eq!(service.serves(), "nothing serves");
    }
}
