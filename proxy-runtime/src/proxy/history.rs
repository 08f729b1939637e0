//! The last configurations with their changes.

use std::collections::VecDeque;

use discovery_core::Timestamp;
use proxy_model::{Problems, Revision, Snapshot, diff};
use serde::Serialize;

use crate::state::Generation;

/// Maximum number of kept entries.
const CHANGES: usize = 20;
/// Maximum of lines per entry.
const LINES: usize = 200;
/// Maximum bytes of a line.
const LINE: usize = 400;

/// A configuration that was published or rejected, with its changes.
#[derive(Clone, Debug, Serialize)]
#[non_exhaustive]
pub struct PastChange {
    /// Number of the generation; for a rejected configuration, that of the generation that kept
    /// serving.
    pub generation: u64,
    /// The time of the attempt.
    pub at: Timestamp,
    /// Content hash of the configuration.
    pub revision: String,
    /// The result.
    pub outcome: PublishOutcome,
    /// The differences from the previous configuration, or the problems of a rejected one, one per
    /// line: at most 200.
    pub lines: Vec<String>,
    /// Number of further lines.
    pub omitted: usize,
}

/// The result of publishing a configuration.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum PublishOutcome {
    /// The configuration became active.
    Published,
    /// The configuration was rejected; the lines have the reasons.
    #[serde(rename = "refused")]
    Rejected,
}

/// The last configurations, the latest first.
#[derive(Debug, Default)]
pub(super) struct History {
    changes: VecDeque<PastChange>,
    generation: u64,
}

impl History {
    /// Records that `now` has replaced `before`. Returns the number of changes.
    pub(super) fn published(&mut self, before: Option<&Generation>, now: &Generation) -> usize {
        let (lines, omitted) = match before {
            Some(before) => readable(before.snapshot(), now.snapshot()),
            None => (Vec::new(), 0),
        };
        let count = lines.len() + omitted;
        self.generation = now.number();
        self.push(PastChange {
            generation: now.number(),
            at: now.published_at(),
            revision: now.snapshot().revision().to_string(),
            outcome: PublishOutcome::Published,
            lines,
            omitted,
        });
        count
    }

    /// Records that the configuration of this revision was rejected.
    pub(super) fn rejected(&mut self, revision: Revision, problems: &Problems) {
        self.push(PastChange {
            generation: self.generation,
            at: Timestamp::now(),
            revision: revision.to_string(),
            outcome: PublishOutcome::Rejected,
            lines: problems.iter().take(LINES).map(line).collect(),
            omitted: problems.len().saturating_sub(LINES),
        });
    }

    pub(super) fn list(&self) -> Vec<PastChange> {
        self.changes.iter().cloned().collect()
    }

    fn push(&mut self, change: PastChange) {
        self.changes.truncate(CHANGES - 1);
        self.changes.push_front(change);
    }
}

fn readable(before: &Snapshot, now: &Snapshot) -> (Vec<String>, usize) {
    let changes = diff(before.config(), now.config());
    let lines: Vec<_> = changes.iter().take(LINES).map(line).collect();
    let omitted = changes.len() - lines.len();
    (lines, omitted)
}

/// One line of a change, shortened if it is too long.
fn line(what: &impl ToString) -> String {
    let mut line = what.to_string();
    if line.len() > LINE {
        // Cuts at the boundary of a character.
        let end = (0..=LINE).rev().find(|&end| line.is_char_boundary(end));
        line.truncate(end.unwrap_or(0));
        line.push('…');
    }
    line
}
