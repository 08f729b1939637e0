//! `cargo xtask bench` and its subcommands `build`, `gate`, `memory` and `peers`.

pub(crate) mod build;
mod compare;
pub(crate) mod gate;
mod memory;

use std::process::ExitCode;
use std::time::Duration;

use cargo_metadata::TargetKind;

use crate::process::Invocation;
use crate::say;
use crate::workspace::Workspace;

/// The package of the benchmarks.
const PACKAGE: &str = "benches";

/// A guard against a benchmark that hangs, not a budget.
const LIMIT: Duration = Duration::from_secs(4 * 60 * 60);

#[derive(clap::Args)]
#[command(args_conflicts_with_subcommands = true)]
pub(crate) struct Options {
    #[command(subcommand)]
    other: Option<Other>,
    /// Names of benchmarks, as in `benches/Cargo.toml`; all of them by default
    names: Vec<String>,
    /// Arguments for criterion, after `--`: a filter, `--quick`, `--save-baseline NAME`
    #[arg(last = true)]
    criterion: Vec<String>,
}

#[derive(clap::Subcommand)]
enum Other {
    /// Compares the gateway with other proxies, side by side, in interleaved rounds; `peers --quick` ends in a minute
    Peers(compare::Options),
    /// Measures the compiler in a cold build crate by crate, and fails when it costs a tenth more than its baseline
    Build(build::Options),
    /// Counts instructions, heap blocks and system calls of a small request, and fails when they
    /// have grown by a few per cent
    Gate(gate::Options),
    /// Measures the resident memory of the gateway: after clients that do not read, after reloads, with many services
    Memory(memory::Options),
}

pub(crate) fn run(options: &Options) -> crate::Result<ExitCode> {
    match &options.other {
        Some(Other::Peers(options)) => return compare::run(options),
        Some(Other::Build(options)) => return build::run(options),
        Some(Other::Gate(options)) => return gate::run(options),
        Some(Other::Memory(options)) => return memory::run(options),
        None => {}
    }
    let workspace = Workspace::load()?;
    let known = workspace
        .targets(PACKAGE, &TargetKind::Bench)
        .ok_or_else(|| {
            format!("this workspace has no package `{PACKAGE}` yet: there is nothing to measure")
        })?;
    let chosen = choose(&known, &options.names)?;
    let mut command = Invocation::cargo("bench --package").arg(PACKAGE);
    for name in chosen {
        command = command.args(["--bench", name]);
    }
    if !options.criterion.is_empty() {
        command = command.arg("--").args(&options.criterion);
    }
    say!("{command}");
    let ended = command.show(LIMIT)?;
    Ok(if ended.is_success() {
        ExitCode::SUCCESS
    } else {
        eprintln!("xtask: {ended}");
        ExitCode::FAILURE
    })
}

/// The benchmarks that `names` asks for: all that are known when it asks for none.
fn choose<'a>(known: &[&'a str], names: &[String]) -> Result<Vec<&'a str>, String> {
    if names.is_empty() {
        return Ok(known.to_vec());
    }
    names
        .iter()
        .map(|name| {
            let found = known.iter().copied().find(|known| known == name);
            found.ok_or_else(|| format!("no benchmark `{name}`; there are: {}", known.join(", ")))
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_name_means_all_and_a_wrong_one_is_answered_with_the_right_ones() {
        let known = ["balance", "router"];
        assert_eq!(choose(&known, &[]), Ok(vec!["balance", "router"]));
        assert_eq!(choose(&known, &["router".to_owned()]), Ok(vec!["router"]));
        let error = choose(&known, &["rooter".to_owned()]).unwrap_err();
        assert_eq!(error, "no benchmark `rooter`; there are: balance, router");
    }
}
