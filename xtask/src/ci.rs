//! `cargo xtask ci`: every check, in an order in which steps reuse what earlier ones have compiled.
//!
//! Checks of features are many small ones in sequence, which use little more than one processor.
//! The optimised build takes the rest, in a directory of its own. It is awaited before anything
//! depends on time.

use std::convert::Infallible;
use std::path::Path;
use std::process::ExitCode;
use std::sync::mpsc::{self, Receiver, Sender};

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

/// The name of the step for the optimised build, which `gate` measures.
const RELEASE_BUILD: &str = "release build";

/// The name of the step that compiles what the next two steps run.
const SMALL_BUILDS: &str = "small builds";

/// The name of the step that runs each benchmark once.
const BENCHMARKS: &str = "benchmarks";

/// The name of the step that tests the server without most features.
const LEAN_SERVER: &str = "lean server";

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
        steps.begin(RELEASE_BUILD, bench::gate::build_in_background);
        steps.run("features", || checks::features(&workspace, required));
    }
    options.done_with(Leftover::Checks, target)?;
    steps.wait_for(RELEASE_BUILD);
    let released = steps.has_passed(RELEASE_BUILD);
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
    // Most tests wait for the network or a timer, which leaves a part of the processors to small
    // programs. Cargo compiles one thing at a time: they have their turn when the tests have been
    // compiled.
    let (tests, tests_run) = mpsc::channel();
    let (builds, built) = mpsc::channel();
    let (lean_server, lean_server_run) = mpsc::channel();
    if !options.quick {
        steps.begin(
            SMALL_BUILDS,
            after(tests_run, builds, test::build_small_programs),
        );
        steps.begin(
            LEAN_SERVER,
            after(built, lean_server, test::run_lean_server),
        );
        let (last, _) = mpsc::channel();
        steps.begin(
            BENCHMARKS,
            after(lean_server_run, last, test::run_benchmarks_once),
        );
    }
    let begun = || drop(tests);
    steps.run("test", || {
        test::run_tests(&workspace, Tests::All, required, begun)
    });
    if !options.quick {
        // It counts instructions, whose number does not depend on what else the machine does.
        steps.begin(GATE, move || {
            bench::gate::step(&Workspace::load()?, required, released)
        });
    }
    for beside in [SMALL_BUILDS, LEAN_SERVER, BENCHMARKS] {
        steps.wait_for(beside);
    }
    options.done_with(Leftover::Tests, target)?;
    steps.run("doc tests", || {
        test::run_doc_tests(&workspace, Tests::All, required)
    });
    if !options.quick {
        steps.run("examples", || {
            examples::run(&workspace, Tests::All, required)
        });
        steps.run("packaging", || packaging::step(&workspace, required));
        steps.run("image", || {
            packaging::image_step(&workspace, required, packaging::StaticProgram::Linked)
        });
    }
    steps.wait_for(GATE);
    steps.end()
}

/// Returns a step that waits until the sender of `begin` is dropped, and drops `end` when it has ended itself.
fn after(
    begin: Receiver<Infallible>,
    end: Sender<Infallible>,
    step: impl FnOnce() -> crate::Result<Outcome>,
) -> impl FnOnce() -> crate::Result<Outcome> {
    move || {
        // An error is the sign: the step before has ended, or was not chosen.
        let _ = begin.recv();
        let outcome = step();
        drop(end);
        outcome
    }
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_step_after_another_begins_with_its_end_or_when_it_is_not_chosen() {
        for is_chosen in [true, false] {
            let (first, begin_first) = mpsc::channel();
            let (second, begin_second) = mpsc::channel();
            let (last, _) = mpsc::channel();
            let (done, order) = mpsc::channel();
            let reports = done.clone();
            let one = after(begin_first, second, move || {
                reports.send("one")?;
                Ok(Outcome::PASSED)
            });
            let two = after(begin_second, last, move || {
                done.send("two")?;
                Ok(Outcome::PASSED)
            });
            let two = std::thread::spawn(|| two().expect("it can report"));
            if is_chosen {
                let one = std::thread::spawn(|| one().expect("it can report"));
                drop(first);
                one.join().expect("it ends");
            } else {
                drop(one);
            }
            two.join().expect("it ends");
            let expected: &[_] = if is_chosen { &["one", "two"] } else { &["two"] };
            assert_eq!(order.iter().collect::<Vec<_>>(), expected);
        }
    }
}
