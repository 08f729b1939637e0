//! The export of traces, by the variables of OpenTelemetry.

use std::env;
use std::time::Duration;

use proxy_model::{Problem, Problems};
use proxy_telemetry::{InvalidSettings, Settings, Telemetry};

use program_kit::Failure;

/// The longest time that the end of the program waits for the last spans.
pub(crate) const LAST_EXPORT: Duration = Duration::from_secs(5);

/// The code of a variable whose value cannot be used.
pub(crate) const INVALID_VARIABLE: &str = "invalid_variable";

fn settings() -> Result<Option<Settings>, InvalidSettings> {
    // A value that is not Unicode counts as not set.
    let variable = |name: &str| env::var(name).ok();
    Settings::from_variables("proxy-gateway", env!("CARGO_PKG_VERSION"), &variable)
}

/// Returns the problems of the variables.
pub(crate) fn unusable() -> Problems {
    let problem = |message: String| Problem::error("", INVALID_VARIABLE, message);
    match settings() {
        Ok(_) => Problems::new(),
        Err(error) => Problems::from_iter([problem(error.to_string())]),
    }
}

/// Starts the export, if the variables request one.
pub(crate) fn start() -> Result<Option<Telemetry>, Failure> {
    let settings = settings().map_err(|error| Failure::from_error(&error))?;
    let Some(settings) = settings else {
        return Ok(None);
    };
    let telemetry = Telemetry::start(&settings).map_err(|error| Failure::from_error(&error))?;
    tracing::info!(target: "proxy::telemetry", endpoint = settings.endpoint(), "traces are exported");
    Ok(Some(telemetry))
}

/// Sends the last spans.
pub(crate) async fn end(telemetry: Telemetry) {
    if !telemetry.shutdown(LAST_EXPORT).await {
        tracing::warn!(target: "proxy::telemetry", "the last spans of traces could not be sent in time");
    }
}
