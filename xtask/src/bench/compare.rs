//! `cargo xtask bench peers`: fetches and builds the compared programs, and starts the comparison.
//!
//! The package `bench-peers` measures, and reports its requirements; this module does the part that
//! needs cargo or a package client.

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

use crate::peers;
use crate::process::{Ended, Invocation};
use crate::say;
use crate::workspace::Workspace;

/// The package that measures.
pub(super) const PACKAGE: &str = "bench-peers";

/// The folder of proxies that are built only for comparisons, each a package outside of the
/// workspace.
const COMPETITORS: &str = "benches/competitors";

/// Required to build a part of Pingora.
const CMAKE: &str = "cmake";

/// A guard against a hang, not a budget.
const BUILD_LIMIT: Duration = Duration::from_secs(60 * 60);
const RUN_LIMIT: Duration = Duration::from_secs(4 * 60 * 60);

#[derive(clap::Args)]
#[command(disable_help_flag = true)]
pub(crate) struct Options {
    /// Options of the comparison; `--help` lists them
    #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
    arguments: Vec<String>,
}

/// The requirements of a comparison, as printed by `bench-peers needs`.
#[derive(Debug, Default, PartialEq, Eq)]
struct Needs {
    gateway: bool,
    /// True if the gateway with cargo's default release profile is required.
    gateway_plain: bool,
    /// Further programs of the measuring package.
    beside: Vec<String>,
    peers: Vec<String>,
    competitors: Vec<String>,
}

impl Needs {
    fn parse(lines: &str) -> Result<Self, String> {
        let mut needs = Self::default();
        for line in lines.lines() {
            match line.split_once(' ') {
                Some(("gateway", "gateway")) => needs.gateway = true,
                Some(("gateway", "gateway-plain")) => needs.gateway_plain = true,
                Some(("beside", name)) => needs.beside.push(name.to_owned()),
                Some(("peer", name)) => needs.peers.push(name.to_owned()),
                Some(("competitor", name)) => needs.competitors.push(name.to_owned()),
                _ => return Err(format!("{PACKAGE} needs something unknown: `{line}`")),
            }
        }
        Ok(needs)
    }
}

pub(super) fn run(options: &Options) -> crate::Result<ExitCode> {
    let workspace = Workspace::load()?;
    let target = workspace.target_directory();
    let release = target.join("release");
    if !succeeds(&build_own(PACKAGE))? {
        return Err(format!("{PACKAGE} cannot be built").into());
    }
    let program = release.join(PACKAGE);
    if options
        .arguments
        .iter()
        .any(|argument| argument == "--help" || argument == "-h")
    {
        return ended(&Invocation::new(program).args(["run", "--help"]), RUN_LIMIT);
    }
    let ask = Invocation::new(&program)
        .arg("needs")
        .args(&options.arguments);
    let (asked, answer) = ask.capture(RUN_LIMIT)?;
    if !asked.is_success() {
        eprint!("{answer}");
        return Ok(ExitCode::from(2));
    }
    let needs = Needs::parse(&answer)?;
    let competitors = target.join("competitors");
    // A missing program reports itself, and is left out of the comparison with a note there.
    peers::fetch(&workspace, &needs.peers)?;
    for name in &needs.competitors {
        build_competitor(&workspace, name, &competitors)?;
    }
    let build = Invocation::cargo("build --profile dist --package proxy-gateway");
    if needs.gateway && !succeeds(&build)? {
        return Err("the gateway cannot be built".into());
    }
    // A missing one of these is left out with a note.
    if needs.gateway_plain {
        succeeds(&Invocation::cargo(
            "build --release --package proxy-gateway",
        ))?;
    }
    for name in &needs.beside {
        succeeds(&build_own(name))?;
    }
    let run = Invocation::new(program)
        .arg("run")
        .arg("--gateway")
        .arg(target.join("dist/proxy-gateway"))
        .arg("--gateway-plain")
        .arg(release.join("proxy-gateway"))
        .arg("--peers-directory")
        .arg(workspace.peers_directory())
        .arg("--competitors")
        .arg(competitors.join("release"))
        .arg("--output")
        .arg(target.join(PACKAGE))
        .arg("--root")
        .arg(workspace.root())
        .args(&options.arguments);
    ended(&run, RUN_LIMIT)
}

/// Builds one program of the measuring package; the others would cost time that not every
/// comparison needs.
fn build_own(program: &str) -> Invocation {
    Invocation::cargo("build --release --package").args([PACKAGE, "--bin", program])
}

/// Builds a proxy to compare with. A failure does not prevent the comparison of the others.
fn build_competitor(workspace: &Workspace, name: &str, target: &Path) -> crate::Result<()> {
    let manifest = workspace
        .root()
        .join(COMPETITORS)
        .join(name)
        .join("Cargo.toml");
    let mut build = Invocation::cargo("build --release --locked --manifest-path")
        .arg(manifest)
        .arg("--target-dir")
        .arg(target);
    if name == "pingora" && !target.join("release/competitor-pingora").is_file() {
        peers::fetch(workspace, &[CMAKE.to_owned()])?;
        build = build.env("PATH", path_with(&workspace.peers_directory().join("bin"))?);
    }
    if !succeeds(&build)? {
        say!("{name} COULD NOT BE BUILT; an earlier build is compared with, if there is one");
    }
    Ok(())
}

/// The PATH with a directory added at its end.
fn path_with(directory: &Path) -> crate::Result<std::ffi::OsString> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let directories = std::env::split_paths(&path).chain([PathBuf::from(directory)]);
    Ok(std::env::join_paths(directories)?)
}

fn succeeds(command: &Invocation) -> crate::Result<bool> {
    say!("{command}");
    Ok(command.show(BUILD_LIMIT)?.is_success())
}

fn ended(command: &Invocation, limit: Duration) -> crate::Result<ExitCode> {
    let ended = command.show(limit)?;
    Ok(match ended {
        Ended::Exited(status) if status.success() => ExitCode::SUCCESS,
        _ => {
            eprintln!("xtask: {ended}");
            ExitCode::FAILURE
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_needed_is_read_line_by_line() {
        let needs = Needs::parse(
            "gateway gateway\ngateway gateway-plain\nbeside service-in-axum\npeer nginx\ncompetitor pingora\npeer envoy\n",
        );
        assert_eq!(
            needs,
            Ok(Needs {
                gateway: true,
                gateway_plain: true,
                beside: vec!["service-in-axum".to_owned()],
                peers: vec!["nginx".to_owned(), "envoy".to_owned()],
                competitors: vec!["pingora".to_owned()],
            })
        );
        assert!(Needs::parse("container x").is_err());
    }

    #[test]
    fn a_directory_is_added_behind_all_others() {
        let path = path_with(Path::new("fetched/bin")).expect("it can be joined");
        let last = std::env::split_paths(&path).last();
        assert_eq!(last, Some(PathBuf::from("fetched/bin")));
    }
}
