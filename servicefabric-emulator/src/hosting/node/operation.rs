//! Downloads and activations of packages, with their retries.

use std::sync::Arc;

use super::Node;
use super::error::NodeError;
use super::script::{Attempted, Outcome};
use super::state::{FailureSource, Operation, Package, PackageState, TrackedApplication};
use super::timers::Timer;
use crate::hosting::backoff::retry_wait;
use crate::hosting::config::Profile;
use crate::hosting::event::{Event, Phase};
use crate::hosting::health::{HealthEntity, HealthState};
use crate::hosting::key::PackageKey;
use crate::hosting::timestamp::Span;

impl Node {
    /// Downloads and activates a package instance without a replica for it. Does nothing if it is already
    /// there, starting, or being removed.
    ///
    /// # Errors
    /// The package is unknown, or the node is down.
    pub fn activate(&mut self, package: &PackageKey) -> Result<(), NodeError> {
        self.check_up()?;
        self.description(package)?;
        // A closing application takes no new packages.
        let closing = self
            .applications
            .get(&package.application)
            .is_some_and(|entry| entry.closing);
        if !closing && !self.packages.contains_key(package) {
            self.start_operation(package);
        }
        Ok(())
    }

    /// Begins the download of a package that is not on the node.
    pub(super) fn start_operation(&mut self, key: &PackageKey) {
        let Ok(description) = self.description(key) else {
            return;
        };
        self.track_application(&key.application);
        self.packages.insert(key.clone(), Package::new(description));
        self.schedule_attempt(key, Span::ZERO);
    }

    fn track_application(&mut self, name: &Arc<str>) {
        if self.applications.contains_key(name) {
            return;
        }
        let application = TrackedApplication {
            usage: 0,
            unused_since: Some(self.now),
            closing: false,
            deactivation: None,
        };
        self.applications.insert(Arc::clone(name), application);
        self.emit(Event::ApplicationActivated {
            application: Arc::clone(name),
        });
        self.report(
            HealthEntity::DeployedApplication(Arc::clone(name)),
            "Activation".to_owned(),
            HealthState::Ok,
            "The application was activated successfully.".to_owned(),
        );
        self.watch_unused();
    }

    /// Schedules the next attempt after a wait. Without a wait it begins at once.
    pub(super) fn schedule_attempt(&mut self, key: &PackageKey, wait: Span) {
        let Some(phase) = self.operation(key).map(|operation| operation.phase) else {
            return;
        };
        let jitter = self.attempted(key, phase).next_jitter();
        // Only the deployment has a configured bound of the jitter.
        let jitter = match phase {
            Phase::Download => jitter.min(self.config.deployment_failed_retry_interval_range),
            Phase::Activation => jitter,
        };
        let (_, cap, _) = self.retry_settings(phase);
        let wait = wait.saturating_add(jitter).min(cap);
        let first = self
            .operation(key)
            .is_some_and(|operation| operation.attempts == 0);
        if first && wait == Span::ZERO {
            self.attempt(key);
        } else {
            // A retry goes through the queue even without a wait, so that any number of them leaves `step`
            // bounded.
            let due = self.now.after(wait);
            let timer = self.timers.set(due, Timer::AttemptStarts(key.clone()));
            if let Some(operation) = self.operation_mut(key) {
                operation.timer = timer;
            }
        }
    }

    pub(super) fn attempt(&mut self, key: &PackageKey) {
        let Some(operation) = self.operation_mut(key) else {
            return;
        };
        operation.attempts = operation.attempts.saturating_add(1);
        operation.attempting = true;
        let (phase, attempt) = (operation.phase, operation.attempts);
        let version = Arc::clone(&operation.target.version);
        self.emit(Event::AttemptStarted {
            package: key.clone(),
            version,
            phase,
            attempt,
        });
        let time = self.attempted(key, phase).time();
        let time = match phase {
            Phase::Download => time,
            // An activation ends at its time limit, as a failure.
            Phase::Activation => time.min(self.config.activation_timeout),
        };
        if time == Span::ZERO {
            self.attempt_ended(key);
            return;
        }
        let timer = self
            .timers
            .set(self.now.after(time), Timer::AttemptEnds(key.clone()));
        if let Some(operation) = self.operation_mut(key) {
            operation.timer = timer;
        }
    }

    pub(super) fn attempt_ended(&mut self, key: &PackageKey) {
        let Some(operation) = self.operation_mut(key) else {
            return;
        };
        operation.attempting = false;
        let phase = operation.phase;
        let timeout = self.config.activation_timeout;
        let attempted = self.attempted(key, phase);
        let timed_out = phase == Phase::Activation && attempted.time() > timeout;
        match attempted.next_outcome() {
            Outcome::Success if !timed_out => self.attempt_succeeded(key, phase),
            Outcome::InternalError if self.is_left_out(key) => self.retry_uncounted(key),
            Outcome::Success | Outcome::Failure | Outcome::InternalError => {
                self.attempt_failed(key)
            }
        }
    }

    /// Returns true if an internal error does not count as a failure, and counts it as internal then.
    fn is_left_out(&mut self, key: &PackageKey) -> bool {
        let (retry, limit) = (
            self.config.retry_on_internal_error,
            self.config.max_retry_on_internal_error,
        );
        let Some(operation) = self.operation_mut(key) else {
            return false;
        };
        let left_out = retry && operation.internal_errors < limit;
        operation.internal_errors += u32::from(left_out);
        left_out
    }

    fn retry_uncounted(&mut self, key: &PackageKey) {
        let Some(operation) = self.operation(key) else {
            return;
        };
        // An uncounted failure does not lengthen the wait.
        let failures = operation.failures;
        self.retry(key, failures);
    }

    fn retry(&mut self, key: &PackageKey, failures: u32) {
        let Some(operation) = self.operation(key) else {
            return;
        };
        let (phase, version) = (operation.phase, Arc::clone(&operation.target.version));
        let (interval, cap, _) = self.retry_settings(phase);
        self.schedule_attempt(key, retry_wait(interval, cap, failures));
        let retry_at = self
            .operation(key)
            .and_then(|operation| Some(operation.timer?.due()));
        self.emit(Event::AttemptFailed {
            package: key.clone(),
            version,
            phase,
            failures,
            retry_at,
        });
    }

    fn attempt_failed(&mut self, key: &PackageKey) {
        let Some(operation) = self.operation_mut(key) else {
            return;
        };
        operation.failures = operation.failures.saturating_add(1);
        let (phase, failures, upgrade) = (operation.phase, operation.failures, operation.upgrade);
        let version = Arc::clone(&operation.target.version);
        let (_, _, max) = self.retry_settings(phase);
        if failures >= max {
            self.give_up(key, phase, failures, &version);
            return;
        }
        self.retry(key, failures);
        // Only the first failure of a phase is reported to health.
        if failures == 1 {
            let (property, problem) = match phase {
                Phase::Download => (format!("Download:{version}"), "download"),
                Phase::Activation => (format!("Activation:{version}"), "activation"),
            };
            let text =
                format!("There was an error during {problem}. Version {version} is tried again.");
            self.report_on(key, property, HealthState::Error, text);
        }
        // While a newer version is downloaded, the old one serves, and its types are not disabled.
        let blames = !(upgrade && phase == Phase::Download);
        if blames
            && self.config.profile == Profile::Documented
            && failures >= self.config.service_type_disable_failure_threshold
        {
            self.block_types(key, FailureSource::Operation, None);
        }
    }

    fn give_up(&mut self, key: &PackageKey, phase: Phase, failures: u32, version: &Arc<str>) {
        self.emit(Event::OperationAbandoned {
            package: key.clone(),
            version: Arc::clone(version),
            phase,
            failures,
        });
        self.retract_operation(key, version);
        if self.upgrade_download(key) {
            self.abandon_upgrade(key);
            return;
        }
        self.clear_blocks(key);
        self.drop_package(key);
        // The application stays tracked until the next scan finds it unused: a grace time from here would end
        // the operation that a waiting replica starts again.
        self.watch_unused();
    }

    fn attempt_succeeded(&mut self, key: &PackageKey, phase: Phase) {
        match phase {
            Phase::Download => self.downloaded(key),
            Phase::Activation => self.activated(key),
        }
    }

    fn downloaded(&mut self, key: &PackageKey) {
        let Some(operation) = self.operation(key) else {
            return;
        };
        let version = Arc::clone(&operation.target.version);
        self.retract(key, &format!("Download:{version}"));
        self.emit(Event::PackageDownloaded {
            package: key.clone(),
            version,
        });
        if self.upgrade_download(key) {
            self.replace(key);
            return;
        }
        self.clear_blocks(key);
        let now = self.now;
        // The unused time of a package counts from the end of its download.
        if let Some(package) = self.packages.get_mut(key)
            && package.usage == 0
        {
            package.unused_since = Some(now);
        }
        self.watch_unused();
        self.begin_activation(key);
    }

    pub(super) fn begin_activation(&mut self, key: &PackageKey) {
        if let Some(operation) = self.operation_mut(key) {
            operation.enter(Phase::Activation);
            self.schedule_attempt(key, Span::ZERO);
        }
    }

    fn activated(&mut self, key: &PackageKey) {
        self.clear_blocks(key);
        let Some(package) = self.packages.get_mut(key) else {
            return;
        };
        package.state = PackageState::Active;
        package.operation = None;
        let version = Arc::clone(&package.description.version);
        self.retract(key, &format!("Activation:{version}"));
        self.emit(Event::PackageActivated {
            package: key.clone(),
            version,
        });
        self.report_on(
            key,
            "Activation".to_owned(),
            HealthState::Ok,
            "The ServicePackage was activated successfully.",
        );
        self.watch_unused();
        self.await_registrations(key);
        self.start_code(key);
        self.catch_up_deactivation(key);
    }

    /// Returns the interval, maximum and limit of a phase.
    fn retry_settings(&self, phase: Phase) -> (Span, Span, u32) {
        let config = &self.config;
        match phase {
            Phase::Download => (
                config.deployment_retry_backoff_interval,
                config.deployment_max_retry_interval,
                config.deployment_max_failure_count,
            ),
            Phase::Activation => (
                config.activation_retry_backoff_interval,
                config.activation_max_retry_interval,
                config.activation_max_failure_count,
            ),
        }
    }

    /// Withdraws the reports about failures of an operation that has ended.
    pub(super) fn retract_operation(&mut self, key: &PackageKey, version: &str) {
        self.retract(key, &format!("Download:{version}"));
        self.retract(key, &format!("Activation:{version}"));
    }

    pub(super) fn operation(&self, key: &PackageKey) -> Option<&Operation> {
        self.packages.get(key)?.operation.as_ref()
    }

    pub(super) fn operation_mut(&mut self, key: &PackageKey) -> Option<&mut Operation> {
        self.packages.get_mut(key)?.operation.as_mut()
    }

    fn attempted(&mut self, key: &PackageKey, phase: Phase) -> &mut Attempted {
        let script = self.script_of(key);
        match phase {
            Phase::Download => &mut script.download,
            Phase::Activation => &mut script.activation,
        }
    }
}
