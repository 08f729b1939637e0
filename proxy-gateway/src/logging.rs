//! Logs go to standard error, so that standard output is for machines.

use std::io::{self, IsTerminal};

use tracing_subscriber::EnvFilter;
use tracing_subscriber::fmt;
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::util::SubscriberInitExt;

use crate::commands::Failure;
use crate::settings::{LogFormat, Telemetry};

/// What is logged unless the configuration or `RUST_LOG` says otherwise.
const DEFAULT_FILTER: &str = "info";

/// Starts logging for the life of the process.
pub(crate) fn start(telemetry: &Telemetry) -> Result<(), Failure> {
    let chosen = telemetry
        .log_filter
        .clone()
        .or_else(|| std::env::var("RUST_LOG").ok())
        .unwrap_or_else(|| DEFAULT_FILTER.to_owned());
    let filter = EnvFilter::try_new(&chosen).map_err(|error| {
        Failure::new(format!(
            "`{chosen}` is not a log filter: {error}; write for example `info,proxy::health=debug`"
        ))
    })?;
    let registry = tracing_subscriber::registry().with(filter);
    let colours = io::stderr().is_terminal();
    match telemetry.log_format {
        LogFormat::Text => registry
            .with(fmt::layer().with_writer(io::stderr).with_ansi(colours))
            .init(),
        LogFormat::Json => registry
            .with(fmt::layer().json().with_writer(io::stderr))
            .init(),
    }
    Ok(())
}
