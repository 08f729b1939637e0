//! The command line. `cargo xtask bench peers` passes its arguments on to `run`.

use std::ffi::OsString;
use std::net::SocketAddr;
use std::num::NonZeroUsize;
use std::path::PathBuf;

use clap::{Args, Parser, Subcommand, builder::PossibleValuesParser};

use crate::case::{CASES, Case};
use crate::gate;
use crate::proxies::Kind;

/// Compares this gateway and other proxies side by side, in interleaved rounds.
#[derive(Debug, Parser)]
#[command(name = "cargo xtask bench peers", bin_name = "bench-peers")]
pub(crate) struct Cli {
    #[command(subcommand)]
    pub(crate) command: Command,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// The gateway and other proxies side by side, in interleaved rounds
    #[command(override_usage = "cargo xtask bench peers [OPTIONS]")]
    Run(Run),
    /// Print which programs a run with these options needs, one to a line: what kind it is, and its name
    Needs(Options),
    /// Count what a small request costs the gateway, and compare with the baseline
    #[command(override_usage = "cargo xtask bench gate [OPTIONS]")]
    Gate(gate::Options),
    /// Become another program, which ends when the one that started it is gone
    #[command(hide = true)]
    Guard {
        /// Let it end by SIGINT instead of SIGTERM
        #[arg(long)]
        interrupt: bool,
        /// The program and its arguments
        #[arg(required = true, last = true)]
        command: Vec<OsString>,
    },
    /// Copy bytes between PORT and the origins: the floor
    Relay {
        /// Let the kernel pass them on through pipes
        #[arg(long)]
        splice: bool,
        /// Port of loopback
        port: u16,
        /// Addresses of origins
        #[arg(required = true)]
        origins: Vec<SocketAddr>,
    },
}

#[derive(Debug, Args)]
pub(crate) struct Run {
    #[command(flatten)]
    pub(crate) options: Options,
    #[command(flatten)]
    pub(crate) places: Places,
}

#[derive(Debug, Args)]
pub(crate) struct Options {
    /// The first case alone, in few and short rounds: about half a minute
    #[arg(long)]
    pub(crate) quick: bool,
    /// Rounds of each case
    #[arg(long, value_name = "N")]
    pub(crate) rounds: Option<NonZeroUsize>,
    /// Cases, by name; several with commas
    #[arg(long, value_name = "CASE", value_delimiter = ',', value_parser = PossibleValuesParser::new(case_names()))]
    pub(crate) only: Vec<String>,
    /// Proxies, by name; several with commas. The gateway takes part in any case
    #[arg(long, value_name = "PEER", value_delimiter = ',', value_parser = PossibleValuesParser::new(Kind::ALL.map(Kind::name)))]
    pub(crate) peers: Vec<String>,
    /// Count system calls as well, with strace: of the cases that are named, else of those with a budget of calls
    #[arg(long)]
    pub(crate) syscalls: bool,
    /// Measure two workers even where they have to share cores with the load
    #[arg(long)]
    pub(crate) crowded: bool,
    /// Write the results into benches/COMPARISON.md and its chart
    #[arg(long)]
    pub(crate) write_docs: bool,
}

fn case_names() -> impl Iterator<Item = &'static str> {
    CASES.iter().map(|case| case.name)
}

/// Paths, set by xtask.
#[derive(Debug, Args)]
pub(crate) struct Places {
    /// The release build of the gateway
    #[arg(long, value_name = "FILE", hide = true)]
    pub(crate) gateway: PathBuf,
    /// The gateway, built with cargo's own defaults
    #[arg(long, value_name = "FILE", hide = true)]
    pub(crate) gateway_plain: PathBuf,
    /// The directory of `cargo xtask peers`
    #[arg(long, value_name = "DIRECTORY", hide = true)]
    pub(crate) peers_directory: PathBuf,
    /// The build directory of the packages below `benches/competitors`
    #[arg(long, value_name = "DIRECTORY", hide = true)]
    pub(crate) competitors: PathBuf,
    /// The directory for results and output of the proxies
    #[arg(long, value_name = "DIRECTORY", hide = true)]
    pub(crate) output: PathBuf,
    /// The workspace, for its documentation
    #[arg(long, value_name = "DIRECTORY", hide = true)]
    pub(crate) root: PathBuf,
}

impl Options {
    /// The participating proxies, in the order of the table.
    pub(crate) fn kinds(&self) -> Vec<Kind> {
        let measured = |kind: Kind| {
            let mut cases = CASES.iter().filter(|case| self.has_case(case.name));
            cases.any(|case| case.has(kind))
        };
        let chosen = |kind: &Kind| {
            let named = self.peers.iter().any(|name| name == kind.name());
            *kind == Kind::Gateway || named || (self.peers.is_empty() && measured(*kind))
        };
        Kind::ALL.into_iter().filter(chosen).collect()
    }

    /// Returns true if system calls of a case should be counted.
    pub(crate) fn counts_calls(&self, case: &Case) -> bool {
        self.syscalls && (case.counts_calls || !self.only.is_empty())
    }

    /// Returns true if a case should be measured.
    pub(crate) fn has_case(&self, name: &str) -> bool {
        if self.only.is_empty() {
            return !self.quick || name == CASES[0].name;
        }
        self.only.iter().any(|only| only == name)
    }
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;

    fn options(arguments: &[&str]) -> Options {
        let cli = Cli::try_parse_from(["bench-peers", "needs"].iter().chain(arguments)).unwrap();
        let Command::Needs(options) = cli.command else {
            unreachable!("it was asked for")
        };
        options
    }

    #[test]
    fn the_command_line_is_consistent() {
        Cli::command().debug_assert();
    }

    #[test]
    fn quick_is_the_first_case_unless_others_are_named() {
        let measured = |arguments: &[&str]| {
            let options = options(arguments);
            case_names()
                .filter(|name| options.has_case(name))
                .collect::<Vec<_>>()
        };
        assert_eq!(measured(&[]).len(), CASES.len());
        assert_eq!(measured(&["--quick"]), ["get-128"]);
        assert_eq!(measured(&["--quick", "--only", "tls,h2c"]), ["h2c", "tls"]);
    }

    #[test]
    fn the_gateway_takes_part_in_any_case() {
        assert_eq!(options(&[]).kinds(), Kind::ALL);
        let quick = options(&["--quick"]).kinds();
        assert!(
            !quick.iter().any(|kind| kind.is_variant()),
            "none of them has to be built for the first case: {quick:?}"
        );
        assert_eq!(
            options(&["--peers", "nginx,relay"]).kinds(),
            [Kind::Relay, Kind::Gateway, Kind::Nginx]
        );
    }

    #[test]
    fn a_wrong_name_is_rejected() {
        assert!(Cli::try_parse_from(["bench-peers", "needs", "--only", "get-129"]).is_err());
        assert!(Cli::try_parse_from(["bench-peers", "needs", "--peers", "apache"]).is_err());
    }
}
