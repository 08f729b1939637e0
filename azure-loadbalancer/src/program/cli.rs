use std::path::PathBuf;

use clap::{Args, Parser, Subcommand, ValueEnum};

/// Azure load balancers for a set of services: planned, shown, and only then written
#[derive(Debug, Parser)]
#[command(name = "azure-loadbalancer", version, propagate_version = true)]
pub(super) struct Cli {
    #[command(subcommand)]
    pub(super) command: Command,
}

#[derive(Debug, Subcommand)]
pub(super) enum Command {
    /// Show what would be written, and why; nothing is written
    Plan(Plan),
    /// Write it
    Apply(Apply),
    /// Show what belongs to no service any more; nothing is written
    Orphans(Orphans),
    /// Run an Azure in memory until Ctrl-C
    Emulator(Emulator),
    /// Print the JSON Schema of the configuration
    Schema,
}

#[derive(Debug, Args)]
pub(super) struct Plan {
    #[command(flatten)]
    pub(super) inputs: Inputs,
    #[command(flatten)]
    pub(super) target: Target,
    /// How to print
    #[arg(long, value_enum, default_value_t)]
    pub(super) format: Format,
}

#[derive(Debug, Args)]
pub(super) struct Apply {
    #[command(flatten)]
    pub(super) inputs: Inputs,
    #[command(flatten)]
    pub(super) target: Target,
    /// Go on, and follow the files when they change, until Ctrl-C
    #[arg(long)]
    pub(super) watch: bool,
}

#[derive(Debug, Args)]
pub(super) struct Orphans {
    #[command(flatten)]
    pub(super) inputs: Inputs,
    #[command(flatten)]
    pub(super) target: Target,
    /// How to print
    #[arg(long, value_enum, default_value_t)]
    pub(super) format: Format,
}

#[derive(Debug, Args)]
pub(super) struct Inputs {
    /// What is the same for all services, as JSON; an `azure.json` of Kubernetes will do
    #[arg(long, value_name = "FILE")]
    pub(super) config: PathBuf,
    /// The services, as `kubectl get services -A -o json` writes them
    #[arg(long, value_name = "FILE")]
    pub(super) services: PathBuf,
    /// The nodes, as `kubectl get nodes -o json` writes them; without it there are none
    #[arg(long, value_name = "FILE")]
    pub(super) nodes: Option<PathBuf>,
}

#[derive(Debug, Args)]
#[command(next_help_heading = "Which Azure")]
pub(super) struct Target {
    /// The resource manager
    #[arg(
        long,
        value_name = "URL",
        default_value = "https://management.azure.com",
        conflicts_with = "state"
    )]
    pub(super) endpoint: String,
    /// Resources in a file in place of a resource manager, as `GET /emulator/resources` of an emulator writes them; `apply` writes
    /// what becomes of them there
    #[arg(long, value_name = "FILE")]
    pub(super) state: Option<PathBuf>,
    /// Where tokens come from
    #[arg(long, value_enum, default_value_t, conflicts_with = "state")]
    pub(super) credentials: Credentials,
    /// Trust the authorities in this file (PEM) in place of the system's
    #[arg(long, value_name = "FILE", conflicts_with = "state")]
    pub(super) ca_file: Option<PathBuf>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(super) enum Credentials {
    /// The environment if it has any, else the machine's identity; nowhere for plain HTTP to this machine
    #[default]
    Auto,
    /// `AZURE_TENANT_ID`, `AZURE_CLIENT_ID`, and `AZURE_CLIENT_SECRET` or `AZURE_FEDERATED_TOKEN_FILE`
    Environment,
    /// The identity of the machine; `AZURE_CLIENT_ID` chooses among several
    ManagedIdentity,
    /// The token in `AZURE_ACCESS_TOKEN`
    Token,
    /// Nowhere
    None,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(super) enum Format {
    /// For people
    #[default]
    Text,
    /// For programs
    Json,
}

#[derive(Debug, Args)]
pub(super) struct Emulator {
    /// Where to listen; port 0 for any that is free
    #[arg(long, value_name = "ADDRESS:PORT", default_value = "127.0.0.1:8087")]
    pub(super) listen: String,
    /// Begin with these resources, as `GET /emulator/resources` writes them
    #[arg(long, value_name = "FILE")]
    pub(super) state: Option<PathBuf>,
    /// How many further requests come in before a write is over
    #[arg(long, value_name = "REQUESTS", default_value_t = 1)]
    pub(super) operation_requests: u64,
    /// The seconds that writers are told to wait before they ask
    #[arg(long, value_name = "SECONDS", default_value_t = 0)]
    pub(super) retry_after: u32,
    /// How many resources a page has
    #[arg(long, value_name = "RESOURCES", default_value_t = 1_000, value_parser = page_size)]
    pub(super) page_size: usize,
    /// Write ids of references in a case by chance, from this seed
    #[arg(long, value_name = "SEED")]
    pub(super) id_casing_seed: Option<u64>,
    /// Refuse requests without this bearer token
    #[arg(long, value_name = "TOKEN")]
    pub(super) token: Option<String>,
}

fn page_size(text: &str) -> Result<usize, String> {
    let size = text.parse().ok().filter(|size| *size > 0);
    size.ok_or_else(|| "a number above 0 is wanted".to_owned())
}
