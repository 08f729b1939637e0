//! Section `Telemetry`: logs and other telemetry.

use std::path::PathBuf;

use proxy_model::Problem;
use proxy_model::json::{Node, ObjectReader};
use proxy_runtime::server::{AccessLogTemplate, InvalidTemplate};

/// The settings of logs and other telemetry.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Telemetry {
    /// The directives of tracing's filter. `None`: the environment variable `RUST_LOG`, or `info`.
    pub(crate) log_filter: Option<String>,
    pub(crate) log_format: LogFormat,
    /// The access log. `None`: none.
    pub(crate) access_log: Option<AccessLog>,
    /// The limit of requests a second of which the admin page shows the latest. `None`: none are kept.
    pub(crate) live_requests: Option<u32>,
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
    pub(crate) format: LineFormat,
    /// The part of requests without failure that is logged, from 0 to 1.
    pub(crate) sample: f64,
    /// The file. `None`: standard output.
    pub(crate) file: Option<PathBuf>,
}

/// The format of a line of the access log.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum LineFormat {
    Known(LogFormat),
    Template(AccessLogTemplate),
}

/// The default limit of requests a second that are kept for the admin page.
const PER_SECOND: u32 = 10;

const FORMATS: [(&str, LogFormat); 2] = [("text", LogFormat::Text), ("json", LogFormat::Json)];

pub(super) fn read(telemetry: &mut ObjectReader<'_, '_>) -> Telemetry {
    Telemetry {
        log_filter: telemetry.text("LogFilter"),
        log_format: telemetry.choice("LogFormat", &FORMATS).unwrap_or_default(),
        access_log: telemetry
            .object("AccessLog", |log| {
                let enabled = log.boolean("Enabled").unwrap_or(true);
                let access_log = AccessLog {
                    format: read_line_format(log),
                    sample: read_sample(log),
                    file: log.text("File").map(PathBuf::from),
                };
                enabled.then_some(access_log)
            })
            .flatten(),
        live_requests: telemetry
            .object("LiveRequests", |live| {
                let enabled = live.boolean("Enabled").unwrap_or(true);
                let per_second = live.integer("PerSecond", 1..=1000).unwrap_or(PER_SECOND);
                enabled.then_some(per_second)
            })
            .flatten(),
    }
}

/// Reads `Template`, or else `Format`.
fn read_line_format(log: &mut ObjectReader<'_, '_>) -> LineFormat {
    let known = log.choice("Format", &FORMATS);
    let pointer = log.pointer_to("Template");
    let is_blank = matches!(log.peek("Template"), Some(Node::Text(text)) if text.trim().is_empty());
    let problem = match log.text("Template").map(|text| text.parse()) {
        Some(Ok(_)) if is_blank => {
            let message = "the template is empty, and so would be each line";
            Problem::error(pointer, "invalid_template", message)
                .with_suggestion("write `{remote} \"{method} {path}\" {status}`, or leave it out")
        }
        None => return LineFormat::Known(known.unwrap_or_default()),
        Some(Ok(template)) if known.is_none() => return LineFormat::Template(template),
        Some(Ok(_)) => {
            let message = "`Template` and `Format` exclude each other";
            Problem::error(pointer, "two_formats", message).with_suggestion("leave one of them out")
        }
        Some(Err(invalid)) => {
            let invalid: InvalidTemplate = invalid;
            Problem::error(pointer, "invalid_template", invalid.to_string())
                .with_suggestion("write `{remote} \"{method} {path}\" {status}`")
        }
    };
    log.problems().push(problem);
    LineFormat::Known(known.unwrap_or_default())
}

/// Reads `Sample`.
fn read_sample(log: &mut ObjectReader<'_, '_>) -> f64 {
    let Some(part) = log.number("Sample") else {
        return 1.0;
    };
    if (0.0..=1.0).contains(&part) {
        return part;
    }
    let pointer = log.pointer_to("Sample");
    let problem = Problem::error(
        pointer,
        "out_of_range",
        format!("`{part}` is not between 0 and 1"),
    )
    .with_suggestion("`0.1` logs every tenth request, and all failures");
    log.problems().push(problem);
    1.0
}

#[cfg(test)]
mod tests {
    use proxy_model::Problems;
    use proxy_model::json::parse_document;

    use super::*;

    fn access_log(text: &str) -> (Option<AccessLog>, Vec<String>) {
        let document = parse_document(text).unwrap();
        let mut problems = Problems::new();
        let telemetry = ObjectReader::read(&document, "/Telemetry", &mut problems, read);
        let problems = problems.iter().map(|problem| {
            let key = problem.pointer.rsplit('/').next().unwrap_or_default();
            format!("{key}: {}", problem.code)
        });
        (
            telemetry.and_then(|read| read.access_log),
            problems.collect(),
        )
    }

    #[test]
    fn a_template_is_a_format_of_its_own() {
        let (log, problems) =
            access_log(r#"{"AccessLog": {"Template": "{status}", "Sample": 0.5}}"#);
        let log = log.unwrap();
        assert_eq!(
            log.format,
            LineFormat::Template("{status}".parse().unwrap())
        );
        assert!((log.sample - 0.5).abs() < f64::EPSILON);
        assert!(problems.is_empty(), "{problems:?}");
    }

    #[test]
    fn what_cannot_be_honoured_is_an_error() {
        for (text, expected) in [
            (r#"{"Template": "{stats}"}"#, "Template: invalid_template"),
            (r#"{"Template": " "}"#, "Template: invalid_template"),
            (
                r#"{"Template": "{status}", "Format": "json"}"#,
                "Template: two_formats",
            ),
            (r#"{"Sample": 1.5}"#, "Sample: out_of_range"),
            (r#"{"Sample": -1}"#, "Sample: out_of_range"),
        ] {
            let (_, problems) = access_log(&format!(r#"{{"AccessLog": {text}}}"#));
            assert_eq!(problems, [expected], "{text}");
        }
    }
}
