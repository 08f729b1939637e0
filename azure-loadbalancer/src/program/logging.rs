use std::io::{self, IsTerminal};

use tracing_subscriber::EnvFilter;

use super::failure::Failure;

/// What is logged unless `RUST_LOG` says otherwise.
const DEFAULT: &str = "warn";

/// Starts logging to standard error, for the life of the process.
pub(super) fn start() -> Result<(), Failure> {
    let chosen = std::env::var("RUST_LOG").unwrap_or_else(|_| DEFAULT.to_owned());
    let filter = EnvFilter::try_new(&chosen).map_err(|error| {
        Failure::new(format!(
            "RUST_LOG is `{chosen}`, which is no filter: {error}; write for example `info,azure_loadbalancer=debug`"
        ))
    })?;
    tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_writer(io::stderr)
        .with_ansi(io::stderr().is_terminal())
        .init();
    Ok(())
}
