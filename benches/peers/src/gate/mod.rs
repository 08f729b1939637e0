//! The gate: the cost of several kinds of requests in instructions, heap blocks and system calls.
//!
//! It measures the server of the gateway without the gateway around it: discovery takes no part in
//! a request, but most of the build time.
//!
//! Processor time varies between machines and minutes; these counts hardly vary, so they can be
//! compared with earlier ones.
//!
//! | count | tool | method |
//! | --- | --- | --- |
//! | user instructions | valgrind's callgrind | of the thread that forwards |
//! | heap blocks | valgrind's callgrind | calls of the C library's allocator |
//! | system calls | strace | in a separate run |
//!
//! All counts cover an exact number of requests on open connections, without the start of the
//! gateway, which varies with the scheduling of threads.

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

/// The exit code when a count has grown, distinct from that of errors.
pub(crate) const SHUT: u8 = 3;

/// Options of `bench-peers gate`, set by `cargo xtask bench gate`.
#[derive(Debug, Args)]
pub(crate) struct Options {
    /// The directory of `cargo xtask peers`
    #[arg(long, value_name = "DIRECTORY")]
    peers_directory: PathBuf,
    /// The output directory of the tools
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
        match self.only.is_empty() {
            true => !row.is_reference,
            false => self.only.iter().any(|name| name == row.name),
        }
    }
}

/// Measures, compares, and prints the result. `false` if a count has grown too much.
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

/// The machine and the compiler of a measurement.
struct Machine {
    kind: String,
    toolchain: String,
}

/// The program of a row, next to this one.
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
    let calls = bench.row.has_calls_of_its_own();
    match calls.then(|| bench.system_calls()).transpose() {
        Ok(None) => {
            println!("how many requests share a system call is a matter of timing: not counted")
        }
        Ok(Some(calls)) => {
            println!("{calls}");
            counts.system_calls = Some(calls.total());
            counts.calls_in_vain = Some(calls.failed());
        }
        // If tracing is forbidden, as in many containers, the other counts are still useful.
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

/// The processor features that select code at run time. Valgrind shows the same processor on all
/// machines, except for features that it cannot translate.
fn machine() -> String {
    let architecture = std::env::consts::ARCH;
    #[cfg(target_arch = "x86_64")]
    if std::arch::is_x86_feature_detected!("avx2") {
        return format!("{architecture} with AVX2");
    }
    architecture.to_owned()
}

/// The compiler of this directory, which has just built the gateway.
fn toolchain() -> String {
    let said = Command::new("rustc").arg("--version").output();
    said.map_or_else(
        |_| "an unknown compiler".to_owned(),
        |output| String::from_utf8_lossy(&output.stdout).trim().to_owned(),
    )
}

/// Finds a fetched tool, or one on the PATH.
fn find(peers: &Path, name: &str) -> std::result::Result<PathBuf, String> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::iter::once(peers.join("bin"))
        .chain(std::env::split_paths(&path))
        .map(|directory| directory.join(name))
        .find(|path| path.is_file())
        .ok_or_else(|| format!("there is no `{name}`; `cargo xtask peers {name}` fetches it"))
}
