//! Every example, run with `--once`.

use std::iter;
use std::panic::resume_unwind;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use cargo_metadata::TargetKind;

use crate::process::Invocation;
use crate::say;
use crate::steps::Outcome;
use crate::test::{PEER_TEST_SKIPPED, Tests, with_peers};
use crate::workspace::Workspace;

/// The packages with examples: small ones, and tours of registries.
const PACKAGES: [&str; 2] = ["examples", "tours"];

/// Time limit of the build: a guard, since the tests build them already.
const BUILD_LIMIT: Duration = Duration::from_secs(30 * 60);

/// Number of examples that run concurrently.
const AT_ONCE: usize = 3;

/// Time limit of an example with `--once`. Most need a second or two.
const RUN_LIMIT: Duration = Duration::from_secs(240);

/// Builds the examples with the features of the tests (so that nothing is compiled twice) and runs
/// each.
pub(crate) fn run(
    workspace: &Workspace,
    tests: Tests,
    require_peers: bool,
) -> crate::Result<Outcome> {
    let mut names = Vec::new();
    for package in PACKAGES {
        let found = workspace
            .targets(package, &TargetKind::Example)
            .ok_or_else(|| format!("this workspace has no package `{package}`"))?;
        names.extend(found.into_iter().map(|name| (package, name)));
    }
    let build = Invocation::cargo("build --examples").args(tests.packages());
    let build = workspace.compiling(build);
    let ended = build.show(BUILD_LIMIT)?;
    if !ended.is_success() {
        return Ok(Outcome::Failed {
            why: ended.to_string(),
            repeat: vec![build.to_string()],
        });
    }
    let built = workspace.target_directory().join("debug/examples");
    let failed = at_once(&names, |(_, name)| {
        let example = built.join(format!("{name}{}", std::env::consts::EXE_SUFFIX));
        let run = Invocation::new(example).arg("--once");
        !passes(&with_peers(run, workspace, require_peers), name)
    });
    Ok(if failed.is_empty() {
        Outcome::Passed {
            note: Some(format!("{} examples", names.len())),
        }
    } else {
        Outcome::Failed {
            why: format!("{} of {}: {}", failed.len(), names.len(), in_a_row(&failed)),
            repeat: failed
                .iter()
                .map(|(package, name)| by_hand(package, name))
                .collect(),
        }
    })
}

/// Returns the examples for which `failed` is true. Uses a few threads, since most examples wait
/// most of the time.
fn at_once<T: Copy + Send + Sync>(examples: &[T], failed: impl Fn(T) -> bool + Sync) -> Vec<T> {
    let next = AtomicUsize::new(0);
    let take = || {
        let mine = iter::from_fn(|| examples.get(next.fetch_add(1, Ordering::Relaxed)).copied());
        mine.filter(|example| failed(*example)).collect::<Vec<_>>()
    };
    thread::scope(|scope| {
        let threads = [(); AT_ONCE].map(|()| scope.spawn(take));
        let joined = threads.into_iter().map(|thread| thread.join());
        joined
            .flat_map(|failed| failed.unwrap_or_else(|panic| resume_unwind(panic)))
            .collect()
    })
}

fn passes(run: &Invocation, name: &str) -> bool {
    let start = Instant::now();
    let run = run.capture(RUN_LIMIT);
    let took = start.elapsed().as_secs_f64();
    let (passed, end, output) = match run {
        Ok((ended, output)) if ended.is_success() => (true, "ended well".to_owned(), output),
        Ok((ended, output)) => (false, ended.to_string(), output),
        Err(error) => (false, error.to_string(), String::new()),
    };
    let shown = output
        .lines()
        .filter(|line| !passed || line.contains(PEER_TEST_SKIPPED));
    // One write, since other examples run at the same time.
    let mut report = format!("example {name}: {end} after {took:.1} s");
    for line in shown {
        report.push_str("\n    ");
        report.push_str(line);
    }
    say!("{report}");
    passed
}

/// The names of examples, separated by commas.
fn in_a_row(examples: &[(&str, &str)]) -> String {
    let names: Vec<_> = examples.iter().map(|(_, name)| *name).collect();
    names.join(", ")
}

fn by_hand(package: &str, name: &str) -> String {
    Invocation::cargo("run --package")
        .args([package, "--all-features", "--example", name, "--", "--once"])
        .to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_example_is_asked_once_and_those_that_failed_are_named() {
        let asked = AtomicUsize::new(0);
        let mut failed = at_once(&[1, 2, 3, 4, 5, 6, 7], |example| {
            asked.fetch_add(1, Ordering::Relaxed);
            example % 3 == 0
        });
        failed.sort_unstable();
        assert_eq!(failed, [3, 6]);
        assert_eq!(asked.into_inner(), 7);
    }

    #[test]
    fn a_failed_example_is_repeated_as_a_user_would_run_it() {
        assert_eq!(
            by_hand("examples", "embed_axum"),
            "cargo run --package examples --all-features --example embed_axum -- --once"
        );
    }
}
