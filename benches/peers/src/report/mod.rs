//! The final report: on the terminal, as JSON, and in the documentation.

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

/// Measurements, with the machine and versions behind them.
pub(crate) struct Report {
    pub(crate) date: String,
    pub(crate) machine: String,
    /// Load average of the last minute before and after. The first one shows other work of the
    /// machine.
    pub(crate) load_average: (f64, f64),
    pub(crate) cores: String,
    pub(crate) rounds: usize,
    pub(crate) window_millis: u128,
    /// Names and versions of proxies.
    pub(crate) versions: Vec<(&'static str, String)>,
    pub(crate) outcomes: Vec<Outcome>,
    /// Names of omitted cases and proxies, with the reason.
    pub(crate) left_out: Vec<(String, String)>,
}

/// Formats a value with three significant digits, or fewer if it has fewer.
fn short(value: f64) -> String {
    match value.abs() {
        large if large >= 99.95 => format!("{value:.0}"),
        middle if middle >= 9.995 => format!("{value:.1}"),
        _ => format!("{value:.2}"),
    }
}

/// Formats microseconds, or milliseconds for large values, with the range over all rounds.
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
