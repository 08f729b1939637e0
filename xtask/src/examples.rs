//! Every example, run for real with `--once`.

use std::time::{Duration, Instant};

use cargo_metadata::TargetKind;

use crate::process::Invocation;
use crate::steps::Outcome;
use crate::test::{PEER_TEST_SKIPPED, with_peers};
use crate::workspace::Workspace;

/// The packages that hold examples: small ones, and tours of registries.
const PACKAGES: [&str; 2] = ["examples", "tours"];

/// How long building them may take: a guard, they are built by the tests already.
const BUILD_LIMIT: Duration = Duration::from_secs(30 * 60);

/// How long an example may take with `--once`. They need a second or two.
const RUN_LIMIT: Duration = Duration::from_secs(60);

/// Builds the examples with the features that the tests have (so that nothing is compiled twice) and runs each.
pub(crate) fn run(workspace: &Workspace, require_peers: bool) -> crate::Result<Outcome> {
    let mut names = Vec::new();
    for package in PACKAGES {
        let found = workspace
            .targets(package, &TargetKind::Example)
            .ok_or_else(|| format!("this workspace has no package `{package}`"))?;
        names.extend(found.into_iter().map(|name| (package, name)));
    }
    let build = Invocation::cargo("build --workspace --all-features --examples");
    let ended = build.show(BUILD_LIMIT)?;
    if !ended.is_success() {
        return Ok(Outcome::Failed {
            why: ended.to_string(),
            repeat: vec![build.to_string()],
        });
    }
    let built = workspace.target_directory().join("debug/examples");
    let failed: Vec<_> = names
        .iter()
        .copied()
        .filter(|(_, name)| {
            let example = built.join(format!("{name}{}", std::env::consts::EXE_SUFFIX));
            let run = Invocation::new(example).arg("--once");
            !passes(&with_peers(run, workspace, require_peers), name)
        })
        .collect();
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

fn passes(run: &Invocation, name: &str) -> bool {
    let start = Instant::now();
    let run = run.capture(RUN_LIMIT);
    let took = start.elapsed().as_secs_f64();
    let (end, output) = match run {
        Ok((ended, output)) if ended.is_success() => {
            println!("example {name}: ended well in {took:.1} s");
            let left_out = output
                .lines()
                .filter(|line| line.contains(PEER_TEST_SKIPPED));
            for line in left_out {
                println!("    {line}");
            }
            return true;
        }
        Ok((ended, output)) => (ended.to_string(), output),
        Err(error) => (error.to_string(), String::new()),
    };
    println!("example {name}: {end} after {took:.1} s; its output:");
    for line in output.lines() {
        println!("    {line}");
    }
    false
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
    fn a_failed_example_is_repeated_as_a_user_would_run_it() {
        assert_eq!(
            by_hand("examples", "embed_axum"),
            "cargo run --package examples --all-features --example embed_axum -- --once"
        );
    }
}
