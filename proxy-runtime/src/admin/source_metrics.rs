//! The state of the configuration sources as OpenMetrics text.

use std::collections::BTreeMap;
use std::fmt::Write;

use discovery_core::SourceState;
use discovery_core::merge::ProviderReport;
use proxy_model::{Problem, Severity};

/// A gauge: its name, its help text, and its value for one source. `None` if the source has no
/// value yet.
type SourceGauge = (
    &'static str,
    &'static str,
    fn(&ProviderReport) -> Option<f64>,
);

const GAUGES: [SourceGauge; 4] = [
    (
        "discovery_source_up",
        "1 while the source answers and its configuration is in use, else 0.",
        |report| {
            let up = report.status.state == SourceState::Live && report.rejected_since.is_none();
            Some(f64::from(u8::from(up)))
        },
    ),
    (
        "discovery_snapshot_age_seconds",
        "Time since the source last answered.",
        |report| Some(report.status.last_ok?.age().as_secs_f64()),
    ),
    (
        "discovery_consecutive_failures",
        "Failures since the source last answered.",
        |report| Some(f64::from(report.status.consecutive_failures)),
    ),
    (
        "discovery_quarantined_services",
        "Services that do not serve as the source describes them.",
        |report| {
            u32::try_from(report.status.quarantined.len())
                .ok()
                .map(f64::from)
        },
    ),
];

pub(super) fn write(reports: &[ProviderReport], text: &mut String) {
    for (name, help, value) in GAUGES {
        // Writing to a String cannot fail.
        let _ = writeln!(text, "# HELP {name} {help}\n# TYPE {name} gauge");
        for report in reports {
            if let Some(value) = value(report) {
                let _ = writeln!(
                    text,
                    "{name}{{source=\"{}\"}} {value}",
                    escaped(&report.name)
                );
            }
        }
    }
}

/// Writes the number of problems by severity for each of `sources`, and of problems without a
/// source: their `source` is empty.
///
/// Sources without problems are written as well, so that queries see a 0 instead of no series.
pub(super) fn write_problems<'a>(
    sources: impl IntoIterator<Item = &'a str>,
    problems: impl IntoIterator<Item = (Option<String>, Problem)>,
    text: &mut String,
) {
    const NAME: &str = "proxy_config_problems";
    let sources = sources.into_iter().chain([""]);
    let mut counts: BTreeMap<String, [usize; 2]> =
        sources.map(|name| (name.to_owned(), [0; 2])).collect();
    for (source, problem) in problems {
        let [errors, warnings] = counts.entry(source.unwrap_or_default()).or_default();
        match problem.severity {
            Severity::Error => *errors += 1,
            Severity::Warning => *warnings += 1,
        }
    }
    // Writing to a String cannot fail.
    let _ = writeln!(
        text,
        "# HELP {NAME} Problems of the configuration that are there now.\n# TYPE {NAME} gauge"
    );
    for (source, [errors, warnings]) in counts {
        for (severity, count) in [("error", errors), ("warning", warnings)] {
            let _ = writeln!(
                text,
                "{NAME}{{source=\"{}\",severity=\"{severity}\"}} {count}",
                escaped(&source)
            );
        }
    }
}

/// A label's value: OpenMetrics escapes these three.
fn escaped(value: &str) -> String {
    value
        .replace('\\', "\\\\")
        .replace('"', "\\\"")
        .replace('\n', "\\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn problems_are_counted_by_source_and_severity() {
        let of = |source: Option<&str>, problem: fn(String, &'static str, String) -> Problem| {
            let problem = problem(String::new(), "code", String::new());
            (source.map(str::to_owned), problem)
        };
        let problems = [
            of(Some("file"), Problem::warning),
            of(None, Problem::warning),
            of(Some("file"), Problem::error),
            of(Some("file"), Problem::warning),
            // One that is no source any more.
            of(Some("\"gone"), Problem::error),
        ];
        let mut text = String::new();
        write_problems(["fine", "file"], problems, &mut text);
        let samples: Vec<_> = text.lines().filter(|line| !line.starts_with('#')).collect();
        assert_eq!(
            samples,
            [
                r#"proxy_config_problems{source="",severity="error"} 0"#,
                r#"proxy_config_problems{source="",severity="warning"} 1"#,
                r#"proxy_config_problems{source="\"gone",severity="error"} 1"#,
                r#"proxy_config_problems{source="\"gone",severity="warning"} 0"#,
                r#"proxy_config_problems{source="file",severity="error"} 1"#,
                r#"proxy_config_problems{source="file",severity="warning"} 2"#,
                r#"proxy_config_problems{source="fine",severity="error"} 0"#,
                r#"proxy_config_problems{source="fine",severity="warning"} 0"#,
            ]
        );
    }

    #[test]
    fn names_of_sources_cannot_break_the_format() {
        assert_eq!(escaped("a\"b\\c\nd"), "a\\\"b\\\\c\\nd");
    }
}
