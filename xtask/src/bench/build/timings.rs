//! The report that `cargo build --timings` writes.

use std::collections::BTreeMap;

use serde::Deserialize;

/// Text before the list of units in the report's script.
const BEFORE: &str = "const UNIT_DATA = ";

/// Seconds by crate; all units of a crate (library, build script and its run, program) are added up.
#[derive(Debug, PartialEq)]
pub(super) struct Timings(BTreeMap<String, f64>);

#[derive(Deserialize)]
struct Unit {
    name: String,
    duration: f64,
}

impl Timings {
    /// Reads the HTML report.
    ///
    /// # Errors
    ///
    /// There is no list of units where cargo 1.95 writes it.
    pub(super) fn read(report: &str) -> Result<Self, String> {
        let (_, rest) = report
            .split_once(BEFORE)
            .ok_or_else(|| format!("cargo's report has no `{BEFORE}`: its format has changed"))?;
        // The list ends where its JSON ends; the script goes on behind it.
        let mut units = serde_json::Deserializer::from_str(rest).into_iter::<Vec<Unit>>();
        let units = units
            .next()
            .ok_or("cargo's report ends before its list of units")?
            .map_err(|error| format!("the list of units in cargo's report: {error}"))?;
        let mut seconds = BTreeMap::new();
        for unit in units {
            *seconds.entry(unit.name).or_default() += unit.duration;
        }
        Ok(Self(seconds))
    }

    /// The sum of all units, in seconds.
    pub(super) fn total(&self) -> f64 {
        self.0.values().sum()
    }

    /// The number of crates.
    pub(super) fn crates(&self) -> usize {
        self.0.len()
    }

    /// Seconds of one crate; `None` if it was not built.
    pub(super) fn seconds(&self, name: &str) -> Option<f64> {
        self.0.get(name).copied()
    }

    /// Crates and their seconds, the most expensive one first.
    pub(super) fn by_cost(&self) -> Vec<(&str, f64)> {
        let mut sorted: Vec<_> = self.0.iter().map(|(name, s)| (name.as_str(), *s)).collect();
        sorted.sort_by(|a, b| b.1.total_cmp(&a.1));
        sorted
    }
}

#[cfg(test)]
impl Timings {
    pub(super) fn of(seconds: &[(&str, f64)]) -> Self {
        let owned = |(name, seconds): &(&str, f64)| ((*name).to_owned(), *seconds);
        Self(seconds.iter().map(owned).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn units_of_one_crate_are_added_up() {
        let report = r#"<script>
const UNIT_DATA = [
  {"i": 0, "name": "syn", "version": "2.0.1", "duration": 1.5, "sections": null},
  {"i": 1, "name": "demo", "duration": 2.0},
  {"i": 2, "name": "demo", "duration": 0.25}
];
const CONCURRENCY_DATA = [{"t": 0}];
"#;
        let timings = Timings::read(report).expect("the report is complete");
        assert_eq!(timings, Timings::of(&[("demo", 2.25), ("syn", 1.5)]));
        assert_eq!(timings.by_cost(), [("demo", 2.25), ("syn", 1.5)]);
        assert_eq!(timings.crates(), 2);
    }

    #[test]
    fn another_format_is_an_error() {
        for report in [
            "<html>",
            "const UNIT_DATA = ",
            "const UNIT_DATA = [{\"i\": 0}];",
        ] {
            assert!(Timings::read(report).is_err(), "{report}");
        }
    }
}
