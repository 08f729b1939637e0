//! Scripted behaviour of the outside of a machine: networks, disks and processes.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::timestamp::Span;

/// The number of failures before an operation succeeds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Failures {
    /// The first attempts, counted from the moment the script was set and across operations.
    First(u32),
    /// All attempts.
    Always,
}

impl Default for Failures {
    fn default() -> Self {
        Self::First(0)
    }
}

/// The outcomes of attempts at one operation: a download, an activation or a deactivation.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Attempts {
    /// The duration of an attempt, failed or not. Default: none.
    pub time: Span,
    /// The number of failures. Default: none.
    pub failures: Failures,
    /// The number of initial failures for a reason other than the package, such as a locked file. They do not
    /// count as failures (`RetryOnInternalError`, at most `MaxRetryOnInternalError` of an operation).
    /// Default: 0.
    pub internal_errors: u32,
    /// The additional waits before the first, second, … attempt: the random part of the real runtime, chosen
    /// here. Zero after the end of the list. Downloads limit it to `DeploymentFailedRetryIntervalRange`.
    /// Default: empty.
    pub jitter: Vec<Span>,
}

impl Attempts {
    /// Creates attempts that take this time and succeed.
    pub fn taking(time: Span) -> Self {
        Self {
            time,
            ..Self::default()
        }
    }

    /// Creates attempts that take no time, the first `failures` of which fail.
    pub fn failing(failures: u32) -> Self {
        Self {
            failures: Failures::First(failures),
            ..Self::default()
        }
    }

    /// Attempts that take no time and never succeed.
    pub fn always_failing() -> Self {
        Self {
            failures: Failures::Always,
            ..Self::default()
        }
    }
}

/// The time at which a process that hosts service types registers them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Registration {
    /// The time after the start of the process.
    After(Span),
    /// The process never registers its types.
    Never,
}

impl Default for Registration {
    fn default() -> Self {
        Self::After(Span::ZERO)
    }
}

/// One life of a process: it ends by itself after some time, with an exit code.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Life {
    /// The run time, at least a millisecond. Infinite: until the process is stopped.
    pub lasts: Span,
    /// The exit code.
    pub exit_code: i32,
}

impl Life {
    /// Creates a life that ends in a crash, with exit code 1, after a time.
    pub fn crashing_after(lasts: Span) -> Self {
        Self {
            lasts,
            exit_code: 1,
        }
    }
}

/// The behaviour of the processes of one code package.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ProcessBehaviour {
    /// The run time of the setup entry point, if the code package has one. Default: no time.
    pub setup_time: Span,
    /// The exit codes of its runs, in order; 0 after the end of the list. Default: empty.
    pub setup_exit_codes: Vec<i32>,
    /// The number of starts of the main process that fail outright. Default: none.
    pub start_failures: Failures,
    /// The time at which the process registers its types. Default: at once.
    pub registration: Registration,
    /// The lives of the process, in order. After the last one it runs until it is stopped. Default: empty.
    pub lives: Vec<Life>,
    /// True if the lives repeat after the last one. Default: false.
    pub repeat: bool,
    /// The additional waits before restarts, in order. Zero after the end of the list. Default: empty.
    pub restart_jitter: Vec<Span>,
}

/// The behaviour of one package instance. By default everything succeeds at once and nothing crashes.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Behaviour {
    /// Downloads of the package.
    pub download: Attempts,
    /// Activations of the package.
    pub activation: Attempts,
    /// Deactivations. The time is the one that the processes need after Ctrl+C.
    pub deactivation: Attempts,
    /// Processes by the name of their code package. An absent one never fails.
    pub processes: BTreeMap<Arc<str>, ProcessBehaviour>,
}

impl Behaviour {
    /// Sets the behaviour of downloads.
    #[must_use]
    pub fn with_download(mut self, attempts: Attempts) -> Self {
        self.download = attempts;
        self
    }

    /// Sets the behaviour of activations.
    #[must_use]
    pub fn with_activation(mut self, attempts: Attempts) -> Self {
        self.activation = attempts;
        self
    }

    /// Sets the behaviour of deactivations.
    #[must_use]
    pub fn with_deactivation(mut self, attempts: Attempts) -> Self {
        self.deactivation = attempts;
        self
    }

    /// Sets the behaviour of a code package's processes.
    #[must_use]
    pub fn with_process(mut self, code_package: &str, behaviour: ProcessBehaviour) -> Self {
        self.processes.insert(code_package.into(), behaviour);
        self
    }
}
