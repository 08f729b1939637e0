use std::path::PathBuf;

use clap::{ArgGroup, Args, Parser, Subcommand, ValueEnum};

/// Azure load balancers for a set of services: planned, shown, and only then written
#[derive(Debug, Parser)]
#[command(name = "azure-loadbalancer", version, propagate_version = true)]
pub(super) struct Cli {
    /// Format of the log on standard error
    #[arg(long, global = true, value_enum, default_value_t)]
    pub(super) log_format: Format,
    #[command(subcommand)]
    pub(super) command: Command,
}

#[derive(Debug, Subcommand)]
pub(super) enum Command {
    /// Show the writes that would be made, and their reasons; nothing is written
    Plan(PlanArgs),
    /// Write the plan
    Apply(Apply),
    /// Show resources that belong to no service; nothing is written
    Orphans(Orphans),
    /// Run an in-memory Azure until Ctrl-C
    Emulator(EmulatorArgs),
    /// Print the JSON Schema of the configuration, or of what a command prints with `--format json`
    Schema(Schema),
}

#[derive(Debug, Args)]
pub(super) struct Schema {
    /// The documents that the schema describes
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
pub(super) struct PlanArgs {
    #[command(flatten)]
    pub(super) inputs: Inputs,
    #[command(flatten)]
    pub(super) members: MembersArgs,
    #[command(flatten)]
    pub(super) target: TargetArgs,
    /// Output format
    #[arg(long, value_enum, default_value_t)]
    pub(super) format: Format,
    /// Exit with code 3 if there is something to write, and with 0 only if there is nothing
    #[arg(long)]
    pub(super) detailed_exitcode: bool,
    /// Show the migration of load balancers from SKU Basic to Standard, stage by stage: its writes, its
    /// interruptions, and how to roll back
    #[arg(long)]
    pub(super) migrate_to_standard: bool,
}

#[derive(Debug, Args)]
#[command(group(ArgGroup::new("writing").args(["watch", "migrate_to_standard"])))]
pub(super) struct Apply {
    #[command(flatten)]
    pub(super) inputs: Inputs,
    #[command(flatten)]
    pub(super) members: MembersArgs,
    #[command(flatten)]
    pub(super) target: TargetArgs,
    /// Continue and follow changes of the files or the API server until Ctrl-C; the addresses of services are
    /// written into their status then
    #[arg(long)]
    pub(super) watch: bool,
    /// Seconds after which everything is checked again although nothing has changed
    #[arg(long, value_name = "SECONDS", default_value_t = 600, requires = "watch", value_parser = clap::value_parser!(u64).range(10..))]
    pub(super) resync: u64,
    /// Address to serve `/healthz`, `/readyz` and `/metrics` on
    #[arg(long, value_name = "ADDRESS:PORT", requires = "watch")]
    pub(super) status_listen: Option<String>,
    /// Put Kubernetes' finalizer on services, so that a deleted one is gone only after its resources
    #[arg(long, requires = "watch", requires = "kubernetes")]
    pub(super) finalizer: bool,
    /// Write only while this program holds a lease of the API server; otherwise stand by
    #[arg(long, requires = "writing", requires = "kubernetes")]
    pub(super) leader_elect: bool,
    /// Name of the lease. Default: `azure-loadbalancer` in the namespace of the pod, or in `default`
    #[arg(long, value_name = "NAMESPACE/NAME", requires = "leader_elect")]
    pub(super) lease: Option<String>,
    /// Seconds without a renewal after which another program may take the lease
    #[arg(long, value_name = "SECONDS", default_value_t = 15, requires = "leader_elect", value_parser = clap::value_parser!(u64).range(3..=3_600))]
    pub(super) lease_duration: u64,
    /// Write only while this program has the lock of this file; otherwise stand by. For several programs on
    /// one machine without Kubernetes
    #[arg(
        long,
        value_name = "FILE",
        requires = "writing",
        conflicts_with = "leader_elect"
    )]
    pub(super) leader_lock: Option<PathBuf>,
    /// Carry out the next stage of the migration from Basic to Standard, and only that, if it is still the
    /// one that `plan --migrate-to-standard` has shown with this digest
    #[arg(long, value_name = "DIGEST", conflicts_with = "watch")]
    pub(super) migrate_to_standard: Option<String>,
    /// Output format; with --watch, JSON is one document per line, and each line of text begins with its time
    #[arg(long, value_enum, default_value_t)]
    pub(super) format: Format,
}

#[derive(Debug, Args)]
pub(super) struct Orphans {
    #[command(flatten)]
    pub(super) inputs: Inputs,
    #[command(flatten)]
    pub(super) target: TargetArgs,
    /// Output format
    #[arg(long, value_enum, default_value_t)]
    pub(super) format: Format,
}

#[derive(Debug, Args)]
pub(super) struct Inputs {
    /// Configuration that all services share, as JSON or YAML; an `azure.json` of Kubernetes works
    #[arg(long, value_name = "FILE")]
    pub(super) config: PathBuf,
    /// Services, as `kubectl get services -A -o json` or `-o yaml` writes them: all of them, since resources
    /// of missing ones count as orphans
    #[arg(long, value_name = "FILE", required_unless_present = "kubernetes")]
    pub(super) services: Option<PathBuf>,
    /// Services and nodes of a Kubernetes API server in place of files: `in-cluster` for that of the pod in
    /// which this runs, or an address such as that of `kubectl proxy`, http://127.0.0.1:8001
    #[arg(long, value_name = "WHERE", conflicts_with = "services")]
    pub(super) kubernetes: Option<String>,
}

#[derive(Debug, Args)]
pub(super) struct MembersArgs {
    /// Nodes, as `kubectl get nodes -o json` or `-o yaml` writes them: the members of the pools
    #[arg(
        long,
        value_name = "FILE",
        required_unless_present_any = ["kubernetes", "nodes_from"],
        conflicts_with = "kubernetes"
    )]
    pub(super) nodes: Option<PathBuf>,
    /// Nodes of a discovered cluster in place of a file: JSON or YAML with a section `SerfDiscovery`,
    /// `ConsulDiscovery` or `ServiceFabricDiscovery`, as in a gateway's configuration
    #[arg(long, value_name = "FILE", requires = "nodes_cluster", conflicts_with_all = ["kubernetes", "nodes"])]
    pub(super) nodes_from: Option<PathBuf>,
    /// Cluster whose destinations are the nodes: `service:proxy` of Serf, `proxy` of Consul,
    /// `fabric:/App/Proxy` of Service Fabric
    #[arg(long, value_name = "ID", requires = "nodes_from")]
    pub(super) nodes_cluster: Option<String>,
    /// Remove resources that belong to none of the services, including public addresses, which cannot be
    /// restored. By default they stay, unless the configuration says `"orphans": "remove"`
    #[arg(long)]
    pub(super) remove_orphans: bool,
    /// Delete public addresses that services have left, also those that may be known outside: with a DNS
    /// label, or published. By default those stay, unless the configuration says `"leftAddresses": "delete"`
    #[arg(long)]
    pub(super) delete_left_addresses: bool,
}

#[derive(Debug, Args)]
#[command(next_help_heading = "Which Azure")]
pub(super) struct TargetArgs {
    /// URL of the resource manager. Default: that of `cloud` in the configuration, or else
    /// https://management.azure.com
    #[arg(long, value_name = "URL", conflicts_with = "state")]
    pub(super) endpoint: Option<String>,
    /// Resource that tokens are requested for. Default: that of the resource manager if it is one of Azure's,
    /// else its address
    #[arg(long, value_name = "URL", conflicts_with = "state")]
    pub(super) resource: Option<String>,
    /// File with resources in place of a resource manager, as `GET /emulator/resources` of an emulator writes
    /// them; `apply` writes the result there
    #[arg(long, value_name = "FILE")]
    pub(super) state: Option<PathBuf>,
    /// Source of tokens
    #[arg(long, value_enum, default_value_t, conflicts_with = "state")]
    pub(super) credentials: Credentials,
    /// File (PEM) with certificate authorities to trust in place of the system's
    #[arg(long, value_name = "FILE", conflicts_with = "state")]
    pub(super) ca_file: Option<PathBuf>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(super) enum Credentials {
    /// The environment if it has any credentials, else the configuration, else the machine's identity; none
    /// for plain HTTP to this machine
    #[default]
    Auto,
    /// Environment variables: `AZURE_TENANT_ID`, `AZURE_CLIENT_ID`, and `AZURE_CLIENT_SECRET` or
    /// `AZURE_FEDERATED_TOKEN_FILE`
    Environment,
    /// Identity of the machine; `AZURE_CLIENT_ID` chooses among several
    ManagedIdentity,
    /// Identity in the configuration, with the keys of an `azure.json` of Kubernetes: `aadClientId` and
    /// `aadClientSecret`, or `useManagedIdentityExtension` and `userAssignedIdentityID`
    Config,
    /// Token in `AZURE_ACCESS_TOKEN`
    Token,
    /// No token
    None,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(super) enum Format {
    /// Text for people
    #[default]
    Text,
    /// JSON for programs
    Json,
}

#[derive(Debug, Args)]
pub(super) struct EmulatorArgs {
    /// Address to listen on; port 0 picks a free one
    #[arg(long, value_name = "ADDRESS:PORT", default_value = "127.0.0.1:8087")]
    pub(super) listen: String,
    /// File with the initial resources, as `GET /emulator/resources` writes them
    #[arg(long, value_name = "FILE")]
    pub(super) state: Option<PathBuf>,
    /// Number of further requests until a write completes
    #[arg(long, value_name = "REQUESTS", default_value_t = 1)]
    pub(super) operation_requests: u64,
    /// Seconds that clients should wait before they poll a write
    #[arg(long, value_name = "SECONDS", default_value_t = 0)]
    pub(super) retry_after: u32,
    /// Number of resources of a page
    #[arg(long, value_name = "RESOURCES", default_value_t = 1_000, value_parser = page_size)]
    pub(super) page_size: usize,
    /// Vary the letter case of ids in references at random, from this seed
    #[arg(long, value_name = "SEED")]
    pub(super) id_casing_seed: Option<u64>,
    /// Reject requests without this bearer token
    #[arg(long, value_name = "TOKEN")]
    pub(super) token: Option<String>,
}

fn page_size(text: &str) -> Result<usize, String> {
    let size = text.parse().ok().filter(|size| *size > 0);
    size.ok_or_else(|| "must be a number above 0".to_owned())
}
