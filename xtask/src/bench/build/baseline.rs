//! The checked-in cost of the build, in units of a few crates whose source does not change here.

use std::collections::BTreeMap;
use std::fmt;
use std::fmt::Write as _;
use std::str::FromStr;

use serde::Deserialize;

use super::timings::Timings;

/// Crates that every build here needs, of different kinds: macros, generics, plain code.
const REFERENCE: [&str; 5] = ["hyper", "regex-automata", "rustix", "syn", "tokio"];

/// The growth at which the check fails.
const GROWTH: f64 = 1.10;

/// Crates below this share of the reference are not listed.
const LEAST: f64 = 0.02;

/// The number of crates named when a build costs too much.
const NAMED: usize = 5;

/// Costs relative to the sum of [`REFERENCE`].
#[derive(Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Baseline {
    total: f64,
    crates: BTreeMap<String, f64>,
}

impl Baseline {
    /// The costs of a measured build.
    ///
    /// # Errors
    ///
    /// A reference crate is not part of the build.
    pub(super) fn of(timings: &Timings) -> Result<Self, String> {
        let mut reference = 0.0;
        for name in REFERENCE {
            reference += timings.seconds(name).ok_or_else(|| {
                format!("the build has no crate `{name}`: choose another reference")
            })?;
        }
        let crates = timings
            .by_cost()
            .into_iter()
            .map(|(name, seconds)| (name.to_owned(), rounded(seconds / reference)))
            .filter(|(_, share)| *share >= LEAST)
            .collect();
        Ok(Self {
            total: rounded(timings.total() / reference),
            crates,
        })
    }

    /// Compares a measured build with this one: a note, or the reason why it costs too much.
    pub(super) fn judge(&self, measured: &Self) -> Result<String, String> {
        let growth = measured.total / self.total;
        let percent = (growth - 1.0) * 100.0;
        let all = format!("all crates cost {percent:+.1} % of the baseline");
        if growth <= GROWTH {
            return Ok(all);
        }
        let mut grown: Vec<_> = measured
            .crates
            .iter()
            .map(|(name, share)| (name, share - self.crates.get(name).unwrap_or(&0.0)))
            .collect();
        grown.sort_by(|a, b| b.1.total_cmp(&a.1));
        let mut why = format!("the build costs {percent:.1} % more than its baseline. Most grew:");
        for (name, more) in grown.into_iter().take(NAMED) {
            let _ = write!(why, " {name} {:+.1} %,", more / self.total * 100.0);
        }
        let _ = write!(
            why,
            " of the sum. If that is meant: cargo xtask bench build --renew"
        );
        Err(why)
    }
}

impl fmt::Display for Baseline {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(
            f,
            "# The cost of a cold release build, in units of the sum of: {}.\n\
             # `cargo xtask bench build` compares with this and fails when the total grows by a tenth;\n\
             # `cargo xtask bench build --renew` writes it.\n\n\
             total = {:?}\n\n[crates]",
            REFERENCE.join(", "),
            self.total
        )?;
        for (name, share) in &self.crates {
            writeln!(f, "{name} = {share:?}")?;
        }
        Ok(())
    }
}

impl FromStr for Baseline {
    type Err = toml::de::Error;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        toml::from_str(text)
    }
}

/// Three decimals: more would be noise in a file that people compare.
fn rounded(number: f64) -> f64 {
    (number * 1000.0).round() / 1000.0
}

#[cfg(test)]
mod tests {
    use super::*;

    fn built(ours: f64) -> Baseline {
        let reference = REFERENCE.map(|name| (name, 2.0));
        let all: Vec<_> = reference.into_iter().chain([("ours", ours)]).collect();
        Baseline::of(&Timings::of(&all)).expect("every reference crate is there")
    }

    #[test]
    fn a_slower_machine_changes_nothing() {
        let slower = REFERENCE.map(|name| (name, 6.0));
        let slower: Vec<_> = slower.into_iter().chain([("ours", 30.0)]).collect();
        let slower = Baseline::of(&Timings::of(&slower)).expect("every reference crate is there");
        assert_eq!(slower, built(10.0));
    }

    #[test]
    fn growth_by_more_than_a_tenth_fails_and_names_the_crate() {
        let before = built(10.0);
        assert!(before.judge(&built(11.9)).is_ok());
        assert!(before.judge(&built(5.0)).is_ok());
        let why = before
            .judge(&built(12.5))
            .expect_err("it has grown by 12.5 %");
        assert!(why.contains("12.5 % more"), "{why}");
        assert!(why.contains("Most grew: ours +12.5 %"), "{why}");
    }

    #[test]
    fn a_missing_reference_is_an_error() {
        let error =
            Baseline::of(&Timings::of(&[("ours", 1.0)])).expect_err("nothing to compare with");
        assert!(error.contains("`hyper`"), "{error}");
    }

    #[test]
    fn the_file_is_read_as_it_is_written() {
        let baseline = built(10.0);
        assert_eq!(baseline.to_string().parse::<Baseline>(), Ok(baseline));
    }
}
