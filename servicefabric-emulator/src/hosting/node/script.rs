//! The progress of the scripted behaviours.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::hosting::behaviour::{
    Attempts, Behaviour, Failures, Life, ProcessBehaviour, Registration,
};
use crate::hosting::timestamp::Span;

/// The outcome of an attempt.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Outcome {
    Success,
    Failure,
    InternalError,
}

/// The script of one package instance, and its progress.
#[derive(Debug, Clone, Default)]
pub(super) struct PackageScript {
    pub(super) download: Attempted,
    pub(super) activation: Attempted,
    pub(super) deactivation: Attempted,
    processes: BTreeMap<Arc<str>, Process>,
}

impl PackageScript {
    pub(super) fn new(behaviour: Behaviour) -> Self {
        Self {
            download: Attempted::new(behaviour.download),
            activation: Attempted::new(behaviour.activation),
            deactivation: Attempted::new(behaviour.deactivation),
            processes: behaviour
                .processes
                .into_iter()
                .map(|(name, behaviour)| (name, Process::new(behaviour)))
                .collect(),
        }
    }

    /// Returns the script of a code package. A default one changes nothing.
    pub(super) fn process(&mut self, code_package: &Arc<str>) -> &mut Process {
        self.processes.entry(Arc::clone(code_package)).or_default()
    }
}

/// The attempts at one operation.
#[derive(Debug, Clone, Default)]
pub(super) struct Attempted {
    attempts: Attempts,
    jitter_used: usize,
    internal_errors: u32,
    failures: u32,
}

impl Attempted {
    fn new(attempts: Attempts) -> Self {
        Self {
            attempts,
            ..Self::default()
        }
    }

    pub(super) fn time(&self) -> Span {
        self.attempts.time
    }

    pub(super) fn next_jitter(&mut self) -> Span {
        next(&self.attempts.jitter, &mut self.jitter_used).unwrap_or(Span::ZERO)
    }

    pub(super) fn next_outcome(&mut self) -> Outcome {
        if self.internal_errors < self.attempts.internal_errors {
            self.internal_errors += 1;
            Outcome::InternalError
        } else if fails(self.attempts.failures, &mut self.failures) {
            Outcome::Failure
        } else {
            Outcome::Success
        }
    }
}

/// The processes of one code package.
#[derive(Debug, Clone, Default)]
pub(super) struct Process {
    behaviour: ProcessBehaviour,
    setups: usize,
    start_failures: u32,
    lives: usize,
    jitter_used: usize,
}

impl Process {
    fn new(behaviour: ProcessBehaviour) -> Self {
        Self {
            behaviour,
            ..Self::default()
        }
    }

    pub(super) fn setup_time(&self) -> Span {
        self.behaviour.setup_time
    }

    pub(super) fn next_setup_exit_code(&mut self) -> i32 {
        next(&self.behaviour.setup_exit_codes, &mut self.setups).unwrap_or(0)
    }

    pub(super) fn next_start_fails(&mut self) -> bool {
        fails(self.behaviour.start_failures, &mut self.start_failures)
    }

    /// Returns the time from a start to the registration of types. Infinite for never.
    pub(super) fn registration_delay(&self) -> Span {
        match self.behaviour.registration {
            Registration::After(delay) => delay,
            Registration::Never => Span::INFINITE,
        }
    }

    /// Returns the life of the process that starts now. `None` if it runs until it is stopped.
    pub(super) fn next_life(&mut self) -> Option<Life> {
        if self.behaviour.repeat && self.lives == self.behaviour.lives.len() {
            self.lives = 0;
        }
        let life = next(&self.behaviour.lives, &mut self.lives)?;
        // A life of no time followed by an immediate restart would stop the clock.
        Some(Life {
            lasts: life.lasts.max(Span::from_millis(1)),
            ..life
        })
    }

    pub(super) fn next_restart_jitter(&mut self) -> Span {
        next(&self.behaviour.restart_jitter, &mut self.jitter_used).unwrap_or(Span::ZERO)
    }
}

fn next<T: Copy>(list: &[T], used: &mut usize) -> Option<T> {
    let item = *list.get(*used)?;
    *used += 1;
    Some(item)
}

fn fails(failures: Failures, used: &mut u32) -> bool {
    match failures {
        Failures::Always => true,
        Failures::First(count) => {
            let failing = *used < count;
            *used += u32::from(failing);
            failing
        }
    }
}
