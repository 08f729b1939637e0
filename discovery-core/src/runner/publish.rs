//! The reports and log messages of a runner.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use proxy_model::{Problem, Problems};
use tokio::sync::watch;
use tokio::time::Instant;

use super::registry::Settled;
use crate::discovery::Outdated;
use crate::error::{DiscoverError, DiscoverErrorKind};
use crate::provider::ProviderState;
use crate::report::{CycleReport, FinishedCycle};
use crate::status::{Failure, PersistenceStatus, QuarantinedService, SourceState};
use crate::summary::Summary;
use crate::timestamp::Timestamp;

/// Problems of single services beyond this number are not logged one by one.
const MOST_LOGGED: usize = 10;

/// The wait for the first answer of a source after which its silence is a problem.
pub(super) const SILENCE: Duration = Duration::from_secs(5);
/// The code of the problem that a source has not answered since the start.
const NOT_ANSWERED: &str = "source_not_answered";
/// The code of the problem that the last known good configuration cannot be kept on disk.
const NOT_KEPT: &str = "persist_failed";

/// Publishes the state of a source. When it is dropped the source is shown as stopped.
#[derive(Debug)]
pub(super) struct Publisher {
    pub(super) source: Arc<str>,
    pub(super) state: watch::Sender<Arc<ProviderState>>,
    pub(super) reports: watch::Sender<Option<Arc<CycleReport>>>,
    /// The last poll that has ended.
    pub(super) cycles: watch::Sender<Option<FinishedCycle>>,
}

impl Publisher {
    pub(super) fn new(source: Arc<str>) -> Self {
        Self {
            source,
            state: watch::Sender::new(Arc::new(ProviderState::waiting())),
            reports: watch::Sender::new(None),
            cycles: watch::Sender::new(None),
        }
    }

    /// Changes the state. Receivers are notified only of changes that they may act on: configuration,
    /// problems, kind of state.
    fn update<T>(&self, change: impl FnOnce(&mut ProviderState) -> T) -> T {
        let mut result = None;
        self.state.send_if_modified(|shared| {
            let mut state = (**shared).clone();
            result = Some(change(&mut state));
            add_own_problems(&mut state);
            let notify = state.revision != shared.revision
                || state.problems != shared.problems
                || state.status.state != shared.status.state;
            *shared = Arc::new(state);
            notify
        });
        result.expect("`send_if_modified` calls its argument")
    }

    pub(super) fn cycle_begins(&self) -> u64 {
        self.update(|state| {
            state.status.next_cycle = None;
            state.status.cycles += 1;
            state.status.cycles
        })
    }

    /// Returns true if the source has neither answered nor failed yet.
    pub(super) fn is_silent(&self) -> bool {
        is_silent(&self.state.borrow())
    }

    /// Reports the silence of a source.
    pub(super) fn still_silent(&self) {
        self.update(|_| ());
        let provider = &*self.source;
        let seconds = SILENCE.as_secs();
        tracing::warn!(
            target: "discovery::runner",
            provider,
            "the source has not responded for {seconds} s since the start",
        );
    }

    pub(super) fn next_cycle(&self, due: Instant) {
        self.update(|state| state.status.next_cycle = Some(due));
    }

    /// Publishes the configuration restored from disk, which serves until the source can be polled.
    pub(super) fn restored(&self, settled: Settled, confirmed: Option<Timestamp>) {
        tracing::info!(
            target: "discovery::runner",
            provider = &*self.source,
            clusters = settled.config.clusters.len(),
            routes = settled.config.routes.len(),
            problems = %settled.outcome.problems,
            "serving the configuration stored on disk until the source responds",
        );
        self.update(|state| {
            state.status.enter(SourceState::Restored);
            state.status.last_ok = confirmed;
            state.config = Some(settled.config);
            state.revision = Some(settled.revision);
            state.problems = settled.outcome.problems;
            state.status.quarantined = settled.outcome.quarantined;
            state.status.changes += 1;
        });
    }

    /// Reports that the configuration on disk cannot serve, so that there is still none.
    pub(super) fn restored_nothing(&self, services: usize, problems: Problems) {
        tracing::warn!(
            target: "discovery::runner",
            provider = &*self.source,
            services,
            %problems,
            "no part of the configuration stored on disk can be used any more",
        );
        self.update(|state| state.problems = problems);
    }

    /// Publishes a successful cycle. Returns true if it changed the configuration.
    pub(super) fn answered(
        &self,
        cycle: u64,
        settled: Settled,
        changes: Option<&Summary>,
        outdated: Option<&Outdated>,
    ) -> Arc<CycleReport> {
        let before = Arc::clone(&self.state.borrow());
        let Settled {
            config,
            revision,
            outcome,
            ..
        } = settled;
        self.log_answer(&before, &outcome.quarantined, changes);
        self.log_age(&before, outdated);
        let report = Arc::new(CycleReport {
            cycle,
            revision,
            changed: before.revision != Some(revision),
            services: outcome.services,
            problems: outcome.problems.clone(),
        });
        self.update(|state| {
            match outdated {
                Some(outdated) => state.serve_in_part(config, revision, outdated),
                None => state.serve_revision(config, revision),
            };
            state.problems = outcome.problems;
            state.status.quarantined = outcome.quarantined;
        });
        self.reports.send_replace(Some(Arc::clone(&report)));
        report
    }

    /// Publishes a failed cycle. Returns the number of consecutive failures.
    pub(super) fn failed(&self, error: &DiscoverError) -> u32 {
        let failure = Failure::now(error);
        let message = failure.message.clone();
        let is_rejected = error.kind() == DiscoverErrorKind::Rejected;
        let (is_news, has_config, failures) = self.update(|state| {
            let is_first = state.status.enter(SourceState::Failing);
            let before = state.status.last_error.replace(failure);
            let was_rejected = before.is_some_and(|one| one.kind == DiscoverErrorKind::Rejected);
            if !error.problems().is_empty() {
                state.problems = error.problems().clone();
            }
            state.status.consecutive_failures = state.status.consecutive_failures.saturating_add(1);
            let failures = state.status.consecutive_failures;
            // A rejection after other failures is news: an operator has to correct a credential.
            let is_news = is_first || is_rejected && !was_rejected;
            (is_news, state.config.is_some(), failures)
        });
        let provider = &*self.source;
        let outage = error.kind().outage(1, has_config);
        if is_news {
            tracing::warn!(
                target: "discovery::runner",
                provider,
                error = message,
                "the {outage}",
            );
        } else {
            tracing::debug!(
                target: "discovery::runner",
                provider,
                error = message,
                failures,
                "still: the {outage}",
            );
        }
        failures
    }

    /// Records that writing to disk succeeded, or the reason why it failed.
    pub(super) fn persisted(&self, failure: Option<String>) {
        let reason = failure.clone();
        let first = self.update(|state| {
            let persistence = &mut state.status.persistence;
            let status = persistence.get_or_insert_with(PersistenceStatus::default);
            let first = status.error.is_none();
            status.error = failure;
            if status.error.is_none() {
                status.last_saved = Some(Timestamp::now());
            }
            first
        });
        if let Some(error) = reason.filter(|_| first) {
            tracing::warn!(
                target: "discovery::runner",
                provider = &*self.source,
                error,
                "the last known good configuration cannot be kept on disk; it serves all the same",
            );
        }
    }

    /// Logs that the source begins or stops to return partly outdated data.
    fn log_age(&self, before: &ProviderState, outdated: Option<&Outdated>) {
        let provider = &*self.source;
        let was_partial = before.status.state == SourceState::Partial;
        let was_rejected = before.status.last_error.as_ref();
        let was_rejected = was_rejected.is_some_and(|one| one.kind == DiscoverErrorKind::Rejected);
        let is_news = |outdated: &Outdated| {
            !was_partial || outdated.kind == DiscoverErrorKind::Rejected && !was_rejected
        };
        match outdated {
            Some(outdated) if is_news(outdated) => tracing::warn!(
                target: "discovery::runner",
                provider,
                error = outdated.error,
                age_seconds = outdated.since.age().as_secs(),
                "the {}",
                outdated.kind.partial_outage(1),
            ),
            None if was_partial => {
                tracing::info!(target: "discovery::runner", provider, "the source answers everything again");
            }
            _ => {}
        }
    }

    fn log_answer(
        &self,
        before: &ProviderState,
        quarantined: &[QuarantinedService],
        changes: Option<&Summary>,
    ) {
        let provider = &*self.source;
        if before.status.state == SourceState::Failing {
            let failures = before.status.consecutive_failures;
            tracing::info!(target: "discovery::runner", provider, failures, "the source answers again");
        }
        let known: HashMap<&str, bool> = kinds(&before.status.quarantined);
        // A service of the other kind is news, too: it needs another correction.
        let is_news = |q: &&QuarantinedService| known.get(&*q.service) != Some(&q.is_unusable);
        let fresh = quarantined.iter().filter(is_news);
        for service in fresh.clone().take(MOST_LOGGED) {
            let what = match service.is_unusable {
                true => "requests to the service lack a destination that can be used",
                false => "the service cannot be served as it is described",
            };
            tracing::warn!(
                target: "discovery::runner",
                provider,
                service = &*service.service,
                serves = service.serves(),
                problems = %service.problems,
                "{what}",
            );
        }
        let unlogged = fresh.count().saturating_sub(MOST_LOGGED);
        if unlogged > 0 {
            tracing::warn!(
                target: "discovery::runner",
                provider,
                services = unlogged,
                "more services are quarantined, for reasons of either kind",
            );
        }
        let still = kinds(quarantined);
        let recovered = known.keys().filter(|name| !still.contains_key(*name));
        let recovered = recovered.count();
        if recovered > 0 {
            tracing::info!(
                target: "discovery::runner",
                provider,
                services = recovered,
                "services left quarantine",
            );
        }
        if let Some(changes) = changes {
            tracing::info!(target: "discovery::runner", provider, %changes, "configuration changed");
        }
    }
}

impl Drop for Publisher {
    fn drop(&mut self) {
        self.update(|state| {
            state.status.enter(SourceState::Stopped);
            state.status.next_cycle = None;
        });
    }
}

fn is_silent(state: &ProviderState) -> bool {
    matches!(
        state.status.state,
        SourceState::Starting | SourceState::Restored
    )
}

/// Adds the problems that the runner itself has with a source, and removes those that it had before.
fn add_own_problems(state: &mut ProviderState) {
    let is_own = |problem: &Problem| problem.code == NOT_ANSWERED || problem.code == NOT_KEPT;
    if state.problems.iter().any(is_own) {
        let problems = std::mem::take(&mut state.problems);
        let others = problems.into_iter().filter(|problem| !is_own(problem));
        state.problems = others.collect();
    }
    if is_silent(state) && state.status.cycles > 0 && state.status.since.age() >= SILENCE {
        let message = match state.status.state {
            SourceState::Restored => {
                "the source has not responded since the start; the configuration stored on disk serves until it does"
            }
            _ => "the source has not responded since the start; nothing of it serves yet",
        };
        let problem = Problem::warning("", NOT_ANSWERED, message);
        state.problems.push(problem);
    }
    let persistence = state.status.persistence.as_ref();
    if let Some(error) = persistence.and_then(|kept| kept.error.as_ref()) {
        let message = format!(
            "the last known good configuration cannot be stored on disk, so a restart without the source would not \
             serve it: {error}"
        );
        let problem = Problem::warning("", NOT_KEPT, message);
        state.problems.push(problem);
    }
}

/// The services by name, with true for those that are described correctly.
fn kinds(quarantined: &[QuarantinedService]) -> HashMap<&str, bool> {
    let kinds = quarantined.iter().map(|q| (&*q.service, q.is_unusable));
    kinds.collect()
}
