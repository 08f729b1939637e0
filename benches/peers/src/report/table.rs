//! The table on the terminal.

use std::fmt::Write as _;

use super::short;
use super::verdict::verdicts;
use crate::contest::{Latency, Outcome, Score};
use crate::proxies::Kind;
use crate::ratio::Spread;

const COLUMNS: [&str; 6] = ["", "value", "ours ÷ it", "req/s", "p50 µs", "p99 µs"];

/// One case, with what is to be reached.
pub(crate) fn table(outcome: &Outcome) -> String {
    let mut rows = vec![COLUMNS.map(str::to_owned)];
    rows.extend(outcome.scores.iter().map(|score| row(outcome, score)));
    let mut text = format!("{} ({})\n", outcome.case.title, outcome.case.unit());
    let widths: Vec<usize> = (0..COLUMNS.len())
        .map(|column| {
            rows.iter()
                .map(|row| row[column].chars().count())
                .max()
                .unwrap_or(0)
        })
        .collect();
    for row in &rows {
        let _ = write!(text, "  {:<width$}", row[0], width = widths[0]);
        for (cell, width) in row.iter().zip(&widths).skip(1) {
            let _ = write!(text, "  {cell:>width$}");
        }
        text.push('\n');
    }
    for verdict in verdicts(outcome) {
        let _ = match (verdict.found, verdict.reached) {
            (None, _) => writeln!(text, "  {}: nothing to compare with", verdict.asked),
            (Some(found), true) => writeln!(text, "  {}: reached, {found}", verdict.asked),
            (Some(found), false) => writeln!(text, "  {}: NOT REACHED, {found}", verdict.asked),
        };
    }
    for score in &outcome.scores {
        if let Some(missing) = &score.missing {
            let _ = writeln!(
                text,
                "  {} does less: without {missing}",
                score.contestant.label()
            );
        }
    }
    text
}

fn row(outcome: &Outcome, score: &Score) -> [String; COLUMNS.len()] {
    let cell = |value: Option<String>| value.unwrap_or_else(|| "–".to_owned());
    let ratio = outcome
        .ratio_to(score)
        .filter(|_| score.contestant.kind != Kind::Gateway || score.contestant.workers > 1);
    let micros = |quantile: fn(&Latency) -> f64| score.latency_spread(quantile).map(with_range);
    [
        score.contestant.label(),
        cell(score.spread().map(|spread| short(spread.median))),
        cell(ratio.map(with_range)),
        cell(
            Spread::of(score.throughput.iter().copied())
                .map(|spread| format!("{:.0}", spread.median)),
        ),
        cell(micros(|latency| latency.p50)),
        cell(micros(|latency| latency.p99)),
    ]
}

/// `0.71 [0.65..0.80]`.
pub(super) fn with_range(spread: Spread) -> String {
    let [median, least, most] = [spread.median, spread.least, spread.most].map(short);
    if spread.rounds > 1 {
        format!("{median} [{least}..{most}]")
    } else {
        median
    }
}
