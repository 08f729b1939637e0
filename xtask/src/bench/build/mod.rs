//! `cargo xtask bench build`: the processor time of a cold build by package, compared with a
//! checked-in baseline.

mod baseline;
mod compiler;
mod table;

use std::fs;
use std::path::Path;
use std::process::ExitCode;

use crate::checks::{LIMIT, show};
use crate::process::Invocation;
use crate::say;
use crate::steps::Outcome;
use crate::test;
use crate::workspace::Workspace;

use self::baseline::Baseline;
use self::compiler::Log;

pub(crate) use self::compiler::{Seconds, stand_in};

/// The baseline, relative to the root of the workspace.
const BASELINE: &str = "benches/build.toml";

/// The page with the table of costs, relative to the root of the workspace.
const PAGE: &str = "CONTRIBUTING.md";

/// The settings of compared builds, the same as in `.ci/run`: debug symbols are generated for our
/// crates only, and would make these seem more expensive.
const SETTINGS: [(&str, &str); 3] = [
    ("CARGO_INCREMENTAL", "0"),
    ("CARGO_PROFILE_DEV_DEBUG", "0"),
    ("CARGO_PROFILE_DEV_STRIP", "symbols"),
];

#[derive(Default, clap::Args)]
pub(crate) struct Options {
    /// Write what is measured into the baseline and into the table of CONTRIBUTING.md
    #[arg(long)]
    renew: bool,
}

pub(super) fn run(options: &Options) -> crate::Result<ExitCode> {
    let workspace = Workspace::load()?;
    std::env::set_current_dir(workspace.root())?;
    // A separate directory: packages that are already built cost nothing and would hide the rest.
    let target = workspace.target_directory().join("build-cost");
    if target.exists() {
        fs::remove_dir_all(&target)?;
    }
    let mut command = test::build_command().arg("--target-dir").arg(&target);
    for (name, value) in SETTINGS {
        command = command.env(name, value);
    }
    let measured = watch(command, &target);
    fs::remove_dir_all(&target)?;
    let (outcome, seconds) = measured?;
    let Some(seconds) = seconds else {
        eprintln!("xtask: nothing was measured: {outcome:?}");
        return Ok(ExitCode::FAILURE);
    };
    if options.renew {
        say!("{}", table::text(&seconds).trim_end());
        let baseline = Baseline::of(&seconds, &members(&workspace));
        fs::write(BASELINE, baseline.to_string())?;
        let page = fs::read_to_string(PAGE)?;
        fs::write(PAGE, table::renew(&page, &seconds)?)?;
        say!("written: {BASELINE}, {PAGE}");
        return Ok(ExitCode::SUCCESS);
    }
    Ok(match step(&workspace, Some(&seconds))? {
        Outcome::Passed { note } => {
            say!("{}", note.unwrap_or_default());
            ExitCode::SUCCESS
        }
        Outcome::Failed { why, .. } | Outcome::Skipped { why } => {
            eprintln!("xtask: {why}");
            ExitCode::FAILURE
        }
    })
}

/// Compiles all tests and programs, as a step of `cargo xtask ci`, and measures the time if it is
/// comparable.
pub(crate) fn build(workspace: &Workspace) -> crate::Result<(Outcome, Option<Seconds>)> {
    let is_set = |(name, value)| std::env::var(name).is_ok_and(|set| set == value);
    if !SETTINGS.into_iter().all(is_set) {
        return Ok((show(&[test::build_command()])?, None));
    }
    watch(test::build_command(), workspace.target_directory())
}

/// Checks the measurement of the step `build`.
pub(crate) fn step(workspace: &Workspace, seconds: Option<&Seconds>) -> crate::Result<Outcome> {
    let skipped = |why: &str| Outcome::Skipped {
        why: why.to_owned(),
    };
    let Some(seconds) = seconds else {
        return Ok(skipped(
            "a build with the settings of .ci/run alone is measured",
        ));
    };
    let libraries = workspace.published_libraries();
    if let Some(library) = libraries.iter().find(|library| !seconds.has(library)) {
        let why = format!("{library} was there already: only a cold build can be measured");
        return Ok(skipped(&why));
    }
    let members = members(workspace);
    say!("{}", table::text(seconds).trim_end());
    let before: Baseline = fs::read_to_string(BASELINE)
        .map_err(|error| format!("{BASELINE}: {error}"))?
        .parse()?;
    Ok(match before.judge(&Baseline::of(seconds, &members)) {
        Ok(note) => Outcome::Passed { note: Some(note) },
        Err(why) => Outcome::Failed {
            why,
            repeat: vec![Invocation::cargo("xtask bench build").to_string()],
        },
    })
}

/// Runs a build that logs its compilers in `directory`. Only Linux reports their time.
fn watch(command: Invocation, directory: &Path) -> crate::Result<(Outcome, Option<Seconds>)> {
    if !cfg!(target_os = "linux") {
        return Ok((show(&[command])?, None));
    }
    let log = Log::begin(directory)?;
    say!("{command}");
    let ended = log.watch(command.clone()).show(LIMIT)?;
    let seconds = log.end()?;
    if ended.is_success() {
        return Ok((Outcome::PASSED, Some(seconds)));
    }
    let why = ended.to_string();
    let repeat = vec![command.to_string()];
    Ok((Outcome::Failed { why, repeat }, None))
}

fn members(workspace: &Workspace) -> Vec<&str> {
    workspace.package_names().collect()
}
