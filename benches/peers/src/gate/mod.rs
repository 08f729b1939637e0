//! The gate: what a few kinds of requests cost our proxy in instructions, heap blocks and system calls.
//!
//! It is counted on the server that the gateway has, without the gateway around it: discovery takes no part in a request,
//! and most of the time of a build.
//!
//! Processor time differs from machine to machine and from minute to minute; these counts hardly do, so that they can be
//! compared with those of an earlier day.
//!
//! | count | by | how |
//! |---|---|---|
//! | user instructions | valgrind's callgrind | of the thread that forwards |
//! | heap blocks | the same | how often the allocator of the C library is asked for one |
//! | system calls | strace | in a run of its own |
//!
//! All over an exact number of requests on connections that are open already: what is done when the gateway starts, some of
//! which is done once or twice as threads happen to run, is not among them.

mod baseline;
mod profile;
mod row;
mod tools;
mod verdict;

use std::error::Error;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use clap::Args;

use self::baseline::{Baseline, Counts, Gates};
use self::row::{ROWS, Row};
use self::tools::Bench;
use self::verdict::{Measured, verdict};
use crate::{system, tls};

type Result<T> = std::result::Result<T, Box<dyn Error>>;

/// What the program ends with when a count has grown, to be told from what keeps it from counting.
pub(crate) const SHUT: u8 = 3;

/// Options of `bench-peers gate`, told by `cargo xtask bench gate`.
#[derive(Debug, Args)]
pub(crate) struct Options {
    /// What `cargo xtask peers` fetches into
    #[arg(long, value_name = "DIRECTORY")]
    peers_directory: PathBuf,
    /// Where the tools write
    #[arg(long, value_name = "DIRECTORY")]
    output: PathBuf,
    /// The baselines to compare with
    #[arg(long, value_name = "DIRECTORY")]
    baselines: PathBuf,
    /// Write what is measured into the baseline instead
    #[arg(long)]
    renew: bool,
    /// Only this kind of request, which may be given more than once
    #[arg(long, value_name = "ROW", value_parser = row::names())]
    only: Vec<String>,
}

impl Options {
    fn includes(&self, row: &Row) -> bool {
        self.only.is_empty() || self.only.iter().any(|name| name == row.name)
    }
}

/// Measures, compares, and says so. `false` when a count has grown too much.
pub(crate) fn run(options: &Options) -> Result<bool> {
    fs::create_dir_all(&options.output)?;
    let output = fs::canonicalize(&options.output)?;
    system::raise_open_files();
    let (certificate, _) = tls::prepare(&output)?;
    let on = Machine {
        kind: machine(),
        toolchain: toolchain(),
    };
    println!(
        "1,000 routes, four destinations, metrics on; {}, {}",
        on.kind, on.toolchain
    );
    let mut open = true;
    for row in ROWS.iter().filter(|row| options.includes(row)) {
        let directory = output.join(row.name);
        fs::create_dir_all(&directory)?;
        let bench = Bench {
            row,
            program: program(row)?,
            peers: &options.peers_directory,
            directory: &directory,
            certificate: &certificate,
        };
        println!("\n{}", row.title);
        let baseline = row.baseline(&options.baselines);
        open &= measure(&bench, &baseline, options.renew, &on)?;
    }
    Ok(open)
}

/// Where it is measured, and with what.
struct Machine {
    kind: String,
    toolchain: String,
}

/// The program of a row, which is beside this one.
fn program(row: &Row) -> Result<PathBuf> {
    let program = std::env::current_exe()?.with_file_name(row.kind.file_name());
    Ok(fs::canonicalize(program)?)
}

fn measure(bench: &Bench<'_>, baseline: &Path, renew: bool, on: &Machine) -> Result<bool> {
    let mut gates = Gates::parse(&fs::read_to_string(baseline)?)?;
    let profile = bench.profile()?;
    let mut counts = Counts {
        instructions: Some(profile.total()),
        heap_blocks: Some(profile.blocks),
        ..Counts::default()
    };
    let calls = bench.row.form.has_calls_of_its_own();
    match calls.then(|| bench.system_calls()).transpose() {
        Ok(None) => {
            println!("how many requests share a system call is a matter of timing: not counted")
        }
        Ok(Some(calls)) => {
            println!("{calls}");
            counts.system_calls = Some(calls.total());
            counts.calls_in_vain = Some(calls.failed());
        }
        // Where tracing is forbidden, as in many containers, the other counts still are worth having.
        Err(why) => println!("SYSTEM CALLS ARE NOT COUNTED: {why}"),
    }
    println!("\ninstructions by function:");
    for (name, cost) in profile.above(0.02) {
        println!("{cost:>10.0}  {name}");
    }
    let now = Measured {
        counts: &counts,
        profile: &profile,
        toolchain: &on.toolchain,
        tolerance: bench.row.tolerance(),
    };
    let (text, open) = verdict(&now, gates.of(&on.kind), &gates.budget);
    println!("\n{text}");
    if !renew {
        return Ok(open);
    }
    let new = Baseline::new(on.kind.clone(), on.toolchain.clone(), counts, &profile);
    gates.renew(new);
    fs::write(baseline, gates.render())?;
    println!("written: {}", baseline.display());
    Ok(true)
}

/// What decides which code a program chooses while it runs. Valgrind shows the same processor to programs on all machines,
/// but for what it cannot translate for the one that it runs on.
fn machine() -> String {
    let architecture = std::env::consts::ARCH;
    #[cfg(target_arch = "x86_64")]
    if std::arch::is_x86_feature_detected!("avx2") {
        return format!("{architecture} with AVX2");
    }
    architecture.to_owned()
}

/// The compiler that this directory has: the one that the gateway was built with a moment ago.
fn toolchain() -> String {
    let said = Command::new("rustc").arg("--version").output();
    said.map_or_else(
        |_| "an unknown compiler".to_owned(),
        |output| String::from_utf8_lossy(&output.stdout).trim().to_owned(),
    )
}

/// A tool that was fetched or that the PATH has.
fn find(peers: &Path, name: &str) -> std::result::Result<PathBuf, String> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::iter::once(peers.join("bin"))
        .chain(std::env::split_paths(&path))
        .map(|directory| directory.join(name))
        .find(|path| path.is_file())
        .ok_or_else(|| format!("there is no `{name}`; `cargo xtask peers {name}` fetches it"))
}
