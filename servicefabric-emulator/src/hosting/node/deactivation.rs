//! Deactivation of unused packages and applications, after a grace interval.

use std::sync::Arc;

use super::Node;
use super::script::Outcome;
use super::state::PackageState;
use super::timers::Timer;
use crate::hosting::event::{DeactivationTarget, Event};
use crate::hosting::health::HealthEntity;
use crate::hosting::key::{ActivationMode, PackageKey};
use crate::hosting::timestamp::{Span, Timestamp};

impl Node {
    /// Counts one more open replica, and cancels a scheduled deactivation.
    pub(super) fn increment_usage(&mut self, key: &PackageKey) {
        if let Some(package) = self.packages.get_mut(key) {
            package.usage += 1;
            package.unused_since = None;
            package.put_off = false;
        }
        self.keep_package(key);
        if let Some(application) = self.applications.get_mut(&key.application) {
            application.usage += 1;
            application.unused_since = None;
        }
        self.keep_application(&key.application);
    }

    /// Cancels the deactivation of a package. Returns true if one was scheduled.
    fn keep_package(&mut self, key: &PackageKey) -> bool {
        let package = self.packages.get_mut(key);
        let kept = package.is_some_and(|package| self.timers.cancel(&mut package.deactivation));
        if kept {
            self.emit(Event::DeactivationCancelled {
                target: DeactivationTarget::Package(key.clone()),
            });
        }
        kept
    }

    fn keep_application(&mut self, name: &Arc<str>) -> bool {
        let application = self.applications.get_mut(name);
        let kept = application
            .is_some_and(|application| self.timers.cancel(&mut application.deactivation));
        if kept {
            self.emit(Event::DeactivationCancelled {
                target: DeactivationTarget::Application(Arc::clone(name)),
            });
        }
        kept
    }

    /// Puts a scheduled deactivation off until the end of an upgrade.
    pub(super) fn put_off_deactivation(&mut self, key: &PackageKey) {
        let package = self.keep_package(key);
        let application = self.keep_application(&key.application);
        if (package || application)
            && let Some(package) = self.packages.get_mut(key)
        {
            package.put_off = true;
        }
    }

    /// Schedules a deactivation that an upgrade has put off, once the upgrade is over and no replica uses the
    /// package or waits for it.
    pub(super) fn catch_up_deactivation(&mut self, key: &PackageKey) {
        let due = self.packages.get(key).is_some_and(|package| {
            package.put_off && package.usage == 0 && !package.is_upgrading()
        });
        if due && !self.has_waiting(key) {
            self.schedule_package(key);
        }
    }

    /// Counts one open replica less. After the last one the grace interval begins.
    pub(super) fn decrement_usage(&mut self, key: &PackageKey) {
        let now = self.now;
        if let Some(application) = self.applications.get_mut(&key.application) {
            application.usage = application.usage.saturating_sub(1);
            if application.usage == 0 {
                application.unused_since = Some(now);
            }
        }
        if let Some(package) = self.packages.get_mut(key) {
            package.usage = package.usage.saturating_sub(1);
            if package.usage == 0 {
                package.unused_since = Some(now);
                self.schedule_package(key);
            }
        }
        self.watch_unused();
    }

    fn grace(&self, mode: ActivationMode) -> Span {
        match mode {
            ActivationMode::SharedProcess => self.config.deactivation_grace_interval,
            ActivationMode::ExclusiveProcess => {
                self.config.exclusive_mode_deactivation_grace_interval
            }
        }
    }

    fn schedule_package(&mut self, key: &PackageKey) {
        let due = self.now.after(self.grace(key.mode()));
        let Some(package) = self.packages.get_mut(key) else {
            return;
        };
        if package.state == PackageState::Deactivating || package.deactivation.is_some() {
            return;
        }
        // An upgrade takes the replicas down and brings them up again, which does not make the package
        // unused.
        package.put_off = package.is_upgrading();
        if package.put_off {
            return;
        }
        package.deactivation = self.timers.set(due, Timer::DeactivatePackage(key.clone()));
        if let Some(due) = due {
            self.emit(Event::DeactivationScheduled {
                target: DeactivationTarget::Package(key.clone()),
                due,
            });
        }
    }

    fn schedule_application(&mut self, name: &Arc<str>) {
        let due = self.now.after(self.config.deactivation_grace_interval);
        let Some(application) = self.applications.get_mut(name) else {
            return;
        };
        if application.usage > 0 || application.closing || application.deactivation.is_some() {
            return;
        }
        application.deactivation = self
            .timers
            .set(due, Timer::DeactivateApplication(Arc::clone(name)));
        if let Some(due) = due {
            self.emit(Event::DeactivationScheduled {
                target: DeactivationTarget::Application(Arc::clone(name)),
                due,
            });
        }
    }

    /// Finds packages and applications that were unused for a whole scan interval.
    pub(super) fn scan(&mut self) {
        let bound = Timestamp::from_millis(
            self.now
                .as_millis()
                .saturating_sub(self.config.deactivation_scan_interval.as_millis()),
        );
        let unused = |since: Option<Timestamp>| since.is_some_and(|since| since <= bound);
        let names: Vec<Arc<str>> = self.applications.keys().cloned().collect();
        for name in names {
            let upgrading = self.has_upgrade(&name);
            if !upgrading && unused(self.applications[&name].unused_since) {
                self.schedule_application(&name);
                // The packages leave together with the application.
                continue;
            }
            for key in self.packages_of(&name) {
                if unused(self.packages[&key].unused_since) {
                    self.schedule_package(&key);
                }
            }
        }
        self.watch_unused();
    }

    /// Returns true if a package of an application is being upgraded. Its replicas may then be down for a
    /// while, which does not make it unused.
    fn has_upgrade(&self, application: &str) -> bool {
        let packages = self.packages_of(application);
        packages.iter().any(|key| self.packages[key].is_upgrading())
    }

    /// Sets the next scan, if it has something to find. A node on which everything is used is idle.
    pub(super) fn watch_unused(&mut self) {
        if self.scan.is_none() && self.has_unused() {
            self.scan = self.timers.set(self.next_scan(), Timer::Scan);
        }
    }

    fn has_unused(&self) -> bool {
        let config = &self.config;
        let application = self.applications.values().any(|application| {
            application.unused_since.is_some()
                && !application.closing
                && application.deactivation.is_none()
                && !config.deactivation_grace_interval.is_infinite()
        });
        let package = self.packages.iter().any(|(key, package)| {
            package.unused_since.is_some()
                && package.state != PackageState::Deactivating
                && package.deactivation.is_none()
                && !self.grace(key.mode()).is_infinite()
        });
        application || package
    }

    /// Returns the time of the next scan. Scans are at whole intervals after the start of the node.
    fn next_scan(&self) -> Option<Timestamp> {
        let interval = self.config.deactivation_scan_interval;
        if interval.is_infinite() {
            return None;
        }
        let interval = interval.as_millis().max(1);
        let scans = self.now.since(self.started_at).as_millis() / interval;
        let since_start = scans.checked_add(1)?.checked_mul(interval)?;
        self.started_at.after(Span::from_millis(since_start))
    }

    pub(super) fn packages_of(&self, application: &str) -> Vec<PackageKey> {
        self.packages
            .range(PackageKey::shared(application, "")..)
            .map(|(key, _)| key)
            .take_while(|key| *key.application == *application)
            .cloned()
            .collect()
    }

    /// Deactivates an unused application, with all its packages, after its grace interval.
    pub(super) fn deactivate_application(&mut self, name: &Arc<str>) {
        let Some(application) = self.applications.get_mut(name) else {
            return;
        };
        application.closing = true;
        self.emit(Event::DeactivationStarted {
            target: DeactivationTarget::Application(Arc::clone(name)),
        });
        for key in self.packages_of(name) {
            self.deactivate_package(&key);
        }
        // The removal of the last package includes the application. Here there may have been none.
        self.remove_closed_application(name);
    }

    /// Deactivates an unused package after its grace interval. A new replica cannot stop that.
    pub(super) fn deactivate_package(&mut self, key: &PackageKey) {
        let Some(package) = self.packages.get_mut(key) else {
            return;
        };
        if package.state == PackageState::Deactivating {
            return;
        }
        package.state = PackageState::Deactivating;
        self.timers.cancel(&mut package.deactivation);
        self.timers.cancel(&mut package.stopping);
        self.emit(Event::DeactivationStarted {
            target: DeactivationTarget::Package(key.clone()),
        });
        self.end_operation(key);
        self.clear_blocks(key);
        self.stop_code(key);
        self.stop_and_wait(key);
    }

    /// Returns the time that the processes of a package need to stop. Processes that need too long are
    /// killed.
    pub(super) fn stopping_time(&mut self, key: &PackageKey) -> Span {
        let patience = self.config.activation_timeout;
        self.script_of(key).deactivation.time().min(patience)
    }

    /// Begins an attempt to deactivate.
    pub(super) fn stop_and_wait(&mut self, key: &PackageKey) {
        let time = self.stopping_time(key);
        if time == Span::ZERO {
            self.deactivation_ended(key);
            return;
        }
        let timer = self
            .timers
            .set(self.now.after(time), Timer::ProcessesStopped(key.clone()));
        if let Some(package) = self.packages.get_mut(key) {
            package.stopping = timer;
        }
    }

    /// Handles the end of a package's processes: the package is removed, or another version replaces it.
    pub(super) fn processes_stopped(&mut self, key: &PackageKey) {
        match self.packages.get(key).map(|package| package.state) {
            Some(PackageState::Replacing) => self.replaced(key),
            Some(PackageState::Deactivating) => self.deactivation_ended(key),
            Some(PackageState::Starting | PackageState::Active) | None => {}
        }
    }

    fn deactivation_ended(&mut self, key: &PackageKey) {
        if self.script_of(key).deactivation.next_outcome() == Outcome::Success {
            self.deactivated(key);
            return;
        }
        let grace = self.grace(key.mode());
        let limit = self.config.deactivation_max_retry_interval;
        let Some(package) = self.packages.get_mut(key) else {
            return;
        };
        package.deactivation_failures = package.deactivation_failures.saturating_add(1);
        let failures = package.deactivation_failures;
        // Without a grace interval there is nothing to multiply; a second prevents a busy loop of retries.
        let unit = if grace == Span::ZERO {
            Span::from_secs(1)
        } else {
            grace
        };
        let wait = unit
            .saturating_mul(failures.into())
            .min(limit)
            .max(Span::from_millis(1));
        let retry_at = self.now.after(wait);
        package.stopping = self
            .timers
            .set(retry_at, Timer::RetryDeactivation(key.clone()));
        self.emit(Event::DeactivationFailed {
            package: key.clone(),
            failures,
            retry_at,
        });
    }

    fn deactivated(&mut self, key: &PackageKey) {
        self.code_stopped(key);
        self.drop_package(key);
        self.emit(Event::Deactivated {
            target: DeactivationTarget::Package(key.clone()),
        });
        let name = &key.application;
        if !self.packages_of(name).is_empty() {
            return;
        }
        if self
            .applications
            .get(name)
            .is_some_and(|application| application.closing)
        {
            self.remove_closed_application(name);
        } else {
            self.schedule_application(name);
        }
    }

    /// Removes a package with its state and its health reports.
    pub(super) fn drop_package(&mut self, key: &PackageKey) {
        self.stop_code(key);
        self.keep_package(key);
        self.packages.remove(key);
        self.retract_all(&HealthEntity::DeployedServicePackage(key.clone()));
    }

    fn remove_closed_application(&mut self, name: &Arc<str>) {
        let closing = self
            .applications
            .get(name)
            .is_some_and(|application| application.closing);
        if !closing || !self.packages_of(name).is_empty() {
            return;
        }
        self.applications.remove(name);
        if self.applications.is_empty() {
            self.timers.cancel(&mut self.scan);
        }
        self.retract_all(&HealthEntity::DeployedApplication(Arc::clone(name)));
        self.emit(Event::Deactivated {
            target: DeactivationTarget::Application(Arc::clone(name)),
        });
    }
}
