//! Why something is served or not.

use std::collections::HashMap;
use std::sync::Arc;

use proxy_model::Problems;
use serde::Serialize;

/// The most decisions that are kept.
const MOST: usize = 20_000;

/// The most reasons of one decision that are told.
const MOST_REASONS: usize = 20;

/// Why each application and service is served or not. Those that are not come first.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub struct Decisions {
    /// Each with its reasons; 20,000 at most.
    pub decisions: Vec<Decision>,
    /// How many more there are.
    pub left_out: usize,
}

/// What became of an application or a service.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub struct Decision {
    /// Name of the application or service.
    pub name: Arc<str>,
    /// What became of it.
    pub verdict: Verdict,
    /// Why, in the words that a person needs.
    pub reasons: Vec<String>,
}

/// What became of an application or a service.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Verdict {
    /// It could not be read. What was last known of it serves on.
    NotRead,
    /// It asks to be served in a way that is not possible. What was last right serves on.
    Refused,
    /// It has labels and does not ask to be served.
    NotEnlisted,
    /// An application none of whose service types has labels.
    NoLabels,
    /// It is served.
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

/// What the runner refused in its last round, for reasons that this crate does not know: validators of the house, ids that
/// another service has.
#[derive(Debug, Default)]
pub(super) struct Refusals(HashMap<Arc<str>, Problems>);

impl Refusals {
    pub(super) fn new(by_service: HashMap<Arc<str>, Problems>) -> Self {
        Self(by_service)
    }

    /// The decisions with these refusals.
    pub(super) fn applied_to(&self, decisions: &Decisions) -> Decisions {
        let mut decisions = decisions.clone();
        let mut refused = false;
        for decision in &mut decisions.decisions {
            let problems = self.0.get(&decision.name);
            if let (Verdict::Served, Some(problems)) = (decision.verdict, problems) {
                decision.verdict = Verdict::Refused;
                decision.reasons = reasons_of(problems);
                refused = true;
            }
        }
        if refused {
            decisions.decisions.sort_by_key(|decision| decision.verdict);
        }
        decisions
    }
}
