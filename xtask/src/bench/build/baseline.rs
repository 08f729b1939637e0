//! The checked-in cost of the build. Machines differ in speed: crates of the registry, which do not
//! change here, show by how much.

use std::collections::BTreeMap;
use std::fmt;
use std::fmt::Write as _;
use std::str::FromStr;

use serde::Deserialize;

use super::compiler::Seconds;

/// The growth at which the check fails.
const GROWTH: f64 = 1.10;

/// The most by which the middle half of the packages of the registry may differ in speed. Beyond it the machine's own
/// speed changed while it built, and says nothing about crates that were built at other times.
const SPREAD: f64 = 1.3;

/// Packages below this many seconds are not listed one by one: their figures would be noise.
const LEAST: f64 = 1.0;

/// The number of packages named when a build costs too much.
const NAMED: usize = 5;

/// Processor seconds by package.
#[derive(Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Baseline {
    /// Members of the workspace.
    ours: BTreeMap<String, f64>,
    /// Packages of the registry.
    others: BTreeMap<String, f64>,
}

impl Baseline {
    /// The costs of a measured build, with the names of the workspace's members.
    pub(super) fn of(seconds: &Seconds, members: &[&str]) -> Self {
        let (ours, others) = seconds
            .by_cost()
            .into_iter()
            .filter(|(_, seconds)| *seconds >= LEAST)
            .map(|(name, seconds)| (name.to_owned(), (seconds * 10.0).round() / 10.0))
            .partition(|(name, _)| members.contains(&name.as_str()));
        Self { ours, others }
    }

    /// Compares a measured build with this one. Returns a note, or the reason why it costs too
    /// much.
    ///
    /// New packages of the registry count as growth; earlier steps may have compiled a part of the
    /// others.
    pub(super) fn judge(&self, measured: &Self) -> Result<String, String> {
        let ratios = self.ratios(measured);
        let quarter = ratios.len() / 4;
        let speed = *ratios
            .get(ratios.len() / 2)
            .ok_or("no package of the registry was compiled: nothing to compare with")?;
        let (slow, fast) = (ratios[ratios.len() - 1 - quarter], ratios[quarter]);
        if quarter > 0 && slow / fast > SPREAD {
            return Ok(format!(
                "not judged: the machine's speed changed, {fast:.1} to {slow:.1} times the baseline's time for packages of the \
                 registry"
            ));
        }
        let expected = speed * self.ours.values().chain(self.others.values()).sum::<f64>();
        let ours = measured.ours.iter().map(|(name, seconds)| {
            let before = self.ours.get(name).unwrap_or(&0.0);
            (name, seconds - before * speed)
        });
        let is_new = |(name, _): &(&String, &f64)| !self.others.contains_key(*name);
        let new = measured.others.iter().filter(is_new);
        let mut grown: Vec<_> = ours.chain(new.map(|(name, more)| (name, *more))).collect();
        let growth = 1.0 + grown.iter().map(|(_, more)| more).sum::<f64>() / expected;
        let percent = (growth - 1.0) * 100.0;
        if growth <= GROWTH {
            return Ok(format!("all crates cost {percent:+.1} % of the baseline"));
        }
        grown.sort_by(|a, b| b.1.total_cmp(&a.1));
        let mut why = format!("the build costs {percent:.1} % more than its baseline. Most grew:");
        for (name, more) in grown.into_iter().take(NAMED) {
            let _ = write!(why, " {name} {:+.1} %,", more / expected * 100.0);
        }
        let _ = write!(
            why,
            " of the sum. If that is meant: cargo xtask bench build --renew"
        );
        Err(why)
    }

    /// The time that the measured build took per second of the baseline for each package of the registry, in ascending
    /// order. Some of them may be compiled in part; the median is the speed of the machine.
    fn ratios(&self, measured: &Self) -> Vec<f64> {
        let both = |(name, after): (&String, &f64)| Some(after / self.others.get(name)?);
        let mut ratios: Vec<f64> = measured.others.iter().filter_map(both).collect();
        ratios.sort_by(f64::total_cmp);
        ratios
    }
}

impl fmt::Display for Baseline {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(
            f,
            "# Processor seconds of the compiler in a cold build of all members with all features, tests not counted.\n\
             # `cargo xtask bench build` compares with this, by the speed of the packages that are not ours, and fails when the\n\
             # sum grows by a tenth; `cargo xtask bench build --renew` writes it."
        )?;
        for (table, costs) in [("ours", &self.ours), ("others", &self.others)] {
            writeln!(f, "\n[{table}]")?;
            for (name, seconds) in costs {
                writeln!(f, "{name} = {seconds:?}")?;
            }
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

#[cfg(test)]
mod tests {
    use super::*;

    fn built(seconds: &[(&str, f64)]) -> Baseline {
        Baseline::of(&Seconds::of(seconds), &["ours", "new"])
    }

    fn before() -> Baseline {
        built(&[("ours", 10.0), ("syn", 4.0), ("tokio", 6.0), ("tiny", 0.1)])
    }

    #[test]
    fn a_slower_machine_changes_nothing() {
        let slower = built(&[("ours", 30.0), ("syn", 12.0), ("tokio", 18.0)]);
        let note = before().judge(&slower).expect("nothing has grown");
        assert!(note.contains("+0.0 %"), "{note}");
    }

    #[test]
    fn growth_by_more_than_a_tenth_fails_and_names_the_package() {
        let with = |ours| built(&[("ours", ours), ("syn", 4.0), ("tokio", 6.0)]);
        assert!(before().judge(&with(11.9)).is_ok());
        assert!(before().judge(&with(5.0)).is_ok());
        let why = before().judge(&with(12.5)).unwrap_err();
        assert!(why.contains("12.5 % more"), "{why}");
        assert!(why.contains("Most grew: ours +12.5 %"), "{why}");
    }

    #[test]
    fn a_new_package_is_growth_whoever_made_it() {
        let rest = [("ours", 10.0), ("syn", 4.0), ("tokio", 6.0)];
        for name in ["new", "prost"] {
            let all: Vec<_> = rest.into_iter().chain([(name, 3.0)]).collect();
            let why = before().judge(&built(&all)).unwrap_err();
            assert!(why.contains(&format!("Most grew: {name} +15.0 %")), "{why}");
        }
    }

    #[test]
    fn a_package_that_was_there_already_or_in_part_makes_no_difference() {
        for rest in [vec![("tokio", 6.0)], vec![("syn", 1.0), ("tokio", 6.0)]] {
            let with = |ours| built(&[&[("ours", ours)][..], &rest].concat());
            assert!(before().judge(&with(11.9)).is_ok());
            let why = before().judge(&with(12.5)).unwrap_err();
            assert!(why.contains("12.5 % more"), "{why}");
        }
    }

    #[test]
    fn a_machine_whose_speed_changes_is_no_judge() {
        let others = ["a", "b", "c", "d"];
        let with = |ours: f64, speeds: [f64; 4]| {
            let others = others.into_iter().zip(speeds.map(|speed| speed * 4.0));
            let all: Vec<_> = others.chain([("ours", ours)]).collect();
            built(&all)
        };
        let before = with(10.0, [1.0; 4]);
        let why = before.judge(&with(20.0, [1.0, 1.0, 1.1, 1.2])).unwrap_err();
        assert!(why.contains("more than its baseline"), "{why}");
        let note = before.judge(&with(20.0, [1.0, 1.0, 1.5, 1.5])).unwrap();
        assert!(note.contains("1.0 to 1.5 times"), "{note}");
    }

    #[test]
    fn nothing_to_compare_with_is_an_error() {
        assert!(before().judge(&built(&[("ours", 1.0)])).is_err());
    }

    #[test]
    fn the_file_is_read_as_it_is_written() {
        let baseline = before();
        assert_eq!(baseline.to_string().parse::<Baseline>(), Ok(baseline));
    }
}
