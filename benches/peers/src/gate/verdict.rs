//! The report of a measurement, and its result.

use std::fmt::Write as _;

use super::baseline::{Baseline, Change, Count, Counts, change};
use super::profile::Profile;

/// Maximum number of functions that are listed when instructions have grown, and their minimum
/// growth.
const NAMED: usize = 15;
const WORTH_NAMING: f64 = 10.0;

/// The current measurement.
pub(super) struct Measured<'a> {
    pub(super) counts: &'a Counts,
    pub(super) profile: &'a Profile,
    pub(super) toolchain: &'a str,
    /// The tolerated growth.
    pub(super) tolerance: f64,
}

/// Returns the table with its conclusions, and true if nothing has grown too much.
pub(super) fn verdict(
    now: &Measured<'_>,
    before: Option<&Baseline>,
    budget: &Counts,
) -> (String, bool) {
    let mut text = format!(
        "{:<18} {:>10} {:>10} {:>8}   budget\n",
        "per request", "now", "before", "change"
    );
    let then = before.map(|before| before.counts).unwrap_or_default();
    let mut changes = Vec::new();
    for count in Count::ALL {
        let _ = writeln!(text, "{}", row(count, now.counts, &then, budget));
        let change = change(count, now.tolerance, now.counts.of(count), then.of(count));
        changes.push((count, change));
    }
    let Some(before) = before else {
        text.push_str(
            "\nNOT COMPARED: nothing was measured on this kind of machine before; --renew writes it down\n",
        );
        return (text, true);
    };
    if before.toolchain != now.toolchain {
        let _ = writeln!(
            text,
            "\nthe baseline is of another compiler, which makes a difference of its own: {} then, {} now",
            before.toolchain, now.toolchain
        );
    }
    let all = |wanted| {
        let titles: Vec<_> = changes
            .iter()
            .filter(|(_, change)| *change == wanted)
            .map(|(count, _)| count.title())
            .collect();
        (!titles.is_empty()).then(|| titles.join(", "))
    };
    let percent = now.tolerance * 100.0;
    if let Some(titles) = all(Change::Shrunk) {
        let _ = writeln!(
            text,
            "\nLESS THAN BEFORE by more than {percent:.0} %: {titles}. `--renew` holds what was won."
        );
    }
    let Some(titles) = all(Change::Grown) else {
        return (text, true);
    };
    let _ = writeln!(
        text,
        "\nMORE THAN BEFORE by more than {percent:.0} %: {titles}. If that is meant, `cargo xtask bench gate --renew` writes \
         the new baseline, and the commit says what is had for it."
    );
    text.push_str(&culprits(now.profile, before));
    // Another compiler's code is no regression.
    (text, before.toolchain != now.toolchain)
}

fn row(count: Count, now: &Counts, then: &Counts, budget: &Counts) -> String {
    let cell = |value: Option<f64>| value.map_or_else(|| "–".to_owned(), |value| count.text(value));
    let (value, before) = (now.of(count), then.of(count));
    let change = match (value, before) {
        (Some(value), Some(before)) if before > 0.0 => {
            format!("{:+.1} %", (value / before - 1.0) * 100.0)
        }
        _ => String::new(),
    };
    let budget = budget.of(count).map_or_else(String::new, |budget| {
        let met = match value {
            None => "not measured",
            // A hundredth is the precision of the measurement.
            Some(value) if value <= budget + 0.01 => "met",
            Some(_) => "not met yet",
        };
        format!("≤ {}: {met}", count.text(budget))
    });
    let line = format!(
        "{:<18} {:>10} {:>10} {change:>8}   {budget}",
        count.title(),
        cell(value),
        cell(before)
    );
    line.trim_end().to_owned()
}

/// The functions that grew and shrank most: code that moves between functions is no growth.
fn culprits(profile: &Profile, before: &Baseline) -> String {
    let growth = profile.growth(&before.functions);
    let mut text = String::from("\ninstructions by function that differ most:\n");
    let grown = growth
        .iter()
        .take(NAMED)
        .filter(|(_, change)| *change >= WORTH_NAMING);
    let shrunk = growth
        .iter()
        .rev()
        .take(NAMED / 3)
        .filter(|(_, change)| *change <= -WORTH_NAMING);
    for (name, change) in grown.chain(shrunk) {
        let now = profile.costs.get(name).copied().unwrap_or_default();
        let _ = writeln!(text, "{change:>+10.0}  to {now:>7.0}  {name}");
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn counts(instructions: f64, blocks: f64) -> Counts {
        Counts {
            instructions: Some(instructions),
            heap_blocks: Some(blocks),
            system_calls: None,
            calls_in_vain: None,
        }
    }

    fn profile(costs: &[(&str, f64)]) -> Profile {
        let costs = costs.iter().map(|(name, cost)| ((*name).to_owned(), *cost));
        Profile {
            costs: costs.collect(),
            blocks: 0.0,
        }
    }

    fn judge(
        instructions: f64,
        blocks: f64,
        costs: &[(&str, f64)],
        with_baseline: bool,
    ) -> (String, bool) {
        let then = profile(&[("parse", 6_000.0), ("route", 4_000.0)]);
        let before = Baseline::new(
            "m".to_owned(),
            "rustc 1".to_owned(),
            counts(10_000.0, 0.0),
            &then,
        );
        let now = Measured {
            counts: &counts(instructions, blocks),
            profile: &profile(costs),
            toolchain: "rustc 1",
            tolerance: 0.03,
        };
        verdict(
            &now,
            with_baseline.then_some(&before),
            &counts(7_500.0, 0.0),
        )
    }

    #[test]
    fn as_before_is_open_though_the_budget_is_not_met() {
        let (text, open) = judge(10_100.0, 0.0, &[], true);
        assert!(open, "{text}");
        assert!(
            text.contains(
                "user instructions       10100      10000   +1.0 %   ≤ 7500: not met yet\n"
            ),
            "{text}"
        );
        assert!(text.contains("≤ 0.00: met\n"), "{text}");
    }

    #[test]
    fn growth_is_shut_and_says_where_it_is() {
        let now = [
            ("parse", 6_050.0),
            ("route", 3_000.0),
            ("allocate", 1_950.0),
        ];
        let (text, open) = judge(11_000.0, 2.0, &now, true);
        assert!(!open);
        assert!(
            text.contains("MORE THAN BEFORE by more than 3 %: user instructions, heap blocks."),
            "{text}"
        );
        let at = |line: &str| {
            text.find(line)
                .unwrap_or_else(|| panic!("`{line}` is not in {text}"))
        };
        assert!(at("     +1950  to    1950  allocate") < at("       +50  to    6050  parse"));
        assert!(text.contains("     -1000  to    3000  route"), "{text}");
    }

    #[test]
    fn less_is_open_and_asks_for_a_new_baseline() {
        let (text, open) = judge(7_000.0, 0.0, &[], true);
        assert!(
            open && text.contains("LESS THAN BEFORE by more than 3 %: user instructions."),
            "{text}"
        );
        assert!(text.contains("≤ 7500: met"), "{text}");
    }

    #[test]
    fn without_a_baseline_nothing_is_held_and_it_says_so() {
        let (text, open) = judge(7_000.0, 0.0, &[], false);
        assert!(
            open && text
                .contains("NOT COMPARED: nothing was measured on this kind of machine before"),
            "{text}"
        );
    }
}
