//! Who takes part in a case, and what came of it.

use crate::case::Case;
use crate::histogram::Histogram;
use crate::proxies::Kind;
use crate::ratio::Spread;
use crate::syscalls::Calls;

/// One who takes part.
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

/// What came of one contestant.
#[derive(Clone, Debug)]
pub(crate) struct Score {
    pub(crate) contestant: Contestant,
    /// The value of each round; `None` where it was discarded.
    pub(crate) values: Vec<Option<f64>>,
    /// Requests a second of each round that counts.
    pub(crate) throughput: Vec<f64>,
    pub(crate) latency: Histogram,
    /// Why rounds were discarded, or why nothing was measured.
    pub(crate) complaints: Vec<String>,
    /// What it does not add to requests although others do.
    pub(crate) missing: Option<String>,
    /// System calls for each request.
    pub(crate) calls: Option<Calls>,
}

impl Score {
    pub(super) fn new(contestant: Contestant) -> Self {
        Self {
            contestant,
            values: Vec::new(),
            throughput: Vec::new(),
            latency: Histogram::new(),
            complaints: Vec::new(),
            missing: None,
            calls: None,
        }
    }

    pub(crate) fn spread(&self) -> Option<Spread> {
        Spread::of(self.values.iter().flatten().copied())
    }
}

/// What came of a case.
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

    /// How many times what `other` needs our gateway needs.
    pub(crate) fn ratio_to(&self, other: &Score) -> Option<Spread> {
        Spread::of_ratios(&self.score(Kind::Gateway)?.values, &other.values)
    }
}
