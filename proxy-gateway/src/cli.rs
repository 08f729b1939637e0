//! The command line.

use std::net::SocketAddr;
use std::path::PathBuf;

use clap::{Args, Parser, Subcommand, ValueEnum};
use http::Uri;

/// A reverse proxy that discovers its services.
#[derive(Debug, Parser)]
#[command(
    name = "proxy-gateway",
    version,
    propagate_version = true,
    subcommand_required = true,
    arg_required_else_help = true,
    after_help = FIRST_STEPS
)]
pub(crate) struct Cli {
    #[command(subcommand)]
    pub(crate) command: Command,
}

/// The end of the help: a first configuration, and the next steps.
const FIRST_STEPS: &str = r#"First steps:
  Write appsettings.json:
    { "ReverseProxy": {
        "Routes":   { "web": { "ClusterId": "web", "Match": { "Path": "/{**rest}" } } },
        "Clusters": { "web": { "Destinations": { "1": { "Address": "http://127.0.0.1:5001/" } } } } } }
  proxy-gateway check --config appsettings.json    names everything that is wrong with it
  proxy-gateway run --config appsettings.json      serves it on http://127.0.0.1:8080"#;

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Run the proxy from configuration files, which are reloaded when they change
    Run(Files),
    /// Report all problems of the configuration; exit with 1 if it cannot be used
    Check(Check),
    /// Show the result for a request, without sending anything
    Explain(Explain),
    /// Poll the configured providers once and print the results
    Discover(Discover),
    /// Check if a running instance is ready; exit with 1 if it is not. For health checks of containers
    Health(Health),
    /// Print the JSON Schema of the configuration
    Schema,
}

#[derive(Debug, Args)]
pub(crate) struct Files {
    /// Configuration file. Of several, later ones take precedence. Comments are allowed
    #[arg(long = "config", value_name = "FILE", required = true)]
    pub(crate) config: Vec<PathBuf>,
    /// Environment, whose file `appsettings.NAME.json` lies on `appsettings.json` if it exists. Default: the
    /// variable DOTNET_ENVIRONMENT or ASPNETCORE_ENVIRONMENT, else Production
    #[arg(long, value_name = "NAME")]
    pub(crate) environment: Option<String>,
    /// Directory in which each file holds one value, such as `SerfDiscovery__AuthKey`. Takes precedence over
    /// files
    #[arg(long = "key-per-file", value_name = "DIRECTORY")]
    pub(crate) key_per_file: Vec<PathBuf>,
    /// Prefix of the environment variables that configure this program, such as
    /// `PROXY_` for `PROXY_ReverseProxy__Routes__r__Order`. Variables take precedence over files
    #[arg(long, value_name = "PREFIX", default_value = "")]
    pub(crate) env_prefix: String,
    /// Value that takes precedence over all others: `ReverseProxy:Routes:r:Order=1`. Can be given several times
    #[arg(long = "set", value_name = "KEY=VALUE")]
    pub(crate) set: Vec<String>,
}

#[derive(Debug, Args)]
pub(crate) struct Check {
    #[command(flatten)]
    pub(crate) files: Files,
    /// Print each value with its origin: file and line, or variable. Secrets are left out
    #[arg(long)]
    pub(crate) origins: bool,
    /// Fail also for what `run` lacks on this machine now: ports, files, certificates of listeners and destinations
    #[arg(long)]
    pub(crate) here: bool,
    /// Output format of the problems
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
    #[arg(long, required_unless_present_any = ["log_line", "all_shadowed"])]
    pub(crate) url: Option<String>,
    /// Line of the access log in JSON, in place of method, URL and client: a request of the past. Values of the query
    /// are not logged
    #[arg(long, value_name = "JSON", conflicts_with_all = ["url", "method", "remote_addr"])]
    pub(crate) log_line: Option<String>,
    /// List the routes that no request can reach, in place of an explanation; exit with 1 if there are any
    #[arg(long, conflicts_with_all = ["url", "log_line"])]
    pub(crate) all_shadowed: bool,
    /// Header of the request; can be given several times
    #[arg(long = "header", value_name = "NAME: VALUE")]
    pub(crate) headers: Vec<String>,
    /// Listener of the request; needed if listeners differ in `StrictPaths`, `TrustedSenders` or `TrustedProxies`
    #[arg(long, value_name = "NAME")]
    pub(crate) listener: Option<String>,
    /// Address of the client
    #[arg(long, value_name = "IP:PORT")]
    pub(crate) remote_addr: Option<SocketAddr>,
    /// Output format of the decision
    #[arg(long, value_enum, default_value_t)]
    pub(crate) format: Format,
}

#[derive(Debug, Args)]
pub(crate) struct Discover {
    #[command(flatten)]
    pub(crate) files: Files,
    /// Output format of the results
    #[arg(long, value_enum, default_value_t)]
    pub(crate) format: Format,
}

#[derive(Debug, Args)]
pub(crate) struct Health {
    /// URL of the admin API's readiness check, plain HTTP
    #[arg(long, default_value = "http://127.0.0.1:9901/readyz")]
    pub(crate) url: Uri,
    /// Seconds after which a missing response counts as not ready
    #[arg(long, value_name = "SECONDS", default_value_t = 3, value_parser = clap::value_parser!(u16).range(1..=3600))]
    pub(crate) timeout: u16,
}

/// The output format of results.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum Format {
    /// Text for people.
    #[default]
    Text,
    /// JSON for programs.
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

    /// The configuration in the help text must be valid.
    #[test]
    fn the_first_steps_can_be_followed() {
        let (_, example) = FIRST_STEPS.split_once("appsettings.json:").unwrap();
        let (example, _) = example.split_once("\n  proxy-gateway").unwrap();
        let document: serde_json::Value = serde_json::from_str(example).unwrap();
        let config = document["ReverseProxy"].to_string();
        let config = proxy_model::config::ProxyConfig::from_json(&config).unwrap();
        let options = proxy_model::CompileOptions::default();
        let (snapshot, warnings) = proxy_model::Snapshot::compile(config, &options).unwrap();
        assert_eq!((snapshot.routes().len(), warnings.len()), (1, 0));
    }
}
