//! The table of build costs, for a terminal and for CONTRIBUTING.md.

use std::fmt::Write as _;

use super::compiler::Seconds;

/// The lines that enclose the table in the page.
const BEGIN: &str = "<!-- build costs: written by `cargo xtask bench build --renew` -->";
const END: &str = "<!-- end of build costs -->";

/// Crates that cost less than this many seconds share one row.
const LEAST_SECONDS: f64 = 3.0;

/// Rows of the table: each expensive crate, and the sum of the others.
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

/// The page with the table between its two marks replaced.
///
/// # Errors
///
/// The page lacks a mark.
pub(super) fn renew(page: &str, seconds: &Seconds) -> Result<String, String> {
    let missing = |mark| format!("the page lacks the line `{mark}`");
    let (before, rest) = page.split_once(BEGIN).ok_or_else(|| missing(BEGIN))?;
    let (_, after) = rest.split_once(END).ok_or_else(|| missing(END))?;
    let mut table = String::from("| crate | seconds |\n|---|--:|\n");
    for (name, seconds) in rows(seconds) {
        let _ = writeln!(table, "| {name} | {seconds:.1} |");
    }
    Ok(format!("{before}{BEGIN}\n\n{table}\n{END}{after}"))
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
    fn only_the_table_is_replaced() {
        let seconds = Seconds::of(&[("c", 40.0)]);
        let page = format!("head\n{BEGIN}\nold\n{END}\ntail\n");
        let renewed = renew(&page, &seconds).expect("both marks are there");
        assert!(
            renewed.starts_with(&format!("head\n{BEGIN}\n")),
            "{renewed}"
        );
        assert!(renewed.ends_with(&format!("{END}\ntail\n")), "{renewed}");
        assert!(
            renewed.contains("| `c` | 40.0 |") && !renewed.contains("old"),
            "{renewed}"
        );
        assert!(renew("no marks", &seconds).is_err());
    }
}
