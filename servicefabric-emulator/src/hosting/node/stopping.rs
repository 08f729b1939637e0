//! Stopping of the processes of a package.

use super::Node;
use super::state::CodeState;
use crate::hosting::event::Event;
use crate::hosting::key::PackageKey;

/// The exit code of a process that hosting stopped with Ctrl+C.
pub const DEACTIVATED_EXIT_CODE: i32 = 7147;
/// The exit code of a process that hosting killed because it did not stop in time.
pub const ABORTED_EXIT_CODE: i32 = 7148;

impl Node {
    /// Sends Ctrl+C to the processes of a package. None is restarted.
    pub(super) fn stop_code(&mut self, key: &PackageKey) {
        self.stop_awaiting(key);
        let now = self.now;
        for (index, process) in self.process_keys(key).iter().enumerate() {
            self.cancel_timers(process);
            let Some(code) = self.code_mut(process) else {
                continue;
            };
            let was = std::mem::replace(&mut code.state, CodeState::Stopped);
            match (was, code.main.process_id) {
                (CodeState::Running, Some(process_id)) => {
                    code.state = CodeState::Stopping;
                    self.emit(Event::ProcessStopping {
                        process: process.clone(),
                        process_id,
                    });
                    self.unregister(key, index);
                    for name in self.types_of(process) {
                        self.replicas_down(key, &name, &process.code_package);
                    }
                }
                (CodeState::Setup, _) => {
                    code.setup.exited(DEACTIVATED_EXIT_CODE, now);
                    self.emit(Event::SetupFinished {
                        process: process.clone(),
                        exit_code: DEACTIVATED_EXIT_CODE,
                    });
                }
                _ => {}
            }
        }
    }

    /// Handles the end of the processes that were sent Ctrl+C or killed.
    pub(super) fn code_stopped(&mut self, key: &PackageKey) {
        let now = self.now;
        let patience = self.config.activation_timeout;
        let exit_code = if self.script_of(key).deactivation.time() > patience {
            ABORTED_EXIT_CODE
        } else {
            DEACTIVATED_EXIT_CODE
        };
        for process in self.process_keys(key) {
            let Some(code) = self.code_mut(&process) else {
                continue;
            };
            let (CodeState::Stopping, Some(process_id)) = (code.state, code.main.process_id) else {
                continue;
            };
            code.state = CodeState::Stopped;
            code.main.exited(exit_code, now);
            self.emit(Event::ProcessExited {
                process,
                process_id,
                exit_code,
            });
        }
    }
}
