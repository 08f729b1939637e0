use std::path::PathBuf;

use clap::{ArgGroup, Args, Parser, Subcommand, ValueEnum};

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
    /// Print the JSON Schema of the configuration, or of what a command prints with `--format json`
    Schema(Schema),
}

#[derive(Debug, Args)]
pub(super) struct Schema {
    /// The documents that it describes
    #[arg(value_enum, default_value_t)]
    pub(super) of: Described,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(super) enum Described {
    /// The file of `--config`
    #[default]
    Config,
    /// The output of `plan`
    Plan,
    /// The output of `apply`
    Apply,
}

#[derive(Debug, Args)]
pub(super) struct Plan {
    #[command(flatten)]
    pub(super) inputs: Inputs,
    #[command(flatten)]
    pub(super) members: Members,
    #[command(flatten)]
    pub(super) target: Target,
    /// How to print
    #[arg(long, value_enum, default_value_t)]
    pub(super) format: Format,
    /// End with 3 if there is something to write, and with 0 only if there is nothing
    #[arg(long)]
    pub(super) detailed_exitcode: bool,
    /// Show the way from load balancers of sku Basic to Standard, stage by stage: what each writes, what it interrupts, and how to
    /// go back
    #[arg(long)]
    pub(super) migrate_to_standard: bool,
}

#[derive(Debug, Args)]
#[command(group(ArgGroup::new("writing").args(["watch", "migrate_to_standard"])))]
pub(super) struct Apply {
    #[command(flatten)]
    pub(super) inputs: Inputs,
    #[command(flatten)]
    pub(super) members: Members,
    #[command(flatten)]
    pub(super) target: Target,
    /// Go on, and follow the files or the API server when they change, until Ctrl-C; where services are reached is written into
    /// their status then
    #[arg(long)]
    pub(super) watch: bool,
    /// After how many seconds everything is looked at again although nothing has changed
    #[arg(long, value_name = "SECONDS", default_value_t = 600, requires = "watch", value_parser = clap::value_parser!(u64).range(10..))]
    pub(super) resync: u64,
    /// Answer at `/healthz`, `/readyz` and `/metrics` there
    #[arg(long, value_name = "ADDRESS:PORT", requires = "watch")]
    pub(super) status_listen: Option<String>,
    /// Put Kubernetes' finalizer on services, so that one that is deleted is gone only when nothing is left of it
    #[arg(long, requires = "watch", requires = "kubernetes")]
    pub(super) finalizer: bool,
    /// Write only while this program holds a lease of the API server, and stand by otherwise
    #[arg(long, requires = "writing", requires = "kubernetes")]
    pub(super) leader_elect: bool,
    /// The lease. Default: `azure-loadbalancer` in the namespace of the pod, or in `default`
    #[arg(long, value_name = "NAMESPACE/NAME", requires = "leader_elect")]
    pub(super) lease: Option<String>,
    /// After how many seconds without a renewal others take the lease
    #[arg(long, value_name = "SECONDS", default_value_t = 15, requires = "leader_elect", value_parser = clap::value_parser!(u64).range(3..=3_600))]
    pub(super) lease_duration: u64,
    /// Write only while this program has the lock of this file, and stand by otherwise: for several programs on one machine without
    /// Kubernetes
    #[arg(
        long,
        value_name = "FILE",
        requires = "writing",
        conflicts_with = "leader_elect"
    )]
    pub(super) leader_lock: Option<PathBuf>,
    /// Carry out the next stage of the way from Basic to Standard, and only that, if it is still the one that `plan
    /// --migrate-to-standard` has shown with this digest
    #[arg(long, value_name = "DIGEST", conflicts_with = "watch")]
    pub(super) migrate_to_standard: Option<String>,
    /// How to print; with --watch JSON is one document a line
    #[arg(long, value_enum, default_value_t)]
    pub(super) format: Format,
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
    /// What is the same for all services, as JSON or YAML; an `azure.json` of Kubernetes will do
    #[arg(long, value_name = "FILE")]
    pub(super) config: PathBuf,
    /// The services, as `kubectl get services -A -o json` or `-o yaml` writes them: all of them, since what belongs to others has
    /// no owner
    #[arg(long, value_name = "FILE", required_unless_present = "kubernetes")]
    pub(super) services: Option<PathBuf>,
    /// Services and nodes of a Kubernetes API server in place of files: `in-cluster` for the one of the pod that this runs in, or
    /// an address such as that of `kubectl proxy`, http://127.0.0.1:8001
    #[arg(long, value_name = "WHERE", conflicts_with = "services")]
    pub(super) kubernetes: Option<String>,
}

#[derive(Debug, Args)]
pub(super) struct Members {
    /// The nodes, as `kubectl get nodes -o json` or `-o yaml` writes them: the members of the pools
    #[arg(
        long,
        value_name = "FILE",
        required_unless_present_any = ["kubernetes", "nodes_from"],
        conflicts_with = "kubernetes"
    )]
    pub(super) nodes: Option<PathBuf>,
    /// Nodes of a cluster that is discovered, in place of a file: JSON or YAML with a section `SerfDiscovery`, `ConsulDiscovery` or
    /// `ServiceFabricDiscovery`, as a gateway has it
    #[arg(long, value_name = "FILE", requires = "nodes_cluster", conflicts_with_all = ["kubernetes", "nodes"])]
    pub(super) nodes_from: Option<PathBuf>,
    /// Which of its clusters: `service:proxy` of Serf, `proxy` of Consul, `fabric:/App/Proxy` of Service Fabric. Its destinations are
    /// the nodes
    #[arg(long, value_name = "ID", requires = "nodes_from")]
    pub(super) nodes_cluster: Option<String>,
    /// Remove what belongs to none of the services, public addresses among it, which do not come back. Without it, what is there
    /// stays, unless the configuration says `"orphans": "remove"`
    #[arg(long)]
    pub(super) remove_orphans: bool,
    /// Delete public addresses that services have left, also those that others may know: with a label in the DNS, or handed out.
    /// Without it those stay, unless the configuration says `"leftAddresses": "delete"`
    #[arg(long)]
    pub(super) delete_left_addresses: bool,
}

#[derive(Debug, Args)]
#[command(next_help_heading = "Which Azure")]
pub(super) struct Target {
    /// The resource manager. Default: that of `cloud` in the configuration, which is https://management.azure.com without it
    #[arg(long, value_name = "URL", conflicts_with = "state")]
    pub(super) endpoint: Option<String>,
    /// What tokens are asked for. Default: what the resource manager wants if it is one of Azure's, else its address
    #[arg(long, value_name = "URL", conflicts_with = "state")]
    pub(super) resource: Option<String>,
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
    /// The environment if it has any, else the configuration, else the machine's identity; nowhere for plain HTTP to this machine
    #[default]
    Auto,
    /// `AZURE_TENANT_ID`, `AZURE_CLIENT_ID`, and `AZURE_CLIENT_SECRET` or `AZURE_FEDERATED_TOKEN_FILE`
    Environment,
    /// The identity of the machine; `AZURE_CLIENT_ID` chooses among several
    ManagedIdentity,
    /// What the configuration has, with the keys of an `azure.json` of Kubernetes: `aadClientId` and `aadClientSecret`, or
    /// `useManagedIdentityExtension` and `userAssignedIdentityID`
    Config,
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
