//! The command line.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::PathBuf;

use clap::{Args, Parser, Subcommand, ValueEnum};

const DEMO_LISTEN: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), 8080);
const DEMO_ADMIN: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), 9901);
const DEMO_CLUSTER: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), 19080);

/// A reverse proxy that discovers its services.
///
/// Without a command it runs a demo: an emulated Service Fabric cluster in this process, whose services are discovered,
/// routed and balanced, and change over a minute so that you see discovery work.
#[derive(Debug, Parser)]
#[command(name = "proxy-gateway", version, propagate_version = true)]
pub(crate) struct Cli {
    #[command(subcommand)]
    pub(crate) command: Option<Command>,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Run the demo (what happens without a command)
    Demo(Demo),
    /// Run the proxy from configuration files, which are reloaded when they change
    Run(Files),
    /// Say everything that is wrong with the configuration; exit with 1 if it cannot be used
    Check(Check),
    /// Say what would happen to a request, without sending anything
    Explain(Explain),
    /// Ask the configured providers once and print what they found
    Discover(Discover),
    /// Print the JSON Schema of the configuration
    Schema,
}

#[derive(Debug, Args)]
pub(crate) struct Demo {
    /// Where the proxy listens
    #[arg(long, value_name = "IP:PORT", default_value_t = DEMO_LISTEN)]
    pub(crate) listen: SocketAddr,
    /// Where the admin page listens
    #[arg(long, value_name = "IP:PORT", default_value_t = DEMO_ADMIN)]
    pub(crate) admin: SocketAddr,
    /// Where the emulated cluster's REST gateway listens
    #[arg(long, value_name = "IP:PORT", default_value_t = DEMO_CLUSTER)]
    pub(crate) cluster: SocketAddr,
    /// Play the story once and stop, instead of again and again
    #[arg(long)]
    pub(crate) once: bool,
    /// Play the story so many times faster
    #[arg(long, value_name = "TIMES", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=100))]
    pub(crate) speed: u32,
}

impl Default for Demo {
    fn default() -> Self {
        Self {
            listen: DEMO_LISTEN,
            admin: DEMO_ADMIN,
            cluster: DEMO_CLUSTER,
            once: false,
            speed: 1,
        }
    }
}

#[derive(Debug, Args)]
pub(crate) struct Files {
    /// Configuration file; of several, later ones win. Comments are allowed
    #[arg(long = "config", value_name = "FILE", required = true)]
    pub(crate) config: Vec<PathBuf>,
}

#[derive(Debug, Args)]
pub(crate) struct Check {
    #[command(flatten)]
    pub(crate) files: Files,
    /// How to print the problems
    #[arg(long, value_enum, default_value_t)]
    pub(crate) format: Format,
}

#[derive(Debug, Args)]
pub(crate) struct Explain {
    #[command(flatten)]
    pub(crate) files: Files,
    /// Method of the request
    #[arg(long, default_value = "GET")]
    pub(crate) method: String,
    /// URL of the request, with scheme and host, as in `http://example.com/path?query`
    #[arg(long)]
    pub(crate) url: String,
    /// Header of the request; can be given several times
    #[arg(long = "header", value_name = "NAME: VALUE")]
    pub(crate) headers: Vec<String>,
    /// Address of the client
    #[arg(long, value_name = "IP:PORT")]
    pub(crate) remote_addr: Option<SocketAddr>,
    /// How to print the decision
    #[arg(long, value_enum, default_value_t)]
    pub(crate) format: Format,
}

#[derive(Debug, Args)]
pub(crate) struct Discover {
    #[command(flatten)]
    pub(crate) files: Files,
    /// How to print what was found
    #[arg(long, value_enum, default_value_t)]
    pub(crate) format: Format,
}

/// How results are printed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum Format {
    /// For people.
    #[default]
    Text,
    /// For programs.
    Json,
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;

    #[test]
    fn the_command_line_is_consistent() {
        Cli::command().debug_assert();
    }

    #[test]
    fn no_command_is_allowed() {
        let cli = Cli::try_parse_from(["proxy-gateway"]).unwrap();
        assert!(cli.command.is_none());
    }
}
