//! A sequence of named steps with times, which continues after a failure and ends with a summary.

use std::fmt::Write as _;
use std::process::ExitCode;
use std::sync::mpsc::{self, Receiver};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use crate::output;
use crate::say;

/// The result of a step.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Outcome {
    /// Success, with a note for the reader.
    Passed { note: Option<String> },
    /// Failure.
    Failed {
        /// The reason.
        why: String,
        /// Commands that repeat the failed parts.
        repeat: Vec<String>,
    },
    /// Left out.
    Skipped { why: String },
}

impl Outcome {
    pub(crate) const PASSED: Self = Self::Passed { note: None };

    fn word(&self) -> &'static str {
        match self {
            Self::Passed { .. } => "passed",
            Self::Failed { .. } => "FAILED",
            Self::Skipped { .. } => "skipped",
        }
    }

    fn remark(&self) -> &str {
        match self {
            Self::Passed { note } => note.as_deref().unwrap_or_default(),
            Self::Failed { why, .. } | Self::Skipped { why } => why,
        }
    }
}

/// The finished steps, and those that run in parallel.
#[derive(Debug)]
pub(crate) struct Steps {
    begun: Instant,
    /// Names of the only steps to run; empty for all.
    only: Vec<String>,
    /// Names of all steps, chosen or not.
    known: Vec<&'static str>,
    done: Vec<Done>,
    beside: Vec<Beside>,
}

#[derive(Debug)]
struct Done {
    name: &'static str,
    outcome: Outcome,
    took: Duration,
}

/// A step that runs in a thread.
#[derive(Debug)]
struct Beside {
    name: &'static str,
    thread: JoinHandle<(Outcome, Duration)>,
    /// The output of the step; ends with the thread.
    lines: Receiver<String>,
}

impl Steps {
    /// No step yet. `only`: names of the steps to run, empty for all; others are skipped.
    pub(crate) fn new(only: &[String]) -> Self {
        Self {
            begun: Instant::now(),
            only: only.to_vec(),
            known: Vec::new(),
            done: Vec::new(),
            beside: Vec::new(),
        }
    }

    /// Runs a step and prints its result. An error of the step is a failure.
    pub(crate) fn run(
        &mut self,
        name: &'static str,
        step: impl FnOnce() -> crate::Result<Outcome>,
    ) {
        if self.is_chosen(name) {
            say!("\n==> {name}");
            let (outcome, took) = timed(step);
            self.finish(name, outcome, took);
        }
    }

    /// Starts a step in parallel to later ones, until [`Self::wait_for`] is called for it. Its
    /// output is shown then, so that it does not mix with that of others; its end is reported at
    /// once.
    pub(crate) fn begin(
        &mut self,
        name: &'static str,
        step: impl FnOnce() -> crate::Result<Outcome> + Send + 'static,
    ) {
        if self.is_chosen(name) {
            say!("\n==> {name}, beside the steps that follow");
            let (sender, lines) = mpsc::channel();
            let thread = thread::spawn(move || {
                let (outcome, took) = output::beside(sender, || timed(step));
                let result = outcome.word();
                say!("<== {name}: {result} after {}, see below", seconds(took));
                (outcome, took)
            });
            self.beside.push(Beside {
                name,
                thread,
                lines,
            });
        }
    }

    /// Waits for a step that was started before, if it was chosen, and shows its output.
    pub(crate) fn wait_for(&mut self, name: &str) {
        let Some(place) = self.beside.iter().position(|step| step.name == name) else {
            return;
        };
        let Beside {
            name,
            thread,
            lines,
        } = self.beside.swap_remove(place);
        let state = match thread.is_finished() {
            true => "what it printed",
            false => "waited for",
        };
        say!("\n==> {name}, {state}");
        for line in lines {
            say!("{line}");
        }
        let (outcome, took) = thread.join().unwrap_or_else(|_| {
            let why = "it panicked, see above".to_owned();
            let repeat = Vec::new();
            (Outcome::Failed { why, repeat }, Duration::ZERO)
        });
        self.finish(name, outcome, took);
    }

    /// Returns true if a step has run and passed.
    pub(crate) fn has_passed(&self, name: &str) -> bool {
        let passed = |done: &Done| matches!(done.outcome, Outcome::Passed { .. });
        self.done
            .iter()
            .any(|done| done.name == name && passed(done))
    }

    fn is_chosen(&mut self, name: &'static str) -> bool {
        self.known.push(name);
        self.only.is_empty() || self.only.iter().any(|chosen| chosen == name)
    }

    /// Prints the summary.
    ///
    /// # Errors
    ///
    /// Fails if a requested step does not exist.
    pub(crate) fn end(mut self) -> crate::Result<ExitCode> {
        while let Some(step) = self.beside.first() {
            self.wait_for(step.name);
        }
        let unknown = |name: &&String| !self.known.contains(&name.as_str());
        if let Some(name) = self.only.iter().find(unknown) {
            let known = self.known.join(", ");
            return Err(format!("no step `{name}`; there are: {known}").into());
        }
        say!("{}", self.summary());
        Ok(self.exit_code())
    }

    fn finish(&mut self, name: &'static str, outcome: Outcome, took: Duration) {
        say!("<== {}", row(name, &outcome, took));
        if let Outcome::Failed { repeat, .. } = &outcome {
            for line in repeat {
                say!("    to repeat: {line}");
            }
        }
        self.done.push(Done {
            name,
            outcome,
            took,
        });
    }

    /// The table, with the numbers of passed and failed steps in its last line.
    fn summary(&self) -> String {
        let mut text = String::from("\nstep            result      time\n");
        for done in &self.done {
            let _ = writeln!(text, "{}", row(done.name, &done.outcome, done.took));
        }
        for done in &self.done {
            if let Outcome::Failed { repeat, .. } = &done.outcome {
                for line in repeat {
                    let _ = writeln!(text, "to repeat {}: {line}", done.name);
                }
            }
        }
        let _ = writeln!(text, "in all {}", seconds(self.begun.elapsed()));
        let count = |word| {
            let same = |done: &&Done| done.outcome.word() == word;
            self.done.iter().filter(same).count()
        };
        let _ = write!(
            text,
            "{} passed, {} failed",
            count("passed"),
            count("FAILED")
        );
        match count("skipped") {
            0 => {}
            skipped => {
                let _ = write!(text, ", {skipped} skipped");
            }
        }
        text
    }

    /// Returns failure if any step failed.
    fn exit_code(&self) -> ExitCode {
        let failed = |done: &Done| matches!(done.outcome, Outcome::Failed { .. });
        if self.done.iter().any(failed) {
            ExitCode::FAILURE
        } else {
            ExitCode::SUCCESS
        }
    }
}

/// Runs a step. An error of the step is a failure.
fn timed(step: impl FnOnce() -> crate::Result<Outcome>) -> (Outcome, Duration) {
    let start = Instant::now();
    let outcome = step().unwrap_or_else(|error| Outcome::Failed {
        why: error.to_string(),
        repeat: Vec::new(),
    });
    (outcome, start.elapsed())
}

fn row(name: &str, outcome: &Outcome, took: Duration) -> String {
    let row = format!(
        "{name:<15} {:<8} {:>7}   {}",
        outcome.word(),
        seconds(took),
        outcome.remark()
    );
    row.trim_end().to_owned()
}

fn seconds(time: Duration) -> String {
    format!("{:.1} s", time.as_secs_f64())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn steps(outcomes: [(&'static str, Outcome); 3]) -> Steps {
        let mut steps = Steps::new(&[]);
        for (name, outcome) in outcomes {
            steps.finish(name, outcome, Duration::from_millis(1500));
        }
        steps
    }

    fn failed() -> Outcome {
        Outcome::Failed {
            why: "exit status: 1".to_owned(),
            repeat: vec!["cargo test --workspace".to_owned()],
        }
    }

    #[test]
    fn the_last_line_counts_and_a_failure_says_how_to_repeat_it() {
        let skipped = Outcome::Skipped {
            why: "no package `examples` yet".to_owned(),
        };
        let steps = steps([
            ("format", Outcome::PASSED),
            ("test", failed()),
            ("examples", skipped),
        ]);
        let summary = steps.summary();
        let lines: Vec<_> = summary.lines().collect();
        assert_eq!(lines.last(), Some(&"1 passed, 1 failed, 1 skipped"));
        assert!(lines.contains(&"test            FAILED     1.5 s   exit status: 1"));
        assert!(lines.contains(&"to repeat test: cargo test --workspace"));
        assert_eq!(steps.exit_code(), ExitCode::FAILURE);
    }

    #[test]
    fn nothing_skipped_is_not_mentioned() {
        let passed = |name| (name, Outcome::PASSED);
        let steps = steps([passed("format"), passed("lint"), passed("test")]);
        assert!(steps.summary().ends_with("\n3 passed, 0 failed"));
        assert_eq!(steps.exit_code(), ExitCode::SUCCESS);
    }

    #[test]
    fn an_error_of_a_step_is_a_failure_and_the_run_goes_on() {
        let mut steps = Steps::new(&[]);
        steps.run("broken", || Err("no cargo".into()));
        steps.run("next", || Ok(Outcome::PASSED));
        assert!(steps.summary().ends_with("1 passed, 1 failed"));
    }

    #[test]
    fn a_step_beside_others_counts_when_it_is_waited_for() {
        let mut steps = Steps::new(&[]);
        let (go, told) = mpsc::channel();
        steps.begin("peers", move || {
            told.recv()?;
            Ok(Outcome::PASSED)
        });
        steps.run("lint", || Ok(Outcome::PASSED));
        assert!(steps.summary().ends_with("\n1 passed, 0 failed"));
        go.send(()).expect("the step waits for it");
        steps.wait_for("peers");
        assert!(steps.summary().ends_with("\n2 passed, 0 failed"));
    }

    #[test]
    fn a_step_has_passed_once_it_was_waited_for_and_only_then() {
        let mut steps = Steps::new(&[]);
        steps.begin("builds", || Ok(Outcome::PASSED));
        steps.begin("peers", || Err("none".into()));
        assert!(!steps.has_passed("builds"));
        steps.wait_for("builds");
        steps.wait_for("peers");
        assert!(steps.has_passed("builds"));
        assert!(!steps.has_passed("peers"), "it has failed");
        assert!(!steps.has_passed("lint"), "it was not run");
    }

    #[test]
    fn a_step_that_panics_beside_others_is_a_failure() {
        let mut steps = Steps::new(&[]);
        steps.begin("peers", || panic!("out of luck"));
        steps.wait_for("peers");
        assert!(steps.summary().ends_with("\n0 passed, 1 failed"));
    }

    #[test]
    fn only_the_chosen_steps_run_and_an_unknown_one_is_an_error() {
        let mut steps = Steps::new(&["lint".to_owned()]);
        steps.run("format", || panic!("it was not chosen"));
        steps.run("lint", || Ok(Outcome::PASSED));
        steps.wait_for("peers");
        assert!(steps.summary().ends_with("\n1 passed, 0 failed"));

        let mut steps = Steps::new(&["lunt".to_owned()]);
        steps.run("format", || panic!("it was not chosen"));
        steps.run("lint", || panic!("it was not chosen"));
        let error = steps.end().expect_err("there is no such step");
        assert_eq!(error.to_string(), "no step `lunt`; there are: format, lint");
    }
}
