//! What is said in the end: on the terminal, as JSON, and in the documentation.

mod chart;
mod json;
mod page;
mod table;
#[cfg(test)]
mod tests;
mod verdict;

use crate::contest::Outcome;
use crate::ratio::Spread;

pub(crate) use self::chart::chart;
pub(crate) use self::json::json;
pub(crate) use self::page::{page, replace_results};
pub(crate) use self::table::table;

/// What was measured, and on what.
pub(crate) struct Report {
    pub(crate) date: String,
    pub(crate) machine: String,
    /// The load average of the last minute before and after: what else the machine did is in the first.
    pub(crate) load_average: (f64, f64),
    pub(crate) cores: String,
    pub(crate) rounds: usize,
    pub(crate) window_millis: u128,
    /// Names of proxies with their versions.
    pub(crate) versions: Vec<(&'static str, String)>,
    pub(crate) outcomes: Vec<Outcome>,
    /// Names of cases, with the reason, and of proxies.
    pub(crate) left_out: Vec<(String, String)>,
}

/// Three significant digits, or what is there.
fn short(value: f64) -> String {
    match value.abs() {
        large if large >= 99.95 => format!("{value:.0}"),
        middle if middle >= 9.995 => format!("{value:.1}"),
        _ => format!("{value:.2}"),
    }
}

/// Microseconds, or milliseconds where it is many of them, with the range over all rounds.
fn duration(micros: Spread) -> String {
    let (unit, per_unit) = match micros.median < 9_999.5 {
        true => ("µs", 1.0),
        false => ("ms", 1e3),
    };
    let [median, least, most] =
        [micros.median, micros.least, micros.most].map(|value| short(value / per_unit));
    match micros.rounds {
        ..=1 => format!("{median} {unit}"),
        _ => format!("{median} {unit} [{least}..{most}]"),
    }
}
