use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, Parser, Subcommand, ValueEnum};
use xds_control_plane::snapshot::{ResourceType, Subscription};

/// A control plane for Envoy fleets: listeners, routes, clusters and endpoints over xDS v3 from a registry,
/// Consul and a file
#[derive(Debug, Parser)]
#[command(name = "xds-control-plane", version, propagate_version = true)]
pub(super) struct Cli {
    #[command(subcommand)]
    pub(super) command: Command,
}

#[derive(Debug, Subcommand)]
pub(super) enum Command {
    /// Serve until Ctrl-C
    Serve(Serve),
    /// Read all sources once and print what would be served, as JSON
    Render(Render),
    /// Check that a configuration and its files are valid
    Check(Check),
    /// Print the JSON Schema of the configuration
    Schema,
}

#[derive(Debug, Args)]
pub(super) struct Serve {
    /// The configuration, as YAML or JSON
    #[arg(long, value_name = "FILE")]
    pub(super) config: PathBuf,
}

#[derive(Debug, Args)]
pub(super) struct Render {
    /// The configuration, as YAML or JSON
    #[arg(long, value_name = "FILE")]
    pub(super) config: PathBuf,
    /// Type of the resources to print; all types if left out
    #[arg(long = "type", value_enum, value_name = "TYPE")]
    pub(super) kind: Option<ListedKind>,
    /// Subscription for which the resources are printed
    #[arg(long, value_enum, default_value_t)]
    pub(super) via: Via,
    /// Time limit for reading the sources
    #[arg(long, value_name = "SECONDS", default_value = "15", value_parser = seconds)]
    pub(super) timeout: Duration,
}

#[derive(Debug, Args)]
pub(super) struct Check {
    /// The configuration, as YAML or JSON
    #[arg(long, value_name = "FILE")]
    pub(super) config: PathBuf,
    /// Format of the output
    #[arg(long, value_enum, default_value_t)]
    pub(super) format: Format,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
pub(super) enum ListedKind {
    Lds,
    Rds,
    Cds,
    Eds,
}

impl From<ListedKind> for ResourceType {
    fn from(kind: ListedKind) -> Self {
        match kind {
            ListedKind::Lds => Self::Listener,
            ListedKind::Rds => Self::Route,
            ListedKind::Cds => Self::Cluster,
            ListedKind::Eds => Self::Endpoint,
        }
    }
}

#[derive(Clone, Copy, Debug, Default, ValueEnum)]
pub(super) enum Via {
    /// One aggregated stream
    #[default]
    Ads,
    /// A stream, or a call, for each type
    Grpc,
    /// Polls with JSON
    Rest,
}

impl From<Via> for Subscription {
    fn from(via: Via) -> Self {
        match via {
            Via::Ads => Self::Aggregated,
            Via::Grpc => Self::Separate,
            Via::Rest => Self::Rest,
        }
    }
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(super) enum Format {
    /// Text for people
    #[default]
    Text,
    /// JSON for programs
    Json,
}

fn seconds(text: &str) -> Result<Duration, String> {
    let seconds = text
        .parse()
        .ok()
        .filter(|seconds| (0.1..=3600.0).contains(seconds));
    seconds
        .map(Duration::from_secs_f64)
        .ok_or_else(|| "must be a number of seconds from 0.1 to 3600".to_owned())
}
