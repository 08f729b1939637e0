//! The export of traces and metrics, by the variables of OpenTelemetry.

use std::env;
use std::time::Duration;

use proxy_model::{Problem, Problems};
use proxy_runtime::Proxy;
use proxy_runtime::admin::Admin;
use proxy_telemetry::{InvalidSettings, MetricsExport, MetricsSettings, Settings, Telemetry};

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

fn metrics_settings() -> Result<Option<MetricsSettings>, InvalidSettings> {
    let variable = |name: &str| env::var(name).ok();
    MetricsSettings::from_variables("proxy-gateway", env!("CARGO_PKG_VERSION"), &variable)
}

/// Returns the problems of the variables.
pub(crate) fn unusable() -> Problems {
    let problem = |error: InvalidSettings| Problem::error("", INVALID_VARIABLE, error.to_string());
    let errors = [settings().err(), metrics_settings().err()];
    errors.into_iter().flatten().map(problem).collect()
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

/// Starts the export of metrics, if one is asked for: those of the admin page if there is one, else those of the proxy
/// alone.
pub(crate) fn start_metrics(
    proxy: &Proxy,
    admin: Option<&Admin>,
) -> Result<Option<MetricsExport>, Failure> {
    let settings = metrics_settings().map_err(|error| Failure::from_error(&error))?;
    let Some(settings) = settings else {
        return Ok(None);
    };
    let (proxy, admin) = (proxy.clone(), admin.cloned());
    let read = move || match &admin {
        Some(admin) => admin.metrics(),
        None => proxy.collector().to_text(),
    };
    let export = MetricsExport::start(&settings, read);
    let export = export.map_err(|error| Failure::from_error(&error))?;
    tracing::info!(target: "proxy::telemetry", endpoint = settings.endpoint(), "metrics are exported");
    Ok(Some(export))
}

/// Sends the last values of metrics.
pub(crate) async fn end_metrics(export: MetricsExport) {
    if !export.shutdown(LAST_EXPORT).await {
        tracing::warn!(target: "proxy::telemetry", "the last metrics could not be sent in time");
    }
}

/// Sends the last spans.
pub(crate) async fn end(telemetry: Telemetry) {
    if !telemetry.shutdown(LAST_EXPORT).await {
        tracing::warn!(target: "proxy::telemetry", "the last spans of traces could not be sent in time");
    }
}
