//! `cargo xtask bench build`: the time that a cold release build takes, crate by crate, compared with a checked-in baseline.
//!
//! Machines differ in speed, and one machine differs from hour to hour. So the sum of all crates is divided by the time of a
//! few crates from the registry that are part of the same build. The check fails when that ratio grows by a tenth.

mod baseline;
mod table;
mod timings;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

use crate::process::Invocation;
use crate::steps::Outcome;
use crate::workspace::Workspace;

use self::baseline::Baseline;
use self::timings::Timings;

/// The release build that is measured: the gateway, and the program that measures requests.
pub(super) const BUILD: &str = "build --release --package proxy-gateway --package bench-peers";

/// The baseline, relative to the root of the workspace.
const BASELINE: &str = "benches/build.toml";

/// The page with the table of costs, relative to the root of the workspace.
const PAGE: &str = "CONTRIBUTING.md";

/// The limit for a build that hangs.
const LIMIT: Duration = Duration::from_secs(40 * 60);

#[derive(Default, clap::Args)]
pub(crate) struct Options {
    /// Write what is measured into the baseline and into the table of CONTRIBUTING.md
    #[arg(long)]
    renew: bool,
}

pub(super) fn run(options: &Options) -> crate::Result<ExitCode> {
    let workspace = Workspace::load()?;
    std::env::set_current_dir(workspace.root())?;
    // A directory of its own: units that are already built cost nothing and would hide the rest.
    let target = workspace.target_directory().join("build-cost");
    if target.exists() {
        fs::remove_dir_all(&target)?;
    }
    let measured = measure(&target);
    fs::remove_dir_all(&target)?;
    let timings = match measured? {
        Ok(timings) => timings,
        Err(why) => {
            eprintln!("xtask: {why}");
            return Ok(ExitCode::FAILURE);
        }
    };
    let baseline = Baseline::of(&timings)?;
    print!("{}", table::text(&timings));
    if options.renew {
        fs::write(BASELINE, baseline.to_string())?;
        let page = fs::read_to_string(PAGE)?;
        fs::write(PAGE, table::renew(&page, &timings)?)?;
        println!("written: {BASELINE}, {PAGE}");
        return Ok(ExitCode::SUCCESS);
    }
    match compare(&baseline)? {
        Ok(note) => {
            println!("{note}");
            Ok(ExitCode::SUCCESS)
        }
        Err(why) => {
            eprintln!("xtask: {why}");
            Ok(ExitCode::FAILURE)
        }
    }
}

/// A step of `cargo xtask ci`. Builds in the usual target directory, so that later steps use the programs.
pub(crate) fn step(workspace: &Workspace) -> crate::Result<Outcome> {
    let target = workspace.target_directory();
    let failed = |why| Outcome::Failed {
        why,
        repeat: vec![Invocation::cargo("xtask bench build").to_string()],
    };
    if target.join("release").exists() {
        let why = "there are programs already: only a cold build can be measured".to_owned();
        return Ok(Outcome::Skipped { why });
    }
    let timings = match measure(target)? {
        Ok(timings) => timings,
        Err(why) => return Ok(failed(why)),
    };
    print!("{}", table::text(&timings));
    Ok(match compare(&Baseline::of(&timings)?)? {
        Ok(note) => Outcome::Passed { note: Some(note) },
        Err(why) => failed(why),
    })
}

/// Builds into `target` and reads the report; the inner error is a build that fails.
fn measure(target: &Path) -> crate::Result<Result<Timings, String>> {
    let build = Invocation::cargo(BUILD)
        .args(["--timings", "--target-dir"])
        .arg(target);
    println!("{build}");
    let built = build.show(LIMIT)?;
    if !built.is_success() {
        return Ok(Err(format!("the build failed: {built}")));
    }
    let report: PathBuf = target.join("cargo-timings").join("cargo-timing.html");
    let report = fs::read_to_string(&report)
        .map_err(|error| format!("cargo wrote no report at {}: {error}", report.display()))?;
    Ok(Ok(Timings::read(&report)?))
}

/// The comparison with the checked-in baseline: a note, or the reason why the build costs too much.
fn compare(measured: &Baseline) -> crate::Result<Result<String, String>> {
    let before: Baseline = fs::read_to_string(BASELINE)
        .map_err(|error| format!("{BASELINE}: {error}"))?
        .parse()?;
    Ok(before.judge(measured))
}
