//! The consequences of a failure or an exit of a process.

use super::Node;
use super::state::{Code, CodeState, EntryPoint, FailureSource};
use super::timers::Timer;
use crate::hosting::backoff::restart_wait;
use crate::hosting::config::Profile;
use crate::hosting::deployed::SlotStatus;
use crate::hosting::event::{Event, Rejection};
use crate::hosting::health::HealthState;
use crate::hosting::key::ProcessKey;
use crate::hosting::timestamp::Span;

/// The entry point of a code package.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Which {
    Setup,
    Main,
}

impl Node {
    /// Handles a failure of an entry point: reports it, and restarts the entry point after a wait.
    pub(super) fn failed(&mut self, process: &ProcessKey, which: Which, why: &str) {
        let now = self.now;
        let Some(code) = self.code_mut(process) else {
            return;
        };
        let entry_point = code.entry_point(which);
        let failures = entry_point.failures();
        let at_once = entry_point.statistics.last_activation == Some(now);
        self.report_failures(process, which, failures, why);
        let script = self
            .script_of(&process.package)
            .process(&process.code_package);
        let jitter = script.next_restart_jitter();
        let mut wait = restart_wait(&self.config, failures, jitter);
        if at_once {
            // A process that fails at the instant of its start would stop the clock if it restarted without a
            // pause.
            wait = wait.max(Span::from_millis(1));
        }
        let restart_at = self.now.after(wait);
        let timer = self.timers.set(restart_at, Timer::Start(process.clone()));
        if let Some(code) = self.code_mut(process) {
            code.timer = timer;
            code.state = match which {
                Which::Setup => CodeState::SetupBackingOff,
                Which::Main => CodeState::BackingOff,
            };
        }
        self.emit(Event::ProcessBackingOff {
            process: process.clone(),
            failures,
            wait,
            restart_at,
        });
        self.blame(process, failures);
    }

    /// Applies the consequences of failures: the types of the code package are disabled in the end, and a
    /// guest loses its replicas.
    fn blame(&mut self, process: &ProcessKey, failures: u32) {
        let Some(package) = self.packages.get(&process.package) else {
            return;
        };
        let Some(index) = package.code_index(&process.code_package) else {
            return;
        };
        let guest = package.about(index).guest;
        let config = &self.config;
        let failover =
            guest && failures >= config.deployed_service_failover_continuous_failure_threshold;
        if config.profile == Profile::Documented
            && failures >= config.service_type_disable_failure_threshold
        {
            self.block_types(&process.package, FailureSource::CodePackage, Some(index));
        }
        if failover {
            for name in self.types_of(process) {
                for replica in self.replicas_of(&process.package, &name, SlotStatus::Waiting) {
                    // Another node can host a new replica, but the stored state is only here and must not be
                    // lost.
                    if !self.is_stored(&replica) {
                        self.reject(&replica, Rejection::HostKeepsFailing);
                    }
                }
            }
        }
    }

    fn report_failures(&mut self, process: &ProcessKey, which: Which, failures: u32, why: &str) {
        let state = if failures >= self.config.code_package_health_error_threshold {
            HealthState::Error
        } else if failures >= self.config.code_package_health_warning_threshold {
            HealthState::Warning
        } else {
            return;
        };
        let Some(code) = self.code_mut(process) else {
            return;
        };
        if code.entry_point(which).health.replace(state) != Some(state) {
            let text = format!("There was an error during CodePackage activation. {why}");
            self.report_on(&process.package, which.property(process), state, text);
        }
    }

    /// Resets the failures of a process that has run for long enough.
    pub(super) fn forget_failures(&mut self, process: &ProcessKey) {
        self.emit(Event::FailuresForgotten {
            process: process.clone(),
        });
        self.well(process, Which::Main);
    }

    pub(super) fn well(&mut self, process: &ProcessKey, which: Which) {
        let Some(code) = self.code_mut(process) else {
            return;
        };
        let entry_point = code.entry_point(which);
        entry_point.forget_failures();
        if entry_point
            .health
            .is_some_and(|last| last != HealthState::Ok)
        {
            entry_point.health = Some(HealthState::Ok);
            let text = "The CodePackage was activated successfully.";
            self.report_on(
                &process.package,
                which.property(process),
                HealthState::Ok,
                text,
            );
        }
    }
}

/// Returns the text of the health report about an exit.
pub(super) fn terminated(exit_code: i32) -> String {
    format!("The service host terminated with exit code:{exit_code}")
}

impl Which {
    fn property(self, process: &ProcessKey) -> String {
        let entry_point = match self {
            Self::Setup => "SetupEntryPoint",
            Self::Main => "EntryPoint",
        };
        format!(
            "CodePackageActivation:{}:{entry_point}",
            process.code_package
        )
    }
}

impl Code {
    fn entry_point(&mut self, which: Which) -> &mut EntryPoint {
        match which {
            Which::Setup => &mut self.setup,
            Which::Main => &mut self.main,
        }
    }
}
