use std::path::PathBuf;

use clap::builder::NonEmptyStringValueParser;
use clap::{Args, Parser, Subcommand, ValueEnum};

/// A local Service Fabric cluster: the REST gateway that sfctl and the SDKs speak to, and the hosting life
/// cycle behind it
#[derive(Debug, Parser)]
#[command(name = "servicefabric-emulator", version, propagate_version = true)]
pub(super) struct Cli {
    #[command(subcommand)]
    pub(super) command: Command,
}

#[derive(Debug, Subcommand)]
pub(super) enum Command {
    /// Run a cluster with its gateway until Ctrl-C
    Serve(Box<Serve>),
    /// Run a hosting script in virtual time and print what happens
    Timeline(TimelineArgs),
}

#[derive(Debug, Args)]
pub(super) struct Serve {
    /// Address of the gateway; port 0 picks a free one
    #[arg(long, value_name = "ADDRESS:PORT", default_value = "127.0.0.1:19080", value_parser = address)]
    pub(super) listen: String,
    /// Topology of the cluster, as TOML or (with the extension `.json`) as JSON. Default: a small example
    #[arg(long, value_name = "FILE")]
    pub(super) topology: Option<PathBuf>,
    /// Application package to deploy: the directory with ApplicationManifest.xml. May be given several times;
    /// without `--topology` the cluster has nothing else
    #[arg(long, value_name = "DIR")]
    pub(super) package: Vec<PathBuf>,
    /// Put a small HTTP server behind every replica that responds with the replica's identity
    #[arg(long)]
    pub(super) services: bool,
    /// Run virtual time this many times faster
    #[arg(long, value_name = "TIMES", default_value_t = 1.0, value_parser = speed)]
    pub(super) speed: f64,
    /// Stop virtual time; `POST /emulator/time/advance` moves it
    #[arg(long, conflicts_with = "speed")]
    pub(super) manual_time: bool,
    /// Maximum number of items of a page
    #[arg(long, value_name = "ITEMS", value_parser = clap::value_parser!(u32).range(1..))]
    pub(super) page_size: Option<u32>,
    /// Interval at which health reports that are not immediate reach the store; 0: at once. Default: as in
    /// the topology
    #[arg(long, value_name = "SECONDS")]
    pub(super) report_interval: Option<u64>,
    /// Gateway version to imitate where versions differ
    #[arg(long, value_enum, default_value_t)]
    pub(super) dialect: DialectArg,
    #[command(flatten)]
    pub(super) security: SecurityArgs,
}

#[derive(Debug, Args)]
#[command(next_help_heading = "Security")]
pub(super) struct SecurityArgs {
    /// Serve TLS with this certificate (PEM, followed by its chain)
    #[arg(long, value_name = "FILE", requires = "tls_key")]
    pub(super) tls_cert: Option<PathBuf>,
    /// Key of the certificate (PEM)
    #[arg(long, value_name = "FILE", requires = "tls_cert")]
    pub(super) tls_key: Option<PathBuf>,
    /// Require client certificates; those of these authorities (PEM) have full access
    #[arg(long, value_name = "FILE", requires = "tls_cert")]
    pub(super) client_ca: Option<PathBuf>,
    /// Require client certificates; those of these authorities (PEM) have read access
    #[arg(long, value_name = "FILE", requires = "tls_cert")]
    pub(super) reader_ca: Option<PathBuf>,
    /// Require a bearer token; this one has full access
    #[arg(long, value_name = "TOKEN", value_parser = NonEmptyStringValueParser::new())]
    pub(super) bearer: Vec<String>,
    /// Require a bearer token; this one has read access
    #[arg(long, value_name = "TOKEN", value_parser = NonEmptyStringValueParser::new())]
    pub(super) reader_bearer: Vec<String>,
}

#[derive(Clone, Copy, Debug, Default, ValueEnum)]
pub(super) enum DialectArg {
    /// Format that clients of version 8.2 read
    #[default]
    Current,
    /// Format that gateways of version 6.4 write
    Runtime64,
}

#[derive(Debug, Args)]
pub(super) struct TimelineArgs {
    /// The script
    #[arg(value_name = "FILE")]
    pub(super) file: PathBuf,
    /// Output format
    #[arg(long, value_enum, default_value_t)]
    pub(super) format: Format,
}

#[derive(Clone, Copy, Debug, Default, ValueEnum)]
pub(super) enum Format {
    /// Text for people: one line for each event
    #[default]
    Text,
    /// JSON for programs
    Json,
}

/// The maximum speed of virtual time.
const MAX_SPEED: f64 = 10_000.0;

fn speed(text: &str) -> Result<f64, String> {
    text.parse()
        .ok()
        .filter(|speed| *speed > 0.0 && *speed <= MAX_SPEED)
        .ok_or_else(|| format!("must be a number above 0, and at most {MAX_SPEED}"))
}

/// Parses a host (name or address) and a port. A host that does not exist is noticed when the gateway starts.
fn address(text: &str) -> Result<String, String> {
    let (host, port) = text
        .rsplit_once(':')
        .ok_or("a port is missing; write for example 127.0.0.1:0")?;
    if host.is_empty() {
        return Err("an address is missing; write for example 127.0.0.1:0".to_owned());
    }
    port.parse::<u16>()
        .map_err(|_| format!("`{port}` is no port: 0 to 65535 are"))?;
    Ok(text.to_owned())
}
