//! Service types: registered by processes, disabled by failures.

use std::sync::Arc;

use super::Node;
use super::state::{FailureSource, PackageState, TrackedServiceType};
use super::timers::Timer;
use crate::hosting::deployed::TypeStatus;
use crate::hosting::event::Event;
use crate::hosting::health::HealthState;
use crate::hosting::key::{PackageKey, ProcessKey, TypeKey};

const DISABLED: &str = "The ServiceType was disabled on the node.";

impl Node {
    pub(super) fn type_mut(&mut self, key: &TypeKey) -> Option<&mut TrackedServiceType> {
        let package = self.packages.get_mut(&key.package)?;
        package
            .types
            .iter_mut()
            .find(|known| known.name == key.service_type)
    }

    /// Starts the registration timeout for the types of a package that was just activated.
    pub(super) fn await_registrations(&mut self, key: &PackageKey) {
        for name in self.type_names(key, None) {
            self.await_registration(&key.service_type(&name));
        }
    }

    fn await_registration(&mut self, key: &TypeKey) {
        let due = self
            .now
            .after(self.config.service_type_registration_timeout);
        let timer = self
            .timers
            .set(due, Timer::RegistrationTimeout(key.clone()));
        if let Some(service_type) = self.type_mut(key) {
            service_type.timeout = timer;
        }
    }

    pub(super) fn registration_timed_out(&mut self, key: &TypeKey) {
        let Some(service_type) = self.type_mut(key) else {
            return;
        };
        let disabled = service_type.status == TypeStatus::Disabled;
        self.emit(Event::TypeRegistrationTimedOut {
            service_type: key.clone(),
        });
        // The report that a type is disabled is more severe, and stays.
        if !disabled {
            let severity = self.config.registration_timeout_severity;
            let text = "The ServiceType was not registered within the configured timeout.";
            self.report_on(&key.package, property(key), severity, text);
        }
    }

    /// Registers the types of a process.
    pub(super) fn register(&mut self, process: &ProcessKey) {
        let Some(code) = self
            .packages
            .get(&process.package)
            .and_then(|package| package.code_index(&process.code_package))
        else {
            return;
        };
        let names = self.type_names(&process.package, Some(code));
        for name in &names {
            self.type_registered(&process.package.service_type(name));
        }
        for name in &names {
            self.open_waiting(&process.package, name);
        }
    }

    fn type_registered(&mut self, key: &TypeKey) {
        self.clear_block(key);
        let Some(service_type) = self.type_mut(key) else {
            return;
        };
        service_type.status = TypeStatus::Registered;
        let mut timeout = service_type.timeout.take();
        self.timers.cancel(&mut timeout);
        self.emit(Event::TypeRegistered {
            service_type: key.clone(),
        });
        let text = "The ServiceType was registered successfully.";
        self.report_on(&key.package, property(key), HealthState::Ok, text);
    }

    /// Unregisters the types of a code package whose process has ended.
    pub(super) fn unregister(&mut self, package: &PackageKey, code: usize) {
        for name in self.type_names(package, Some(code)) {
            let key = package.service_type(&name);
            let Some(service_type) = self.type_mut(&key) else {
                continue;
            };
            if service_type.status != TypeStatus::Registered {
                continue;
            }
            service_type.status = TypeStatus::Enabled;
            self.emit(Event::TypeUnregistered {
                service_type: key.clone(),
            });
            let text = "The ServiceType was unregistered on the node since the Runtime or ApplicationHost closed.";
            self.report_on(package, property(&key), HealthState::Warning, text);
            if self
                .packages
                .get(package)
                .is_some_and(|package| package.state == PackageState::Active)
            {
                self.await_registration(&key);
            }
        }
    }

    /// Schedules the disabling of the enabled types of a package, or of one of its code packages.
    pub(super) fn block_types(
        &mut self,
        package: &PackageKey,
        source: FailureSource,
        code: Option<usize>,
    ) {
        for name in self.type_names(package, code) {
            self.block_type(&package.service_type(&name), source);
        }
    }

    fn block_type(&mut self, key: &TypeKey, source: FailureSource) {
        let enabled = self
            .type_mut(key)
            .is_some_and(|known| known.status == TypeStatus::Enabled);
        // With an infinite grace interval that never happens.
        let Some(disable_at) = self
            .now
            .after(self.config.service_type_disable_grace_interval)
        else {
            return;
        };
        if !enabled {
            return;
        }
        let timer = self
            .timers
            .set(Some(disable_at), Timer::Disable(key.clone()));
        if let Some(service_type) = self.type_mut(key) {
            service_type.status = TypeStatus::DisableScheduled;
            service_type.failure = Some(source);
            service_type.disable = timer;
        }
        self.emit(Event::TypeDisableScheduled {
            service_type: key.clone(),
            disable_at,
        });
    }

    /// Counts the failures when a replica is requested, as the runtime does, and schedules the disabling of
    /// the type if there are too many.
    pub(super) fn block_when_asked(&mut self, key: &TypeKey) {
        let Some(package) = self.packages.get(&key.package) else {
            return;
        };
        let Some(service_type) = package.service_type(&key.service_type) else {
            return;
        };
        let (failures, source) = match &package.operation {
            Some(operation) if package.state == PackageState::Starting => {
                (operation.failures, FailureSource::Operation)
            }
            // A package that is being removed no longer counts as failing.
            _ if package.state != PackageState::Active => return,
            _ => {
                let code = &package.codes[service_type.code];
                (
                    code.setup.failures().max(code.main.failures()),
                    FailureSource::CodePackage,
                )
            }
        };
        if failures > self.config.service_type_disable_failure_threshold {
            self.block_type(key, source);
        }
    }

    /// Disables a type after its grace interval.
    pub(super) fn disable(&mut self, key: &TypeKey) {
        let Some(service_type) = self.type_mut(key) else {
            return;
        };
        service_type.status = TypeStatus::Disabled;
        self.emit(Event::TypeDisabled {
            service_type: key.clone(),
        });
        self.report_on(&key.package, property(key), HealthState::Error, DISABLED);
    }

    /// Lifts all blocks of a package's types, because the failing operation has succeeded, was abandoned, or
    /// was removed.
    pub(super) fn clear_blocks(&mut self, package: &PackageKey) {
        for name in self.type_names(package, None) {
            let key = package.service_type(&name);
            if self.clear_block(&key) == Some(TypeStatus::Disabled) {
                self.retract(package, &property(&key));
            }
        }
    }

    /// Enables a type that is disabled or scheduled for that. Returns its former status.
    fn clear_block(&mut self, key: &TypeKey) -> Option<TypeStatus> {
        let service_type = self.type_mut(key)?;
        let was = service_type.status;
        let event = match was {
            TypeStatus::DisableScheduled => Event::TypeDisableCancelled {
                service_type: key.clone(),
            },
            TypeStatus::Disabled => Event::TypeEnabled {
                service_type: key.clone(),
            },
            TypeStatus::Enabled | TypeStatus::Registered => return None,
        };
        service_type.status = TypeStatus::Enabled;
        service_type.failure = None;
        let mut disable = service_type.disable.take();
        self.timers.cancel(&mut disable);
        self.emit(event);
        Some(was)
    }

    /// Cancels the registration timeouts.
    pub(super) fn stop_awaiting(&mut self, package: &PackageKey) {
        let Some(package) = self.packages.get_mut(package) else {
            return;
        };
        for service_type in &mut package.types {
            self.timers.cancel(&mut service_type.timeout);
        }
    }

    /// The types of a package, or of one of its code packages.
    pub(super) fn type_names(&self, package: &PackageKey, code: Option<usize>) -> Vec<Arc<str>> {
        let types = self
            .packages
            .get(package)
            .into_iter()
            .flat_map(|package| &package.types);
        types
            .filter(|service_type| code.is_none_or(|code| service_type.code == code))
            .map(|service_type| Arc::clone(&service_type.name))
            .collect()
    }
}

pub(super) fn property(key: &TypeKey) -> String {
    format!("ServiceTypeRegistration:{}", key.service_type)
}
