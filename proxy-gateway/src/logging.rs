//! Logging to standard error, so that standard output is for machines.

use program_kit::{Failure, LogControl, Logging};

use crate::settings::{LogFormat, Telemetry};

/// Starts logging for the life of the process, as configured.
pub(crate) fn start(telemetry: &Telemetry) -> Result<LogControl, Failure> {
    Logging::new("info", "info,proxy::health=debug")
        .with_filter(telemetry.log_filter.clone())
        .with_json(matches!(telemetry.log_format, LogFormat::Json))
        .start()
}
