//! Code packages: setup, start, crash, back-off. The consequences of failures are in `failing.rs`, the
//! stopping of processes in `stopping.rs`.

use std::sync::Arc;

use super::Node;
use super::error::NodeError;
use super::failing::{Which, terminated};
use super::state::{Code, CodeState};
use super::stopping::DEACTIVATED_EXIT_CODE;
use super::timers::Timer;
use crate::hosting::event::Event;
use crate::hosting::key::{PackageKey, ProcessKey};
use crate::hosting::timestamp::Span;

impl Node {
    /// Ends the main process of a code package with an exit code, as if it had crashed, been killed or
    /// finished.
    ///
    /// # Errors
    /// There is no such process.
    pub fn exit(&mut self, process: &ProcessKey, exit_code: i32) -> Result<(), NodeError> {
        let running = self
            .code_mut(process)
            .is_some_and(|code| code.state == CodeState::Running);
        if !running {
            return Err(NodeError::NotRunning {
                process: process.clone(),
            });
        }
        self.life_ended(process, exit_code);
        Ok(())
    }

    pub(super) fn code_mut(&mut self, process: &ProcessKey) -> Option<&mut Code> {
        let package = self.packages.get_mut(&process.package)?;
        let index = package.code_index(&process.code_package)?;
        package.codes.get_mut(index)
    }

    pub(super) fn process_keys(&self, key: &PackageKey) -> Vec<ProcessKey> {
        let codes = self.packages.get(key).into_iter();
        codes
            .flat_map(|package| &package.description.code_packages)
            .map(|code| key.process(&code.name))
            .collect()
    }

    /// Starts the code of a package that was just activated: first all setup entry points, then the main
    /// ones.
    pub(super) fn start_code(&mut self, key: &PackageKey) {
        for process in self.process_keys(key) {
            if self.about(&process).is_some_and(|(setup, _)| setup) {
                self.start_setup(&process);
            }
        }
        self.start_mains(key);
    }

    fn start_mains(&mut self, key: &PackageKey) {
        let Some(package) = self.packages.get(key) else {
            return;
        };
        // No main program starts before all setups have ended.
        let waits =
            |code: &Code| matches!(code.state, CodeState::Setup | CodeState::SetupBackingOff);
        if package.codes.iter().any(waits) {
            return;
        }
        for process in self.process_keys(key) {
            if self
                .code_mut(&process)
                .is_some_and(|code| code.state == CodeState::NotStarted)
            {
                self.start_main(&process);
            }
        }
    }

    /// Returns whether a code package has a setup entry point, and whether it runs to completion.
    fn about(&self, process: &ProcessKey) -> Option<(bool, bool)> {
        let package = self.packages.get(&process.package)?;
        let about = package.about(package.code_index(&process.code_package)?);
        Some((about.setup.is_some(), about.run_to_completion))
    }

    /// Starts a process again after its wait.
    pub(super) fn start_again(&mut self, process: &ProcessKey) {
        match self.code_mut(process).map(|code| code.state) {
            Some(CodeState::SetupBackingOff) => self.start_setup(process),
            Some(CodeState::BackingOff) => self.start_main(process),
            _ => {}
        }
    }

    fn start_setup(&mut self, process: &ProcessKey) {
        let id = self.next_process_id();
        let now = self.now;
        let time = self
            .script_of(&process.package)
            .process(&process.code_package)
            .setup_time();
        let Some(code) = self.code_mut(process) else {
            return;
        };
        code.state = CodeState::Setup;
        code.setup.started(id, now);
        self.emit(Event::SetupStarted {
            process: process.clone(),
        });
        if time == Span::ZERO {
            self.setup_ended(process);
            return;
        }
        let timer = self
            .timers
            .set(now.after(time), Timer::SetupEnds(process.clone()));
        if let Some(code) = self.code_mut(process) {
            code.timer = timer;
        }
    }

    pub(super) fn setup_ended(&mut self, process: &ProcessKey) {
        let now = self.now;
        let script = self.script_of(&process.package);
        let exit_code = script.process(&process.code_package).next_setup_exit_code();
        let Some(code) = self.code_mut(process) else {
            return;
        };
        code.setup.exited(exit_code, now);
        self.emit(Event::SetupFinished {
            process: process.clone(),
            exit_code,
        });
        if exit_code != 0 {
            self.failed(process, Which::Setup, &terminated(exit_code));
            return;
        }
        if let Some(code) = self.code_mut(process) {
            code.state = CodeState::NotStarted;
        }
        self.well(process, Which::Setup);
        self.start_mains(&process.package);
    }

    fn start_main(&mut self, process: &ProcessKey) {
        let now = self.now;
        let script = self
            .script_of(&process.package)
            .process(&process.code_package);
        if script.next_start_fails() {
            if let Some(code) = self.code_mut(process) {
                code.main.start_failed(now);
            }
            self.emit(Event::ProcessStartFailed {
                process: process.clone(),
            });
            self.failed(process, Which::Main, "The process could not be started.");
            return;
        }
        let delay = script.registration_delay();
        let life = script.next_life();
        let id = self.next_process_id();
        let life = life.and_then(|life| {
            let timer = Timer::LifeEnds(process.clone(), life.exit_code);
            self.timers.set(now.after(life.lasts), timer)
        });
        let reset_at = now.after(
            self.config
                .code_package_continuous_exit_failure_reset_interval,
        );
        // Without failures there is nothing to reset.
        let failed = self
            .code_mut(process)
            .is_some_and(|code| code.main.failures() > 0);
        let reset = self
            .timers
            .set(reset_at.filter(|_| failed), Timer::Reset(process.clone()));
        let registers = !self.types_of(process).is_empty();
        // Types without a delay are registered below, without a timer.
        let register_at = now.after(delay).filter(|&at| registers && at > now);
        let registration = self
            .timers
            .set(register_at, Timer::Register(process.clone()));
        let Some(code) = self.code_mut(process) else {
            return;
        };
        code.state = CodeState::Running;
        code.main.started(id, now);
        code.life = life;
        code.reset = reset;
        code.registration = registration;
        self.emit(Event::ProcessStarted {
            process: process.clone(),
            process_id: id,
        });
        if registers && delay == Span::ZERO {
            self.register(process);
        }
    }

    /// Handles the end of the main process, by itself or from outside.
    pub(super) fn life_ended(&mut self, process: &ProcessKey, exit_code: i32) {
        let now = self.now;
        let index = self
            .packages
            .get(&process.package)
            .and_then(|package| package.code_index(&process.code_package));
        let (Some(index), Some((_, run_to_completion))) = (index, self.about(process)) else {
            return;
        };
        self.cancel_timers(process);
        let Some(code) = self.code_mut(process) else {
            return;
        };
        let process_id = code.main.process_id.unwrap_or_default();
        code.state = CodeState::Stopped;
        code.main.exited(exit_code, now);
        self.emit(Event::ProcessExited {
            process: process.clone(),
            process_id,
            exit_code,
        });
        self.unregister(&process.package, index);
        for name in self.types_of(process) {
            self.replicas_down(&process.package, &name, &process.code_package);
        }
        if !is_success(exit_code) {
            self.failed(process, Which::Main, &terminated(exit_code));
            return;
        }
        self.well(process, Which::Main);
        if run_to_completion {
            if let Some(code) = self.code_mut(process) {
                code.state = CodeState::Completed;
            }
        } else {
            // A main program that is not meant to end is restarted.
            self.start_main(process);
        }
    }

    pub(super) fn cancel_timers(&mut self, process: &ProcessKey) {
        let Some(package) = self.packages.get_mut(&process.package) else {
            return;
        };
        let Some(index) = package.code_index(&process.code_package) else {
            return;
        };
        let code = &mut package.codes[index];
        for timer in [
            &mut code.timer,
            &mut code.registration,
            &mut code.reset,
            &mut code.life,
        ] {
            self.timers.cancel(timer);
        }
    }

    pub(super) fn types_of(&self, process: &ProcessKey) -> Vec<Arc<str>> {
        let package = self.packages.get(&process.package);
        match package.and_then(|package| package.code_index(&process.code_package)) {
            Some(index) => self.type_names(&process.package, Some(index)),
            None => Vec::new(),
        }
    }

    /// Returns an id that no other process of the node has ever had.
    fn next_process_id(&mut self) -> u64 {
        self.processes += 1;
        1000 + self.processes
    }
}

/// Returns true if a process ended as expected: by itself with code 0, or because hosting stopped it.
pub(super) fn is_success(exit_code: i32) -> bool {
    exit_code == 0 || exit_code == DEACTIVATED_EXIT_CODE
}
