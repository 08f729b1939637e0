//! The goals of our gateway, and whether it reaches them.

use super::short;
use super::table::with_range;
use crate::case::{self, Bound};
use crate::contest::{Latency, Outcome, Score};
use crate::histogram::Histogram;
use crate::proxies::Kind;
use crate::ratio::Spread;

/// The result of a goal.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Verdict {
    /// The goal in words.
    pub(super) asked: String,
    /// The measurement in words; `None` without anything to compare with.
    pub(super) found: Option<String>,
    pub(super) reached: bool,
}

/// The result of each goal of the case.
pub(super) fn verdicts(outcome: &Outcome) -> Vec<Verdict> {
    outcome
        .case
        .bounds
        .iter()
        .map(|bound| verdict(outcome, bound))
        .collect()
}

fn verdict(outcome: &Outcome, bound: &Bound) -> Verdict {
    match *bound {
        Bound::Best(kinds, limit) => {
            let names = names(kinds);
            against(
                outcome,
                kinds,
                limit,
                format!("≤ {limit} × the best of {names}"),
            )
        }
        Bound::Each(kinds, limit) => against(
            outcome,
            kinds,
            limit,
            format!("≤ {limit} × {}", names(kinds)),
        ),
        Bound::P50(kinds) => latency(
            outcome,
            kinds,
            |latency| latency.p50,
            is_no_longer,
            format!("p50 ≤ the best of {}", names(kinds)),
        ),
        Bound::P99(kinds) => latency(
            outcome,
            kinds,
            |latency| latency.p99,
            |ratios, _| ratios.least <= 1.0,
            format!("p99 within noise of the best of {}", names(kinds)),
        ),
        Bound::Value(limit) => {
            let value = outcome.score(Kind::Gateway).and_then(Score::spread);
            let unit = outcome.case.unit();
            Verdict {
                asked: format!("≤ {limit} {unit}"),
                found: value.map(|value| format!("{} {unit}", short(value.median))),
                reached: value.is_some_and(|value| value.median <= limit),
            }
        }
        Bound::Variant(ours, other, limit) => {
            let ratio = outcome.score(ours).zip(outcome.score(other));
            let ratio =
                ratio.and_then(|(ours, other)| Spread::of_ratios(&ours.values, &other.values));
            let (ours, other) = (ours.name(), other.name());
            Verdict {
                asked: format!("{ours} ≤ {limit} × {other}"),
                found: ratio.map(|ratio| format!("{} × {other}", short(ratio.median))),
                reached: ratio.is_some_and(|ratio| ratio.median <= limit),
            }
        }
        Bound::Scale(limit) => {
            let two = outcome
                .scores
                .iter()
                .find(|score| score.contestant.workers == 2);
            // Time per request: the ratio of one worker's to that of two.
            let ratio = two.and_then(|two| outcome.ratio_to(two));
            Verdict {
                asked: format!("≥ {limit} × the throughput of one worker"),
                found: ratio.map(|ratio| format!("{} ×", short(ratio.median))),
                reached: ratio.is_some_and(|ratio| ratio.median >= limit),
            }
        }
    }
}

/// The cheapest proxy has the greatest ratio, so one comparison serves both kinds of goals.
fn against(outcome: &Outcome, kinds: &[Kind], limit: f64, asked: String) -> Verdict {
    let ratios = kinds.iter().filter_map(|kind| {
        let ratio = outcome.ratio_to(outcome.score(*kind)?)?;
        Some((ratio.median, kind.name()))
    });
    let worst = ratios.max_by(|(a, _), (b, _)| a.total_cmp(b));
    Verdict {
        asked,
        found: worst.map(|(ratio, name)| format!("{} × {name}", short(ratio))),
        reached: worst.is_some_and(|(ratio, _)| ratio <= limit),
    }
}

/// Compares a quantile with that of the best of `kinds`: the one with the greatest median of paired
/// ratios.
fn latency(
    outcome: &Outcome,
    kinds: &[Kind],
    quantile: fn(&Latency) -> f64,
    is_reached: fn(Spread, &[f64]) -> bool,
    asked: String,
) -> Verdict {
    let compared = kinds.iter().filter_map(|kind| {
        let ratios = outcome.latency_ratios_to(outcome.score(*kind)?, quantile);
        Some((Spread::of(ratios.iter().copied())?, ratios, kind.name()))
    });
    let best = compared.max_by(|(a, ..), (b, ..)| a.median.total_cmp(&b.median));
    Verdict {
        asked,
        found: best
            .as_ref()
            .map(|(spread, _, name)| format!("{} × {name}", with_range(*spread))),
        reached: best.is_some_and(|(spread, ratios, _)| is_reached(spread, &ratios)),
    }
}

/// Returns true if ratios of latencies are at most 1 within noise: the median within the resolution
/// of a histogram, or a quarter of the rounds. Without a real difference, fewer than two of eight
/// rounds are at most 1 in 9 runs of 256.
fn is_no_longer(spread: Spread, ratios: &[f64]) -> bool {
    let no_longer = ratios.iter().filter(|ratio| **ratio <= 1.0).count();
    spread.median <= 1.0 + Histogram::RESOLUTION || no_longer * 4 >= ratios.len()
}

fn names(kinds: &[Kind]) -> String {
    if kinds == case::PEERS {
        return "all others".to_owned();
    }
    kinds
        .iter()
        .map(|kind| kind.name())
        .collect::<Vec<_>>()
        .join(", ")
}
