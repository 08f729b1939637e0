use std::path::PathBuf;

use clap::builder::NonEmptyStringValueParser;
use clap::{Args, Parser, Subcommand, ValueEnum};

/// A local Service Fabric cluster: the REST gateway that sfctl and the SDKs speak to, and the hosting life cycle behind it
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
    Timeline(Timeline),
}

#[derive(Debug, Args)]
pub(super) struct Serve {
    /// Where the gateway listens; port 0 for any that is free
    #[arg(long, value_name = "ADDRESS:PORT", default_value = "127.0.0.1:19080", value_parser = address)]
    pub(super) listen: String,
    /// The cluster, as TOML or (by the ending `.json`) as JSON; without it there is a small example
    #[arg(long, value_name = "FILE")]
    pub(super) topology: Option<PathBuf>,
    /// Deploy an application package: the directory with ApplicationManifest.xml. May be given several times; without
    /// `--topology` there is nothing else in the cluster
    #[arg(long, value_name = "DIR")]
    pub(super) package: Vec<PathBuf>,
    /// Put a small HTTP server behind every replica that says who answers
    #[arg(long)]
    pub(super) services: bool,
    /// Let time pass so many times as fast
    #[arg(long, value_name = "TIMES", default_value_t = 1.0, value_parser = speed)]
    pub(super) speed: f64,
    /// Let time stand still; `POST /emulator/time/advance` moves it
    #[arg(long, conflicts_with = "speed")]
    pub(super) manual_time: bool,
    /// Never list more than so many items at a time
    #[arg(long, value_name = "ITEMS", value_parser = clap::value_parser!(u32).range(1..))]
    pub(super) page_size: Option<u32>,
    /// How often health reports reach the store that are not immediate; 0: at once. Without it the topology decides
    #[arg(long, value_name = "SECONDS")]
    pub(super) report_interval: Option<u64>,
    /// Which gateway to speak like, where they differ
    #[arg(long, value_enum, default_value_t)]
    pub(super) dialect: Dialect,
    #[command(flatten)]
    pub(super) security: Security,
}

#[derive(Debug, Args)]
#[command(next_help_heading = "Security")]
pub(super) struct Security {
    /// Serve TLS with this certificate (PEM, its chain behind it)
    #[arg(long, value_name = "FILE", requires = "tls_key")]
    pub(super) tls_cert: Option<PathBuf>,
    /// The key of the certificate (PEM)
    #[arg(long, value_name = "FILE", requires = "tls_cert")]
    pub(super) tls_key: Option<PathBuf>,
    /// Want certificates of clients; those of these authorities (PEM) may do everything
    #[arg(long, value_name = "FILE", requires = "tls_cert")]
    pub(super) client_ca: Option<PathBuf>,
    /// Want certificates of clients; those of these authorities (PEM) may only query
    #[arg(long, value_name = "FILE", requires = "tls_cert")]
    pub(super) reader_ca: Option<PathBuf>,
    /// Want a bearer token; this one may do everything
    #[arg(long, value_name = "TOKEN", value_parser = NonEmptyStringValueParser::new())]
    pub(super) bearer: Vec<String>,
    /// Want a bearer token; this one may only query
    #[arg(long, value_name = "TOKEN", value_parser = NonEmptyStringValueParser::new())]
    pub(super) reader_bearer: Vec<String>,
}

#[derive(Clone, Copy, Debug, Default, ValueEnum)]
pub(super) enum Dialect {
    /// As the clients of version 8.2 read it
    #[default]
    Current,
    /// As gateways of version 6.4 write it
    Runtime64,
}

#[derive(Debug, Args)]
pub(super) struct Timeline {
    /// The script
    #[arg(value_name = "FILE")]
    pub(super) file: PathBuf,
    /// How to print
    #[arg(long, value_enum, default_value_t)]
    pub(super) format: Format,
}

#[derive(Clone, Copy, Debug, Default, ValueEnum)]
pub(super) enum Format {
    /// For people: one line for each event
    #[default]
    Text,
    /// For programs
    Json,
}

/// The fastest that time may go.
const MAX_SPEED: f64 = 10_000.0;

fn speed(text: &str) -> Result<f64, String> {
    text.parse()
        .ok()
        .filter(|speed| *speed > 0.0 && *speed <= MAX_SPEED)
        .ok_or_else(|| format!("a number above 0, and at most {MAX_SPEED}, is wanted"))
}

/// A host by its name or address, and a port. Whether the host is there is seen when the gateway starts.
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
