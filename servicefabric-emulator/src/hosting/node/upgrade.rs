//! Replacement of a running package by another version.

use std::sync::Arc;

use super::Node;
use super::error::NodeError;
use super::state::{Operation, PackageState};
use super::timers::Timer;
use crate::hosting::event::{Event, Phase};
use crate::hosting::health::HealthEntity;
use crate::hosting::key::PackageKey;
use crate::hosting::timestamp::Span;

impl Node {
    /// Upgrades a package instance to the version that was declared last.
    ///
    /// The new version is downloaded while the old one runs. Then the processes are stopped (replicas go down
    /// and wait), and the new version is activated and started. An abandoned download leaves the old version
    /// running. An abandoned activation leaves nothing, and waiting replicas start it again. Without the
    /// instance, or if that version already runs, nothing happens. An instance that is starting begins again
    /// with the new version.
    ///
    /// # Errors
    /// The package is unknown, or the node is down.
    pub fn upgrade(&mut self, key: &PackageKey) -> Result<(), NodeError> {
        self.check_up()?;
        let target = self.description(key)?;
        let Some(package) = self.packages.get(key) else {
            return Ok(());
        };
        let aim = package
            .operation
            .as_ref()
            .map_or(&package.description, |operation| &operation.target);
        // An upgrade to the same target goes on.
        if *aim == target || package.state == PackageState::Deactivating {
            return Ok(());
        }
        // A package that never ran is simply activated in the new version.
        let upgrade = package.state != PackageState::Starting || package.is_upgrading();
        let from = Arc::clone(&package.description.version);
        self.emit(Event::UpgradeStarted {
            package: key.clone(),
            from,
            to: Arc::clone(&target.version),
        });
        self.end_operation(key);
        let Some(package) = self.packages.get_mut(key) else {
            return Ok(());
        };
        package.operation = Some(Operation {
            upgrade,
            ..Operation::new(Arc::clone(&target))
        });
        match package.state {
            // The old version is already gone or stopping. The download waits for that.
            PackageState::Replacing => return Ok(()),
            PackageState::Starting => {
                package.description = target;
                self.clear_blocks(key);
                if let Some(package) = self.packages.get_mut(key) {
                    package.reset_components();
                }
            }
            PackageState::Active | PackageState::Deactivating => self.put_off_deactivation(key),
        }
        self.schedule_attempt(key, Span::ZERO);
        Ok(())
    }

    /// Returns true if the operation of a package downloads a newer version beside the running one.
    pub(super) fn upgrade_download(&self, key: &PackageKey) -> bool {
        self.packages.get(key).is_some_and(|package| {
            package.state == PackageState::Active
                && package
                    .operation
                    .as_ref()
                    .is_some_and(|operation| operation.phase == Phase::Download)
        })
    }

    pub(super) fn abandon_upgrade(&mut self, key: &PackageKey) {
        let Some(package) = self.packages.get_mut(key) else {
            return;
        };
        package.operation = None;
        let version = Arc::clone(&package.description.version);
        self.emit(Event::UpgradeAbandoned {
            package: key.clone(),
            version,
        });
        self.catch_up_deactivation(key);
        self.watch_unused();
    }

    /// Stops the old version after the download of the new one.
    pub(super) fn replace(&mut self, key: &PackageKey) {
        let Some(package) = self.packages.get_mut(key) else {
            return;
        };
        package.state = PackageState::Replacing;
        if let Some(operation) = &mut package.operation {
            operation.enter(Phase::Activation);
        }
        self.clear_blocks(key);
        self.stop_code(key);
        let time = self.stopping_time(key);
        if time == Span::ZERO {
            self.replaced(key);
            return;
        }
        let timer = self
            .timers
            .set(self.now.after(time), Timer::ProcessesStopped(key.clone()));
        if let Some(package) = self.packages.get_mut(key) {
            package.stopping = timer;
        }
    }

    /// Handles the end of the old version's processes.
    pub(super) fn replaced(&mut self, key: &PackageKey) {
        self.code_stopped(key);
        // The reports concern the old version.
        self.retract_all(&HealthEntity::DeployedServicePackage(key.clone()));
        let Some(package) = self.packages.get_mut(key) else {
            return;
        };
        package.state = PackageState::Starting;
        if let Some(operation) = &package.operation {
            package.description = Arc::clone(&operation.target);
        }
        package.reset_components();
        self.schedule_attempt(key, Span::ZERO);
    }

    /// Ends the operation of a package, without a trace.
    pub(super) fn end_operation(&mut self, key: &PackageKey) {
        let Some(package) = self.packages.get_mut(key) else {
            return;
        };
        let Some(mut operation) = package.operation.take() else {
            return;
        };
        self.timers.cancel(&mut operation.timer);
        let version = Arc::clone(&operation.target.version);
        self.retract_operation(key, &version);
    }
}
