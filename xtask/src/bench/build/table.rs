//! The table of build costs, for a terminal and for CONTRIBUTING.md.

use std::fmt::Write as _;

use super::compiler::Seconds;
use crate::page::Marks;

/// The marks of the table in the page.
const MARKS: Marks = Marks {
    begin: "<!-- build costs: written by `cargo xtask bench build --renew` -->",
    end: "<!-- end of build costs -->",
};

/// Crates that cost less than this many seconds share one row.
const LEAST_SECONDS: f64 = 3.0;

/// The rows of the table: each expensive crate, and the sum of the others.
fn rows(seconds: &Seconds) -> Vec<(String, f64)> {
    let (dear, cheap): (Vec<_>, Vec<_>) = seconds
        .by_cost()
        .into_iter()
        .partition(|(_, seconds)| *seconds >= LEAST_SECONDS);
    let mut rows: Vec<_> = dear
        .into_iter()
        .map(|(name, seconds)| (format!("`{name}`"), seconds))
        .collect();
    let rest = cheap.iter().map(|(_, seconds)| seconds).sum();
    rows.push((format!("{} others", cheap.len()), rest));
    rows.push((
        format!("all {} crates", seconds.packages()),
        seconds.total(),
    ));
    rows
}

/// The table for a terminal.
pub(super) fn text(seconds: &Seconds) -> String {
    let mut text = String::new();
    for (name, seconds) in rows(seconds) {
        let _ = writeln!(text, "{seconds:>8.1} s  {name}");
    }
    text
}

/// Returns the page with a new table.
///
/// # Errors
///
/// Fails if the page lacks a mark.
pub(super) fn renew(page: &str, seconds: &Seconds) -> Result<String, String> {
    let mut table = String::from("| crate | seconds |\n|---|--:|\n");
    for (name, seconds) in rows(seconds) {
        let _ = writeln!(table, "| {name} | {seconds:.1} |");
    }
    MARKS.replace(page, &table)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cheap_crates_share_a_row() {
        let seconds = Seconds::of(&[("a", 1.0), ("b", 1.25), ("c", 40.0)]);
        assert_eq!(
            text(&seconds),
            "    40.0 s  `c`\n     2.2 s  2 others\n    42.2 s  all 3 crates\n"
        );
    }

    #[test]
    fn the_page_gets_the_rows() {
        let seconds = Seconds::of(&[("c", 40.0)]);
        let Marks { begin, end } = MARKS;
        let page = format!("head\n{begin}\nold\n{end}\ntail\n");
        let renewed = renew(&page, &seconds).expect("both marks are there");
        assert!(
            renewed.contains("| `c` | 40.0 |") && !renewed.contains("old"),
            "{renewed}"
        );
    }
}
