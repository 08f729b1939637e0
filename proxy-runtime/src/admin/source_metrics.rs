//! How the sources of the configuration are doing, as OpenMetrics text.

use std::fmt::Write;

use discovery_core::SourceState;
use discovery_core::merge::ProviderReport;

/// A gauge: its name, what it tells, and its value for one source; `None`: it has none yet.
type Gauge = (
    &'static str,
    &'static str,
    fn(&ProviderReport) -> Option<f64>,
);

const GAUGES: [Gauge; 4] = [
    (
        "discovery_source_up",
        "Whether what the source last said is in use and it still answers.",
        |report| {
            let up = report.status.state == SourceState::Live && report.refused_since.is_none();
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
    fn names_of_sources_cannot_break_the_format() {
        assert_eq!(escaped("a\"b\\c\nd"), "a\\\"b\\\\c\\nd");
    }
}
