//! A run of named steps: timed, gone through to the end whatever fails, and summed up.

use std::fmt::Write as _;
use std::process::ExitCode;
use std::time::{Duration, Instant};

/// How a step went.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Outcome {
    /// Well; with what else a reader should know.
    Passed { note: Option<String> },
    /// Not well.
    Failed {
        /// What went wrong.
        why: String,
        /// Lines for a shell that do again what failed.
        repeat: Vec<String>,
    },
    /// It was left out.
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

/// What has been run so far.
#[derive(Debug, Default)]
pub(crate) struct Steps {
    done: Vec<Done>,
}

#[derive(Debug)]
struct Done {
    name: &'static str,
    outcome: Outcome,
    took: Duration,
}

impl Steps {
    /// Runs a step and prints how it went. An error of the step itself is a failure like any other.
    pub(crate) fn run(
        &mut self,
        name: &'static str,
        step: impl FnOnce() -> crate::Result<Outcome>,
    ) {
        println!("\n==> {name}");
        let start = Instant::now();
        let outcome = step().unwrap_or_else(|error| Outcome::Failed {
            why: error.to_string(),
            repeat: Vec::new(),
        });
        self.finish(name, outcome, start.elapsed());
    }

    fn finish(&mut self, name: &'static str, outcome: Outcome, took: Duration) {
        println!("<== {}", row(name, &outcome, took));
        if let Outcome::Failed { repeat, .. } = &outcome {
            for line in repeat {
                println!("    to repeat: {line}");
            }
        }
        self.done.push(Done {
            name,
            outcome,
            took,
        });
    }

    /// The table, and as its last line how many steps passed and failed.
    pub(crate) fn summary(&self) -> String {
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
        let total: Duration = self.done.iter().map(|done| done.took).sum();
        let _ = writeln!(text, "in all {}", seconds(total));
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

    /// Failure if any step failed.
    pub(crate) fn exit_code(&self) -> ExitCode {
        let failed = |done: &Done| matches!(done.outcome, Outcome::Failed { .. });
        if self.done.iter().any(failed) {
            ExitCode::FAILURE
        } else {
            ExitCode::SUCCESS
        }
    }
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
        let mut steps = Steps::default();
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
        let mut steps = Steps::default();
        steps.run("broken", || Err("no cargo".into()));
        steps.run("next", || Ok(Outcome::PASSED));
        assert!(steps.summary().ends_with("1 passed, 1 failed"));
    }
}
