//! `cargo xtask bench gate`: the cost of several kinds of requests in instructions, heap blocks and
//! system calls, compared with checked-in baselines.
//!
//! The package `bench-peers` counts; this module does the part that needs cargo or a package
//! client.

use std::process::ExitCode;
use std::time::Duration;

use crate::peers;
use crate::process::{Ended, Invocation};
use crate::say;
use crate::steps::Outcome;
use crate::workspace::Workspace;

use super::compare::PACKAGE;

/// The directory of the baselines.
const BASELINES: &str = "benches/gates";

/// The programs that count instructions and heap blocks, and system calls.
pub(crate) const TOOLS: [&str; 2] = ["valgrind", "strace"];

/// The exit code of `bench-peers gate` when a count has grown.
const SHUT: i32 = 3;

/// Packages that no measured request passes through. They are built without optimisation, which
/// takes long for them.
const NOT_MEASURED: [&str; 16] = [
    "aho-corasick",
    "aws-lc-rs",
    "aws-lc-sys",
    "clap_builder",
    "discovery-core",
    "rcgen",
    "regex-automata",
    "regex-syntax",
    "rustls",
    "rustls-webpki",
    "serde_json",
    "time",
    "toml",
    "toml_parser",
    "winnow",
    "yasna",
];

/// A guard against a hang, not a budget.
const BUILD_LIMIT: Duration = Duration::from_secs(35 * 60);
const RUN_LIMIT: Duration = Duration::from_secs(10 * 60);

#[derive(Default, clap::Args)]
pub(crate) struct Options {
    /// Write what is measured into the baseline
    #[arg(long)]
    renew: bool,
    /// Only this kind of request, called as its baseline is; may be given more than once
    #[arg(long, value_name = "ROW")]
    only: Vec<String>,
}

pub(super) fn run(options: &Options) -> crate::Result<ExitCode> {
    let workspace = Workspace::load()?;
    std::env::set_current_dir(workspace.root())?;
    match measure(&workspace, options, false)? {
        Outcome::Passed { .. } => Ok(ExitCode::SUCCESS),
        Outcome::Failed { why, .. } | Outcome::Skipped { why } => {
            eprintln!("xtask: {why}");
            Ok(ExitCode::FAILURE)
        }
    }
}

/// Runs the gate as a step of `cargo xtask ci`. `built`: the programs were built with [`build`]
/// already.
pub(crate) fn step(
    workspace: &Workspace,
    require_peers: bool,
    built: bool,
) -> crate::Result<Outcome> {
    let outcome = measure(workspace, &Options::default(), built)?;
    Ok(match outcome {
        Outcome::Skipped { why } if require_peers => failed(why),
        outcome => outcome,
    })
}

/// Builds the measured programs in the background, while checks run one after another.
pub(crate) fn build_in_background() -> crate::Result<Outcome> {
    run_build(&build_command().in_background())
}

fn build() -> crate::Result<Outcome> {
    run_build(&build_command())
}

/// The build of the measured programs with the release profile of users, except what is not measured.
fn build_command() -> Invocation {
    let plain = NOT_MEASURED.iter().flat_map(|package| {
        let level = format!("profile.release.package.{package}.opt-level=0");
        ["--config".to_owned(), level]
    });
    let build = Invocation::cargo("build --release --package").arg(PACKAGE);
    plain.fold(build, Invocation::arg)
}

fn run_build(build: &Invocation) -> crate::Result<Outcome> {
    say!("{build}");
    let built = build.show(BUILD_LIMIT)?;
    Ok(match built.is_success() {
        true => Outcome::PASSED,
        false => Outcome::Failed {
            why: format!("the server cannot be built: {built}"),
            repeat: vec![build.to_string()],
        },
    })
}

fn measure(workspace: &Workspace, options: &Options, built: bool) -> crate::Result<Outcome> {
    if !cfg!(target_os = "linux") {
        return Ok(Outcome::Skipped {
            why: "THE GATE IS LEFT OUT: it works on Linux only".to_owned(),
        });
    }
    let missing = peers::fetch(workspace, &TOOLS.map(str::to_owned))?;
    if !missing.is_empty() {
        return Ok(Outcome::Skipped {
            why: format!(
                "THE GATE IS LEFT OUT: there is no {}",
                missing.join(" and no ")
            ),
        });
    }
    if !built && let failed @ Outcome::Failed { .. } = build()? {
        return Ok(failed);
    }
    let target = workspace.target_directory();
    let release = target.join("release");
    let mut count = Invocation::new(release.join(PACKAGE))
        .arg("gate")
        .arg("--peers-directory")
        .arg(workspace.peers_directory())
        .arg("--output")
        .arg(target.join("bench-gate"))
        .args(["--baselines", BASELINES]);
    if options.renew {
        count = count.arg("--renew");
    }
    for row in &options.only {
        count = count.args(["--only", row]);
    }
    let ended = count.show(RUN_LIMIT)?;
    Ok(judge(ended))
}

fn judge(ended: Ended) -> Outcome {
    match ended {
        ended if ended.is_success() => Outcome::PASSED,
        Ended::Exited(status) if status.code() == Some(SHUT) => {
            failed("a request costs more than before, see above".to_owned())
        }
        ended => failed(format!("nothing was measured: {ended}")),
    }
}

fn failed(why: String) -> Outcome {
    Outcome::Failed {
        why,
        repeat: vec![Invocation::cargo("xtask bench gate").to_string()],
    }
}

#[cfg(all(test, unix))]
mod tests {
    use std::os::unix::process::ExitStatusExt;
    use std::process::ExitStatus;

    use super::*;

    #[test]
    fn a_gate_that_is_shut_is_told_from_one_that_could_not_measure() {
        let ended = |code: i32| judge(Ended::Exited(ExitStatus::from_raw(code << 8)));
        assert_eq!(ended(0), Outcome::PASSED);
        let why = |outcome| match outcome {
            Outcome::Failed { why, repeat } => {
                assert_eq!(repeat, ["cargo xtask bench gate"]);
                why
            }
            other => panic!("{other:?}"),
        };
        assert!(why(ended(SHUT)).starts_with("a request costs more than before"));
        assert!(why(ended(1)).starts_with("nothing was measured: exit status: 1"));
        assert!(why(judge(Ended::TimedOut)).starts_with("nothing was measured"));
    }
}
