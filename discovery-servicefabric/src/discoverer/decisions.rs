//! The decisions to serve entities or not, and their reasons.

use std::collections::HashMap;
use std::sync::Arc;

use proxy_model::Problems;
use serde::Serialize;

/// The most decisions that are kept.
const MOST: usize = 20_000;

/// Maximum number of reasons of one decision.
const MOST_REASONS: usize = 20;

/// The decision for each application and service, with its reasons. Those that are not served come first.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub struct Decisions {
    /// The decisions with their reasons; 20,000 at most.
    pub decisions: Vec<Decision>,
    /// Number of decisions that were left out.
    pub left_out: usize,
}

/// The decision for an application or a service.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub struct Decision {
    /// Name of the application or service.
    pub name: Arc<str>,
    /// The verdict.
    pub verdict: Verdict,
    /// The reasons, in words for people.
    pub reasons: Vec<String>,
}

/// The verdict on an application or a service.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Verdict {
    /// Not readable. The last known state continues to serve.
    NotRead,
    /// Rejected: opted in to be served, but in a way that is not possible. The last known good form
    /// continues to serve.
    #[serde(rename = "refused")]
    Rejected,
    /// Not opted in, although there are labels.
    #[serde(rename = "not_enlisted")]
    NotEnabled,
    /// An application without labels in any of its service types.
    NoLabels,
    /// Served.
    Served,
}

/// Decisions in the making.
#[derive(Debug, Default)]
pub(super) struct Deciding(Vec<Decision>);

impl Deciding {
    pub(super) fn add(&mut self, name: &Arc<str>, verdict: Verdict, reasons: Vec<String>) {
        self.0.push(Decision {
            name: Arc::clone(name),
            verdict,
            reasons,
        });
    }

    pub(super) fn finish(mut self) -> Decisions {
        self.0.sort_by_key(|decision| decision.verdict);
        let left_out = self.0.len().saturating_sub(MOST);
        self.0.truncate(MOST);
        Decisions {
            decisions: self.0,
            left_out,
        }
    }
}

/// The problems as reasons.
pub(super) fn reasons_of(problems: &Problems) -> Vec<String> {
    let told = problems.iter().take(MOST_REASONS);
    let mut reasons: Vec<_> = told.map(ToString::to_string).collect();
    let more = problems.len().saturating_sub(MOST_REASONS) + problems.left_out();
    if more > 0 {
        reasons.push(format!("{more} more"));
    }
    reasons
}

/// The rejections by the runner in its last cycle, for reasons that this crate does not know: custom
/// validators, ids that another service owns.
#[derive(Debug, Default)]
pub(super) struct Rejections(HashMap<Arc<str>, Problems>);

impl Rejections {
    pub(super) fn new(by_service: HashMap<Arc<str>, Problems>) -> Self {
        Self(by_service)
    }

    /// Returns the decisions with these rejections applied.
    pub(super) fn applied_to(&self, decisions: &Decisions) -> Decisions {
        let mut decisions = decisions.clone();
        let mut rejected = false;
        for decision in &mut decisions.decisions {
            let problems = self.0.get(&decision.name);
            if let (Verdict::Served, Some(problems)) = (decision.verdict, problems) {
                decision.verdict = Verdict::Rejected;
                decision.reasons = reasons_of(problems);
                rejected = true;
            }
        }
        if rejected {
            decisions.decisions.sort_by_key(|decision| decision.verdict);
        }
        decisions
    }
}
