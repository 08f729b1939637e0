//! `cargo xtask test`: every check there is, the cheap ones first.

use std::path::Path;
use std::process::ExitCode;
use std::time::Duration;

use crate::disk::{Bytes, Room};
use crate::process::{Invocation, show_line};
use crate::steps::{Outcome, Steps};
use crate::tidy::{self, Leftover};
use crate::workspace::Workspace;
use crate::{bench, examples, peers};

/// A guard against a step that hangs, not a budget: each takes minutes at most.
const LIMIT: Duration = Duration::from_secs(35 * 60);

/// What `testkit::peers` writes for each test that it leaves out.
pub(crate) const PEER_TEST_SKIPPED: &str = "SKIPPED (peer missing)";

/// What proptest begins its random numbers with, if this is set to a number of 64 bits.
const SEED: &str = "PROPTEST_RNG_SEED";

/// Where the fuzz targets are.
const FUZZ: [&str; 2] = ["--manifest-path", "fuzz/Cargo.toml"];

/// The number in CI. It means nothing, and stays, so that a run that is red can be repeated as it was.
const SEED_IN_CI: &str = "20180705";

/// What the target directory grows to, peers included, and a little more: as measured with the settings of `.ci/run`, and
/// with those of `Cargo.toml`.
const MOST_TIDY: Bytes = Bytes::megabytes(3_500);
const MOST: Bytes = Bytes::megabytes(8_000);

#[derive(clap::Args)]
pub(crate) struct Options {
    /// Fail when a real peer cannot be had, instead of leaving its tests out
    #[arg(long)]
    require_peers: bool,
    /// Only format, lints and tests, with the peers that are already here
    #[arg(long)]
    quick: bool,
    /// Delete what was built for a step when no later step needs it, for a machine with little disk
    #[arg(long)]
    tidy: bool,
}

pub(crate) fn run(options: &Options) -> crate::Result<ExitCode> {
    let workspace = Workspace::load()?;
    // Commands are printed for repetition in the root, so they run there.
    std::env::set_current_dir(workspace.root())?;
    let target = workspace.target_directory();
    let room = Room::of(target)?;
    println!("{room}");
    let most = if options.tidy { MOST_TIDY } else { MOST };
    match room.suffices(most, target) {
        Ok(()) => {}
        // Where nobody can make room, a run that may just fit is better than none.
        Err(short) if options.tidy => println!("WARNING: {short}"),
        Err(short) => return Err(short.into()),
    }
    let mut steps = Steps::default();

    steps.run("format", || show(&format()));
    steps.run("lint", || show(&lints(&workspace)));
    if !options.quick {
        steps.run("doc", || show(&[documentation()]));
        steps.run("lean features", || show(&lean(&workspace)));
    }
    options.done_with(Leftover::Checks, target)?;
    if !options.quick {
        steps.run("peers", || peers::step(&workspace, options.require_peers));
    }
    steps.run("test", || test(&workspace, options.require_peers));
    if !options.quick {
        steps.run("examples", || {
            examples::run(&workspace, options.require_peers)
        });
    }
    options.done_with(Leftover::Programs, target)?;
    steps.run("fuzz", || show(&[fuzz(&workspace, "test")]));
    if !options.quick {
        options.done_with(Leftover::Debug, target)?;
        steps.run("gate", || {
            bench::gate::step(&workspace, options.require_peers)
        });
    }

    println!("{}", steps.summary());
    Ok(steps.exit_code())
}

impl Options {
    /// What the steps so far have left and no later one reads.
    fn done_with(&self, leftover: Leftover, target: &Path) -> crate::Result<()> {
        if self.tidy {
            println!("\n{}", Room::of(target)?);
            tidy::delete(leftover, target)?;
            println!("{}, now that {leftover} are deleted", Room::of(target)?);
        }
        Ok(())
    }
}

fn format() -> [Invocation; 2] {
    [
        Invocation::cargo("fmt --all --check"),
        Invocation::cargo("fmt --check").args(FUZZ),
    ]
}

/// Both workspaces.
fn lints(workspace: &Workspace) -> [Invocation; 2] {
    let fuzz = fuzz(workspace, "clippy --all-targets").args(["--", "-D", "warnings"]);
    [lint("--workspace --all-targets --all-features"), fuzz]
}

fn lint(what: &str) -> Invocation {
    Invocation::cargo("clippy --keep-going")
        .args(what.split_whitespace())
        .args(["--", "-D", "warnings"])
}

fn documentation() -> Invocation {
    Invocation::cargo("doc --workspace --no-deps --all-features --keep-going")
        .env("RUSTDOCFLAGS", "-D warnings")
}

/// Each library alone, as a user gets it with no features and with the default ones. In the workspace's own build,
/// features that another member asks for would hide that one is missing. Then the server without HTTP/2 and TLS, whose tests
/// would pass there for what it can do with them.
fn lean(workspace: &Workspace) -> Vec<Invocation> {
    let libraries = workspace.published_libraries();
    let with = |flags: &str| {
        let lint_one = |library: &&str| lint(&format!("--package {library} {flags}"));
        libraries.iter().map(lint_one).collect::<Vec<_>>()
    };
    let server =
        "test --package proxy-runtime --no-default-features --features server --test server";
    let server = vec![Invocation::cargo(server)];
    [with("--no-default-features"), with(""), server].concat()
}

/// A command on the fuzz targets, which are no member of the workspace, so that nothing else builds them. Their tests are
/// their seeds and mutations of those, which needs no fuzzer.
fn fuzz(workspace: &Workspace, command: &str) -> Invocation {
    let target = workspace.target_directory();
    // A line that is printed for repetition is better short.
    let target = target.strip_prefix(workspace.root()).unwrap_or(target);
    Invocation::cargo(command)
        .args(FUZZ)
        .arg("--target-dir")
        .arg(target)
}

/// Unit, integration, documentation and peer tests, in one call of cargo.
fn test(workspace: &Workspace, require_peers: bool) -> crate::Result<Outcome> {
    let command = Invocation::cargo("test --workspace --all-features --no-fail-fast");
    let mut command = with_peers(command, workspace, require_peers);
    let variable = |name| std::env::var(name).ok();
    if let Some(seed) = seed(variable("CI").as_deref(), variable(SEED)) {
        command = command.env(SEED, seed);
    }
    let mut left_out = 0;
    let ended = command.follow(LIMIT, |line| {
        left_out += line.matches(PEER_TEST_SKIPPED).count();
        show_line(line);
    })?;
    Ok(if ended.is_success() {
        let note = match left_out {
            0 => "no peer test left out".to_owned(),
            _ => format!("{left_out} PEER TESTS LEFT OUT, see the lines {PEER_TEST_SKIPPED}"),
        };
        Outcome::Passed { note: Some(note) }
    } else {
        Outcome::Failed {
            why: ended.to_string(),
            repeat: vec![command.to_string()],
        }
    })
}

/// What property tests begin their random numbers with, given the variables `CI` and [`SEED`]; `None`: with others each
/// time. Written down for every step that knows it, so that the line that repeats a failure has it.
fn seed(ci: Option<&str>, chosen: Option<String>) -> Option<String> {
    let in_ci = ci.is_some_and(|ci| !ci.is_empty() && !ci.eq_ignore_ascii_case("false"));
    chosen.or_else(|| in_ci.then(|| SEED_IN_CI.to_owned()))
}

/// Lets a program find the peers that were fetched.
pub(crate) fn with_peers(command: Invocation, workspace: &Workspace, required: bool) -> Invocation {
    let command = command.env("PEERS_DIR", workspace.peers_directory());
    match required {
        true => command.env("REQUIRE_PEERS", "1"),
        false => command,
    }
}

/// Runs all of them, also after a failure, and fails if any failed.
fn show(commands: &[Invocation]) -> crate::Result<Outcome> {
    let mut failed = Vec::new();
    let mut why = String::new();
    for command in commands {
        println!("{command}");
        let ended = command.show(LIMIT)?;
        if !ended.is_success() {
            why = ended.to_string();
            failed.push(command.to_string());
        }
    }
    Ok(if failed.is_empty() {
        Outcome::PASSED
    } else {
        Outcome::Failed {
            why,
            repeat: failed,
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn property_tests_are_the_same_in_every_run_of_ci_and_others_in_each_elsewhere() {
        for (ci, chosen, expected) in [
            (None, None, None),
            (Some(""), None, None),
            (Some("false"), None, None),
            (Some("true"), None, Some(SEED_IN_CI)),
            (Some("1"), None, Some(SEED_IN_CI)),
            // Whoever repeats a run has chosen already.
            (Some("true"), Some("7"), Some("7")),
            (None, Some("7"), Some("7")),
        ] {
            let seed = seed(ci, chosen.map(str::to_owned));
            assert_eq!(seed.as_deref(), expected, "{ci:?} {chosen:?}");
        }
        assert!(SEED_IN_CI.parse::<u64>().is_ok(), "proptest reads no other");
    }
}
