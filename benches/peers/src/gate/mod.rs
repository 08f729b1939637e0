//! The gate: what a small request costs our gateway in instructions, heap blocks and system calls.
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
mod tools;
mod verdict;

use std::error::Error;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use clap::Args;

use self::baseline::{Baseline, Counts, Gates};
use self::tools::Bench;
use self::verdict::{Measured, verdict};
use crate::{system, tls};

type Result<T> = std::result::Result<T, Box<dyn Error>>;

/// What the program ends with when a count has grown, to be told from what keeps it from counting.
pub(crate) const SHUT: u8 = 3;

/// Options of `bench-peers gate`, told by `cargo xtask bench gate`.
#[derive(Debug, Args)]
pub(crate) struct Options {
    /// The gateway, built with the profile `bench`
    #[arg(long, value_name = "FILE")]
    gateway: PathBuf,
    /// What `cargo xtask peers` fetches into
    #[arg(long, value_name = "DIRECTORY")]
    peers_directory: PathBuf,
    /// Where the tools write
    #[arg(long, value_name = "DIRECTORY")]
    output: PathBuf,
    /// The baseline to compare with
    #[arg(long, value_name = "FILE")]
    baseline: PathBuf,
    /// Write what is measured into the baseline instead
    #[arg(long)]
    renew: bool,
}

/// Measures, compares, and says so. `false` when a count has grown too much.
pub(crate) fn run(options: &Options) -> Result<bool> {
    let mut gates = Gates::parse(&fs::read_to_string(&options.baseline)?)?;
    fs::create_dir_all(&options.output)?;
    let output = fs::canonicalize(&options.output)?;
    system::raise_open_files();
    let (certificate, _) = tls::prepare(&output)?;
    let bench = Bench {
        gateway: fs::canonicalize(&options.gateway)?,
        peers: &options.peers_directory,
        directory: &output,
        certificate: &certificate,
    };
    let machine = machine();
    let toolchain = toolchain();
    println!(
        "128 B GET, 64 connections, 1,000 routes, four destinations, metrics on; {machine}, {toolchain}"
    );

    let profile = bench.profile()?;
    let mut counts = Counts {
        instructions: Some(profile.total()),
        heap_blocks: Some(profile.blocks),
        ..Counts::default()
    };
    match bench.system_calls() {
        Ok(calls) => {
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
        toolchain: &toolchain,
    };
    let (text, open) = verdict(&now, gates.of(&machine), &gates.budget);
    println!("\n{text}");
    if !options.renew {
        return Ok(open);
    }
    gates.renew(Baseline::new(machine, toolchain, counts, &profile));
    fs::write(&options.baseline, gates.render())?;
    println!("written: {}", options.baseline.display());
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
