//! The last configurations, and what each changed.

use std::collections::VecDeque;

use discovery_core::Moment;
use proxy_model::{Problems, Revision, Snapshot, diff};
use serde::Serialize;

use crate::state::Generation;

/// How many changes are remembered.
const CHANGES: usize = 20;
/// How many lines of one change are remembered.
const LINES: usize = 200;
/// How many bytes of one line.
const LINE: usize = 400;

/// One configuration that came, and what it changed.
#[derive(Clone, Debug, Serialize)]
#[non_exhaustive]
pub struct PastChange {
    /// Number of the generation; of a refused one, of the generation that went on serving.
    pub generation: u64,
    /// When it came.
    pub at: Moment,
    /// Content hash of the configuration.
    pub revision: String,
    /// What became of it.
    pub outcome: Outcome,
    /// What is different from the configuration before, a line per change: at most 200.
    pub lines: Vec<String>,
    /// How many more changes there were.
    pub omitted: usize,
}

/// What became of a configuration.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Outcome {
    /// It served, and perhaps still does.
    Published,
    /// It could not be used; the lines say why.
    Refused,
}

/// The last configurations, the latest first.
#[derive(Debug, Default)]
pub(super) struct History {
    changes: VecDeque<PastChange>,
    generation: u64,
}

impl History {
    /// Remembers that `now` serves after `before`. Returns how many changes it made.
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
            outcome: Outcome::Published,
            lines,
            omitted,
        });
        count
    }

    /// Remembers that the configuration of this revision could not be used.
    pub(super) fn refused(&mut self, revision: Revision, problems: &Problems) {
        self.push(PastChange {
            generation: self.generation,
            at: Moment::now(),
            revision: revision.to_string(),
            outcome: Outcome::Refused,
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

/// One line of a change: a value that is very long is cut.
fn line(what: &impl ToString) -> String {
    let mut line = what.to_string();
    if line.len() > LINE {
        let end = (0..=LINE).rev().find(|&end| line.is_char_boundary(end));
        line.truncate(end.unwrap_or(0));
        line.push('…');
    }
    line
}
