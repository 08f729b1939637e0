//! The contestants of a case, and their results.

use super::Latency;
use crate::case::Case;
use crate::proxies::Kind;
use crate::ratio::{Spread, ratios};
use crate::syscalls::Calls;

/// A contestant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Contestant {
    pub(crate) kind: Kind,
    pub(crate) workers: usize,
}

impl Contestant {
    pub(crate) fn label(self) -> String {
        match self.workers {
            1 => self.kind.name().to_owned(),
            workers => format!("{}, {workers} workers", self.kind.name()),
        }
    }
}

/// The results of one contestant.
#[derive(Clone, Debug)]
pub(crate) struct Score {
    pub(crate) contestant: Contestant,
    /// The value of each round; `None` where it was discarded.
    pub(crate) values: Vec<Option<f64>>,
    /// Requests per second of each valid round.
    pub(crate) throughput: Vec<f64>,
    /// The latencies of each round, parallel to `values`.
    pub(crate) latency: Vec<Option<Latency>>,
    /// The reasons why rounds were discarded, or nothing was measured.
    pub(crate) complaints: Vec<String>,
    /// A header that it does not add to requests although others do.
    pub(crate) missing: Option<String>,
    /// System calls per request.
    pub(crate) calls: Option<Calls>,
}

impl Score {
    pub(super) fn new(contestant: Contestant) -> Self {
        Self {
            contestant,
            values: Vec::new(),
            throughput: Vec::new(),
            latency: Vec::new(),
            complaints: Vec::new(),
            missing: None,
            calls: None,
        }
    }

    pub(crate) fn spread(&self) -> Option<Spread> {
        Spread::of(self.values.iter().flatten().copied())
    }

    /// A quantile of each round, in microseconds.
    pub(crate) fn latencies(&self, quantile: fn(&Latency) -> f64) -> Vec<Option<f64>> {
        let rounds = self.latency.iter();
        rounds.map(|round| round.as_ref().map(quantile)).collect()
    }

    /// A quantile over all rounds, in microseconds.
    pub(crate) fn latency_spread(&self, quantile: fn(&Latency) -> f64) -> Option<Spread> {
        Spread::of(self.latencies(quantile).into_iter().flatten())
    }
}

/// The results of a case.
#[derive(Clone, Debug)]
pub(crate) struct Outcome {
    pub(crate) case: &'static Case,
    pub(crate) scores: Vec<Score>,
}

impl Outcome {
    pub(crate) fn score(&self, kind: Kind) -> Option<&Score> {
        self.scores
            .iter()
            .find(|score| score.contestant.kind == kind && score.contestant.workers == 1)
    }

    /// The ratio of our gateway's values to those of `other`.
    pub(crate) fn ratio_to(&self, other: &Score) -> Option<Spread> {
        Spread::of_ratios(&self.score(Kind::Gateway)?.values, &other.values)
    }

    /// The ratios of our gateway's latency to that of `other`, round by round.
    pub(crate) fn latency_ratios_to(
        &self,
        other: &Score,
        quantile: fn(&Latency) -> f64,
    ) -> Vec<f64> {
        let Some(ours) = self.score(Kind::Gateway) else {
            return Vec::new();
        };
        ratios(&ours.latencies(quantile), &other.latencies(quantile)).collect()
    }
}
