//! Checked-in baselines, and budgets.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use serde::Deserialize;

use super::profile::Profile;

/// Functions below this share of the total are not recorded.
const WRITTEN: f64 = 0.005;

/// The cost of a request. `None` if not measured.
#[derive(Clone, Copy, Debug, Default, PartialEq, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub(super) struct Counts {
    pub(super) instructions: Option<f64>,
    pub(super) heap_blocks: Option<f64>,
    pub(super) system_calls: Option<f64>,
    pub(super) calls_in_vain: Option<f64>,
}

/// A kind of count.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Count {
    Instructions,
    HeapBlocks,
    SystemCalls,
    CallsInVain,
}

impl Count {
    pub(super) const ALL: [Self; 4] = [
        Self::Instructions,
        Self::HeapBlocks,
        Self::SystemCalls,
        Self::CallsInVain,
    ];

    pub(super) fn title(self) -> &'static str {
        match self {
            Self::Instructions => "user instructions",
            Self::HeapBlocks => "heap blocks",
            Self::SystemCalls => "system calls",
            Self::CallsInVain => "of these in vain",
        }
    }

    fn key(self) -> &'static str {
        match self {
            Self::Instructions => "instructions",
            Self::HeapBlocks => "heap-blocks",
            Self::SystemCalls => "system-calls",
            Self::CallsInVain => "calls-in-vain",
        }
    }

    /// The noise of small counts without any change: one more connection to a destination, a timer.
    fn noise(self) -> f64 {
        match self {
            Self::Instructions => 0.0,
            Self::HeapBlocks | Self::SystemCalls | Self::CallsInVain => 0.05,
        }
    }

    /// The value as printed and written.
    pub(super) fn text(self, value: f64) -> String {
        match self {
            Self::Instructions => format!("{value:.0}"),
            // Values below the noise have no sign.
            _ => format!("{:.2}", if value.abs() < 0.005 { 0.0 } else { value }),
        }
    }
}

impl Counts {
    pub(super) fn of(&self, count: Count) -> Option<f64> {
        match count {
            Count::Instructions => self.instructions,
            Count::HeapBlocks => self.heap_blocks,
            Count::SystemCalls => self.system_calls,
            Count::CallsInVain => self.calls_in_vain,
        }
    }
}

/// A baseline file.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub(super) struct Gates {
    /// The goal. Missing it is no failure.
    pub(super) budget: Counts,
    #[serde(default)]
    pub(super) baseline: Vec<Baseline>,
}

/// The measurement on one kind of machine.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub(super) struct Baseline {
    pub(super) machine: String,
    pub(super) toolchain: String,
    pub(super) counts: Counts,
    /// Instructions of the most expensive functions.
    #[serde(default)]
    pub(super) functions: BTreeMap<String, f64>,
}

impl Baseline {
    pub(super) fn new(
        machine: String,
        toolchain: String,
        counts: Counts,
        profile: &Profile,
    ) -> Self {
        let functions = profile.above(WRITTEN).into_iter();
        Self {
            machine,
            toolchain,
            counts,
            functions: functions
                .map(|(name, cost)| (name.to_owned(), cost.round()))
                .collect(),
        }
    }
}

/// The result of comparing a count.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Change {
    /// More than before, beyond the tolerance: the gate fails.
    Grown,
    /// The same as before, within the tolerance.
    Within,
    /// Less than before, beyond the tolerance: worth a new baseline.
    Shrunk,
    /// One of the values is missing.
    Unknown,
}

pub(super) fn change(
    count: Count,
    tolerance: f64,
    now: Option<f64>,
    before: Option<f64>,
) -> Change {
    let (Some(now), Some(before)) = (now, before) else {
        return Change::Unknown;
    };
    if now > before * (1.0 + tolerance) + count.noise() {
        Change::Grown
    } else if now < before * (1.0 - tolerance) - count.noise() {
        Change::Shrunk
    } else {
        Change::Within
    }
}

impl Gates {
    pub(super) fn parse(text: &str) -> Result<Self, String> {
        toml::from_str(text).map_err(|error| error.to_string())
    }

    pub(super) fn of(&self, machine: &str) -> Option<&Baseline> {
        self.baseline
            .iter()
            .find(|baseline| baseline.machine == machine)
    }

    /// Replaces the baseline of the same kind of machine. Unmeasured values stay.
    pub(super) fn renew(&mut self, mut new: Baseline) {
        match self
            .baseline
            .iter_mut()
            .find(|old| old.machine == new.machine)
        {
            Some(old) => {
                let kept = old.counts;
                new.counts.system_calls = new.counts.system_calls.or(kept.system_calls);
                new.counts.calls_in_vain = new.counts.calls_in_vain.or(kept.calls_in_vain);
                *old = new;
            }
            None => self.baseline.push(new),
        }
        self.baseline.sort_by(|a, b| a.machine.cmp(&b.machine));
    }

    /// The text of the file, which [`parse`](Self::parse) reads.
    pub(super) fn render(&self) -> String {
        let mut text = "\
# What a request costs the proxy. `cargo xtask bench gate` compares with this and fails when one of the counts grows by
# a few percent; `cargo xtask bench gate --renew` writes what it measures here. benches/COMPARISON.md has the method.

# To be reached; that it is not fails nothing.
[budget]
"
        .to_owned();
        write_counts(&mut text, &self.budget);
        for baseline in &self.baseline {
            let Baseline {
                machine,
                toolchain,
                counts,
                functions,
            } = baseline;
            let _ = writeln!(text, "\n[[baseline]]");
            let _ = writeln!(text, "machine = {}", quoted(machine));
            let _ = writeln!(text, "toolchain = {}", quoted(toolchain));
            let _ = writeln!(text, "\n[baseline.counts]");
            write_counts(&mut text, counts);
            let _ = writeln!(text, "\n[baseline.functions]");
            let mut functions: Vec<_> = functions.iter().collect();
            functions.sort_by(|(_, a), (_, b)| b.total_cmp(a));
            for (name, cost) in functions {
                let _ = writeln!(text, "{} = {cost:.1}", quoted(name));
            }
        }
        text
    }
}

fn write_counts(text: &mut String, counts: &Counts) {
    for count in Count::ALL {
        if let Some(value) = counts.of(count) {
            let decimals = if count == Count::Instructions { 1 } else { 2 };
            let _ = writeln!(text, "{} = {value:.decimals$}", count.key());
        }
    }
}

/// A TOML string. Names of functions and machines have no control characters.
fn quoted(text: &str) -> String {
    format!("\"{}\"", text.replace('\\', "\\\\").replace('"', "\\\""))
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::path::Path;

    use super::*;
    use crate::gate::row::ROWS;

    fn counts(instructions: f64) -> Counts {
        Counts {
            instructions: Some(instructions),
            heap_blocks: Some(14.0),
            system_calls: Some(4.07),
            calls_in_vain: Some(0.0),
        }
    }

    fn baseline(machine: &str, instructions: f64) -> Baseline {
        let profile = Profile {
            costs: BTreeMap::from([
                ("<a::B as \"c\">::d\\e".to_owned(), instructions - 1.0),
                ("small".to_owned(), 1.0),
            ]),
            blocks: 14.0,
        };
        Baseline::new(
            machine.to_owned(),
            "rustc 1.95.0".to_owned(),
            counts(instructions),
            &profile,
        )
    }

    #[test]
    fn three_in_a_hundred_more_shut_the_gate_and_three_less_are_worth_holding() {
        let instructions = |now| change(Count::Instructions, 0.03, Some(now), Some(10_000.0));
        assert_eq!(instructions(10_299.0), Change::Within);
        assert_eq!(instructions(10_301.0), Change::Grown);
        assert_eq!(instructions(9_701.0), Change::Within);
        assert_eq!(instructions(9_699.0), Change::Shrunk);
        assert_eq!(
            change(Count::Instructions, 0.03, None, Some(1.0)),
            Change::Unknown
        );
        assert_eq!(
            change(Count::Instructions, 0.03, Some(1.0), None),
            Change::Unknown
        );
    }

    #[test]
    fn one_block_for_each_request_shuts_the_gate_where_there_was_none() {
        let blocks = |now| change(Count::HeapBlocks, 0.03, Some(now), Some(0.0));
        assert_eq!(blocks(0.01), Change::Within);
        assert_eq!(blocks(1.0), Change::Grown);
        assert_eq!(
            change(Count::CallsInVain, 0.03, Some(1.0), Some(0.0)),
            Change::Grown
        );
    }

    #[test]
    fn what_is_written_is_read_again() {
        let mut gates = Gates {
            budget: counts(7_500.0),
            baseline: Vec::new(),
        };
        gates.renew(baseline("x86_64 with AVX2", 40_000.0));
        gates.renew(baseline("aarch64", 30_000.0));
        let again = Gates::parse(&gates.render()).unwrap();
        assert_eq!(again, gates);
        assert_eq!(
            again.of("aarch64").unwrap().counts.instructions,
            Some(30_000.0)
        );
        assert_eq!(
            again.of("aarch64").unwrap().functions.len(),
            1,
            "what is small is not written down"
        );
        assert_eq!(again.of("riscv64"), None);
    }

    #[test]
    fn renewing_replaces_what_was_measured_on_the_same_kind_of_machine() {
        let mut gates = Gates {
            budget: counts(7_500.0),
            baseline: vec![baseline("x", 100.0), baseline("y", 100.0)],
        };
        let mut new = baseline("x", 50.0);
        new.counts.system_calls = None;
        gates.renew(new);
        assert_eq!(
            gates.of("x").unwrap().counts,
            counts(50.0),
            "calls were not counted this time"
        );
        assert_eq!(gates.of("y").unwrap().counts, counts(100.0));
    }

    #[test]
    fn the_files_that_are_checked_in_are_as_they_would_be_written() {
        let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("../gates");
        let mut rows = 0;
        for row in ROWS {
            let text = fs::read_to_string(row.baseline(&directory)).unwrap();
            assert_eq!(Gates::parse(&text).unwrap().render(), text, "{}", row.name);
            rows += 1;
        }
        assert_eq!(fs::read_dir(directory).unwrap().count(), rows);
    }
}
