//! Section `Telemetry`: logs and other telemetry.

use std::path::PathBuf;

use proxy_model::json::ObjectReader;

/// The settings of logs and other telemetry.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Telemetry {
    /// The directives of tracing's filter. `None`: the environment variable `RUST_LOG`, or `info`.
    pub(crate) log_filter: Option<String>,
    pub(crate) log_format: LogFormat,
    /// The access log. `None`: none.
    pub(crate) access_log: Option<AccessLog>,
}

/// The format of log lines.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum LogFormat {
    #[default]
    Text,
    Json,
}

/// The access log: one line per request.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct AccessLog {
    pub(crate) format: LogFormat,
    /// The file. `None`: standard output.
    pub(crate) file: Option<PathBuf>,
}

const FORMATS: [(&str, LogFormat); 2] = [("text", LogFormat::Text), ("json", LogFormat::Json)];

pub(super) fn read(telemetry: &mut ObjectReader<'_, '_>) -> Telemetry {
    Telemetry {
        log_filter: telemetry.text("LogFilter"),
        log_format: telemetry.choice("LogFormat", &FORMATS).unwrap_or_default(),
        access_log: telemetry
            .object("AccessLog", |log| {
                let enabled = log.boolean("Enabled").unwrap_or(true);
                let access_log = AccessLog {
                    format: log.choice("Format", &FORMATS).unwrap_or_default(),
                    file: log.text("File").map(PathBuf::from),
                };
                enabled.then_some(access_log)
            })
            .flatten(),
    }
}
