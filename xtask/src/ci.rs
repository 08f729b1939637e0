//! `cargo xtask ci`: every check, in an order in which steps reuse what earlier ones have compiled.
//!
//! Checks of features are many small ones in sequence, which use little more than one processor.
//! Optimised builds run in parallel, in separate directories. They are awaited before anything
//! depends on time.

use std::path::Path;
use std::process::ExitCode;
use std::sync::mpsc;

use crate::disk::{Bytes, Room};
use crate::say;
use crate::steps::{Outcome, Steps};
use crate::test::Tests;
use crate::tidy::{self, Leftover};
use crate::workspace::Workspace;
use crate::{api, bench, checks, examples, packaging, peers, site, test};

/// Upper limits of the target directory with peers: with the settings of `.ci/run`, and with those
/// of `Cargo.toml`.
const MOST_TIDY: Bytes = Bytes::megabytes(5_200);
const MOST: Bytes = Bytes::megabytes(9_000);

/// The programs that checks use.
const TOOLS: &[&str] = &[
    "typos",
    site::TOOL,
    "cargo-hack",
    "cargo-deny",
    "kubectl",
    "kubernetes-validate",
    "buildah",
];

/// The name of the step for optimised builds.
const RELEASE_BUILDS: &str = "release builds";

/// The name of the step that compiles what two steps after `test` run.
const SMALL_BUILDS: &str = "small builds";

/// The name of the step that runs each benchmark once.
const BENCHMARKS: &str = "benchmarks";

/// The name of the step that measures the release build.
const GATE: &str = "gate";

#[derive(clap::Args)]
pub(crate) struct Options {
    /// Fail when a real peer or a tool cannot be had, instead of leaving its tests or checks out
    #[arg(long)]
    require_peers: bool,
    /// Only format, lints, documentation and tests, with the peers and tools that are already here
    #[arg(long)]
    quick: bool,
    /// Delete what was built for a step when no later step needs it, for a machine with little disk
    #[arg(long)]
    tidy: bool,
    /// Only these steps, called as in the closing table, separated by commas
    #[arg(long, value_delimiter = ',', value_name = "STEP")]
    only: Vec<String>,
}

pub(crate) fn run(options: &Options) -> crate::Result<ExitCode> {
    let workspace = Workspace::load()?;
    // Printed commands are meant to be repeated in the root, so they run there.
    std::env::set_current_dir(workspace.root())?;
    let target = workspace.target_directory();
    let room = Room::of(target)?;
    say!("{room}");
    let most = if options.tidy { MOST_TIDY } else { MOST };
    match room.suffices(most, target) {
        Ok(()) => {}
        // If no space can be freed, a run that may just fit is better than none.
        Err(short) if options.tidy => say!("WARNING: {short}"),
        Err(short) => return Err(short.into()),
    }
    let required = options.require_peers;
    let mut steps = Steps::new(&options.only);

    // Programs are fetched while the first steps compile. A step that needs one waits for it.
    if !options.quick {
        let tools = peers::tools_step(&workspace, TOOLS, required);
        steps.begin("tools", tools);
        let peers = peers::step(&workspace, &bench::gate::TOOLS, required);
        steps.begin("peers", peers);
    }

    // Checks without code generation.
    steps.run("format", checks::format);
    steps.run("lint", checks::lint);
    steps.run("doc", checks::documentation);
    steps.wait_for("tools");
    steps.run("spelling", || checks::spelling(&workspace, required));
    steps.run("site", || site::step(&workspace, required));
    if !options.quick {
        steps.run("public api", || api::step(&workspace));
        steps.run("dependencies", || {
            checks::dependencies(&workspace, required)
        });
        steps.begin(RELEASE_BUILDS, release_builds);
        steps.run("features", || checks::features(&workspace, required));
    }
    options.done_with(Leftover::Checks, target)?;
    steps.wait_for(RELEASE_BUILDS);
    let released = steps.has_passed(RELEASE_BUILDS);
    if released {
        options.done_with(Leftover::Optimised, target)?;
    }

    // Steps without optimisation.
    let mut compiled = None;
    steps.run("build", || {
        let (outcome, seconds) = bench::build::build(&workspace)?;
        compiled = seconds;
        Ok(outcome)
    });
    if !options.quick {
        steps.run("build cost", || {
            bench::build::step(&workspace, compiled.as_ref())
        });
    }
    steps.wait_for("peers");
    // Cargo compiles one thing at a time: the small programs have their turn when the tests have been compiled.
    let (tests, tests_run) = mpsc::channel::<()>();
    if !options.quick {
        steps.begin(SMALL_BUILDS, move || {
            // An error is the same sign: the step has ended, or was not chosen.
            let _ = tests_run.recv();
            test::build_small_programs()
        });
    }
    let begun = || drop(tests);
    steps.run("test", || {
        test::run_tests(&workspace, Tests::All, required, begun)
    });
    steps.wait_for(SMALL_BUILDS);
    if !options.quick {
        // Benchmarks use one processor, and the tests of the server wait at times.
        steps.begin(BENCHMARKS, test::run_benchmarks_once);
        steps.run("lean server", test::run_lean_server);
        steps.wait_for(BENCHMARKS);
    }
    options.done_with(Leftover::Tests, target)?;
    if !options.quick {
        // It counts instructions, whose number does not depend on what else the machine does.
        steps.begin(GATE, move || {
            bench::gate::step(&Workspace::load()?, required, released)
        });
    }
    steps.run("doc tests", || {
        test::run_doc_tests(&workspace, Tests::All, required)
    });
    if !options.quick {
        steps.run("examples", || {
            examples::run(&workspace, Tests::All, required)
        });
        steps.run("packaging", || packaging::step(&workspace, required));
        steps.run("image", || {
            packaging::image_step(&workspace, required, released)
        });
    }
    steps.wait_for(GATE);
    steps.end()
}

/// Builds with optimisation or for distribution, for the steps `image` and `gate`.
fn release_builds() -> crate::Result<Outcome> {
    let image = packaging::build_static_program()?;
    let gate = bench::gate::build()?;
    Ok(match (image, gate) {
        (Outcome::Passed { .. }, gate) => gate,
        (image, _) => image,
    })
}

impl Options {
    /// Deletes build output that no later step reads.
    fn done_with(&self, leftover: Leftover, target: &Path) -> crate::Result<()> {
        if self.tidy {
            say!("\n{}", Room::of(target)?);
            tidy::delete(leftover, target)?;
            say!("{}, now that {leftover} are deleted", Room::of(target)?);
        }
        Ok(())
    }
}
