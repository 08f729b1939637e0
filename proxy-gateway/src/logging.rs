//! Logging to standard error, so that standard output is for machines.

use program_kit::{Failure, LogControl, Logging};
use proxy_model::Problem;

use crate::settings::{LogFormat, Telemetry};

/// Starts logging for the life of the process, as configured.
pub(crate) fn start(telemetry: &Telemetry) -> Result<LogControl, Failure> {
    configured(telemetry).start()
}

/// Checks the filter of logs, which [`start`] would reject.
pub(crate) fn filter(telemetry: &Telemetry) -> Result<(), Problem> {
    configured(telemetry).check().map_err(|failure| {
        let problem =
            |pointer: &str| Problem::error(pointer, "invalid_log_filter", failure.to_string());
        match telemetry.log_filter {
            Some(_) => problem("/Telemetry/LogFilter"),
            None => problem("").with_origin("variable RUST_LOG"),
        }
    })
}

fn configured(telemetry: &Telemetry) -> Logging {
    Logging::new("info", "info,proxy::health=debug")
        .with_filter(telemetry.log_filter.clone())
        .with_json(matches!(telemetry.log_format, LogFormat::Json))
}
