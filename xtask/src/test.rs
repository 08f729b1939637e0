//! `cargo xtask test`: the tests that matter to users of the project, with the real peers. Tests of
//! development tools are steps of `cargo xtask ci`.

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::thread::available_parallelism;

use crate::checks::{LIMIT, show};
use crate::disk::{Bytes, Room};
use crate::process::Invocation;
use crate::say;
use crate::steps::{Outcome, Steps};
use crate::workspace::Workspace;
use crate::{examples, output, peers};

/// The line that `testkit::peers` writes for each test that it skips.
pub(crate) const PEER_TEST_SKIPPED: &str = "SKIPPED (peer missing)";

/// The variable with the file to which `testkit::peers` adds these lines. Runners hide the output
/// of passing tests.
const SKIPS: &str = "PEER_SKIPS";

/// The variable with proptest's seed, a 64-bit number.
const SEED: &str = "PROPTEST_RNG_SEED";

/// The seed in CI: an arbitrary constant, so that a failed run can be repeated.
const SEED_IN_CI: &str = "20180705";

/// Members for the development of the project only.
const TOOLS: [&str; 5] = [
    "bench-peers",
    "benches",
    "fuzz-targets",
    "xds-types-generator",
    "xtask",
];

/// The profile of nextest for a run of all tests. A test takes two places in it, and one that mostly waits takes one.
const PROFILE: &str = "--profile=ci";

/// The number of places per processor.
const PLACES_PER_PROCESSOR: usize = 4;

/// The same for tests that run beside those.
const PLACES_BESIDE: usize = 2;

/// Upper limit of the target directory with peers.
const MOST: Bytes = Bytes::megabytes(4_200);

/// The tests that a command runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Tests {
    All,
    /// All tests except those of [`TOOLS`].
    OfUsers,
}

#[derive(clap::Args)]
pub(crate) struct Options {
    /// Fail when a real peer cannot be had, instead of leaving its tests out
    #[arg(long)]
    require_peers: bool,
    /// Use only peers that are already here, and leave out the examples
    #[arg(long)]
    quick: bool,
}

pub(crate) fn run(options: &Options) -> crate::Result<ExitCode> {
    let workspace = match options.quick {
        true => Workspace::load()?,
        false => Workspace::load()?.compiled_once(),
    };
    // Printed commands are meant to be repeated in the root, so they run there.
    std::env::set_current_dir(workspace.root())?;
    let target = workspace.target_directory();
    let room = Room::of(target)?;
    say!("{room}");
    room.suffices(MOST, target)?;
    let required = options.require_peers;
    let mut steps = Steps::new(&[]);
    if !options.quick {
        let peers = peers::step(&workspace, &[], required);
        steps.begin("peers", peers);
    }
    steps.run("build", || {
        show(&[workspace.compiling(Tests::OfUsers.command().arg("--no-run"))])
    });
    steps.wait_for("peers");
    steps.run("test", || {
        run_tests(&workspace, Tests::OfUsers, required, || {})
    });
    steps.run("doc tests", || {
        run_doc_tests(&workspace, Tests::OfUsers, required)
    });
    if !options.quick {
        steps.run("examples", || {
            examples::run(&workspace, Tests::OfUsers, required)
        });
    }
    steps.end()
}

/// The command that compiles all unit and integration tests, programs and examples.
pub(crate) fn build_command() -> Invocation {
    Tests::All.command().arg("--no-run")
}

/// Runs unit, integration and peer tests. Calls `begun` once, when all is compiled and the first test runs.
pub(crate) fn run_tests(
    workspace: &Workspace,
    tests: Tests,
    require_peers: bool,
    begun: impl FnOnce(),
) -> crate::Result<Outcome> {
    let command = in_places(tests.command().arg("--no-fail-fast"), PLACES_PER_PROCESSOR);
    let mut begun = Some(begun);
    counting_skips(command, workspace, require_peers, |line| {
        if runs_tests(line)
            && let Some(begun) = begun.take()
        {
            begun();
        }
    })
}

/// Returns true for a line that both runners print after compiling the tests, before running them.
fn runs_tests(line: &str) -> bool {
    let line = line.trim_start();
    line.starts_with("Starting ") || line.starts_with("Running ")
}

/// Runs the doc tests, which only cargo's own runner supports.
pub(crate) fn run_doc_tests(
    workspace: &Workspace,
    tests: Tests,
    require_peers: bool,
) -> crate::Result<Outcome> {
    let command = Invocation::cargo("test --doc --no-fail-fast").args(tests.packages());
    counting_skips(command, workspace, require_peers, |_| {})
}

/// Compiles the programs of the steps `benchmarks` and `lean server`, in the background.
pub(crate) fn build_small_programs() -> crate::Result<Outcome> {
    let compile = |command: Invocation| command.arg("--no-run").in_background();
    show(&[compile(benchmarks()), compile(lean_server())])
}

/// Runs each benchmark once, in the background, to check that it works.
pub(crate) fn run_benchmarks_once() -> crate::Result<Outcome> {
    show(&[benchmarks().in_background()])
}

fn benchmarks() -> Invocation {
    Invocation::cargo("test --no-fail-fast --bench * --all-features")
}

/// Tests the server without HTTP/2 and TLS, since the workspace's own build always has them.
pub(crate) fn run_lean_server() -> crate::Result<Outcome> {
    show(&[in_places(lean_server(), PLACES_BESIDE).arg("server::")])
}

fn lean_server() -> Invocation {
    let runner = match Runner::choose() {
        Runner::Nextest => "nextest run",
        Runner::Cargo => "test",
    };
    Invocation::cargo(runner).args(
        "--package proxy-runtime --no-default-features --features server --test it".split(' '),
    )
}

/// Lets nextest run more tests at once than there are processors.
fn in_places(command: Invocation, per_processor: usize) -> Invocation {
    match (Runner::choose(), available_parallelism()) {
        (Runner::Nextest, Ok(processors)) => {
            let places = processors.get() * per_processor;
            command.arg(PROFILE).arg(format!("--test-threads={places}"))
        }
        _ => command,
    }
}

/// The test runner.
enum Runner {
    /// cargo-nextest: a process per test, with the settings of `.config/nextest.toml`.
    Nextest,
    /// Cargo: one test program after another.
    Cargo,
}

impl Runner {
    fn choose() -> Self {
        match peers::on_path("cargo-nextest") {
            Some(_) => Self::Nextest,
            None => Self::Cargo,
        }
    }
}

impl Tests {
    /// The command that runs the tests.
    fn command(self) -> Invocation {
        let runner = match Runner::choose() {
            Runner::Nextest => "nextest run",
            Runner::Cargo => "test --lib --bins --tests",
        };
        Invocation::cargo(runner).args(self.packages())
    }

    /// The members with these tests, with all features, as each step builds them, so that nothing
    /// is compiled twice.
    pub(crate) fn packages(self) -> impl Iterator<Item = &'static str> {
        let left_out: &[&str] = match self {
            Self::All => &[],
            Self::OfUsers => &TOOLS,
        };
        let left_out = left_out.iter().flat_map(|name| ["--exclude", name]);
        ["--workspace", "--all-features"]
            .into_iter()
            .chain(left_out)
    }
}

/// Runs tests, and counts those that were skipped because of a missing peer. Shows each line of
/// their output, and passes it on.
fn counting_skips(
    command: Invocation,
    workspace: &Workspace,
    require_peers: bool,
    mut line: impl FnMut(&str),
) -> crate::Result<Outcome> {
    let mut command = with_peers(workspace.compiling(command), workspace, require_peers);
    let variable = |name| std::env::var(name).ok();
    if let Some(seed) = seed(variable("CI").as_deref(), variable(SEED)) {
        command = command.env(SEED, seed);
    }
    say!("{command}");
    let skips = SkipFile::empty(workspace.target_directory())?;
    let running = command.clone().env(SKIPS, &skips.0);
    let ended = running.follow(LIMIT, |text| {
        output::line(text);
        line(text);
    })?;
    let left_out = skips.lines()?;
    for line in &left_out {
        say!("{line}");
    }
    Ok(if ended.is_success() {
        let note = match left_out.len() {
            0 => "no peer test left out".to_owned(),
            count => format!("{count} PEER TESTS LEFT OUT, see the lines {PEER_TEST_SKIPPED}"),
        };
        Outcome::Passed { note: Some(note) }
    } else {
        Outcome::Failed {
            why: ended.to_string(),
            repeat: vec![command.to_string()],
        }
    })
}

/// The file to which tests add a line when they skip something.
struct SkipFile(PathBuf);

impl SkipFile {
    fn empty(target: &Path) -> crate::Result<Self> {
        std::fs::create_dir_all(target)?;
        let path = target.join("peer-skips.txt");
        std::fs::write(&path, "")?;
        Ok(Self(path))
    }

    fn lines(&self) -> crate::Result<Vec<String>> {
        let text = std::fs::read_to_string(&self.0)?;
        let skips = text
            .lines()
            .filter(|line| line.starts_with(PEER_TEST_SKIPPED));
        Ok(skips.map(str::to_owned).collect())
    }
}

/// Returns the seed of property tests for the variables `CI` and [`SEED`]; `None` for a random one.
/// Set explicitly for each step, so that the command that repeats a failure has it.
fn seed(ci: Option<&str>, chosen: Option<String>) -> Option<String> {
    let in_ci = ci.is_some_and(|ci| !ci.is_empty() && !ci.eq_ignore_ascii_case("false"));
    chosen.or_else(|| in_ci.then(|| SEED_IN_CI.to_owned()))
}

/// Lets a program find the fetched peers.
pub(crate) fn with_peers(command: Invocation, workspace: &Workspace, required: bool) -> Invocation {
    let command = command.env("PEERS_DIR", workspace.peers_directory());
    match required {
        true => command.env("REQUIRE_PEERS", "1"),
        false => command,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_test_of_both_runners_is_noticed() {
        for (line, expected) in [
            ("    Starting 4038 tests across 31 binaries", true),
            (
                "     Running unittests src/lib.rs (target/debug/deps/a-1)",
                true,
            ),
            ("   Compiling proxy-model v0.1.0", false),
            ("        PASS [   0.010s] a tests::running", false),
        ] {
            assert_eq!(runs_tests(line), expected, "{line}");
        }
    }

    #[test]
    fn property_tests_are_the_same_in_every_run_of_ci_and_others_in_each_elsewhere() {
        for (ci, chosen, expected) in [
            (None, None, None),
            (Some(""), None, None),
            (Some("false"), None, None),
            (Some("true"), None, Some(SEED_IN_CI)),
            (Some("1"), None, Some(SEED_IN_CI)),
            // A repeated run has a seed already.
            (Some("true"), Some("7"), Some("7")),
            (None, Some("7"), Some("7")),
        ] {
            let seed = seed(ci, chosen.map(str::to_owned));
            assert_eq!(seed.as_deref(), expected, "{ci:?} {chosen:?}");
        }
        assert!(SEED_IN_CI.parse::<u64>().is_ok(), "proptest reads no other");
    }
}
