//! Problems that are there only because of others.
//!
//! What has a mistake is compiled as far as it could be read, so that a person sees everything at once. Where the reader
//! found something that it could not read, the compiler may then miss it. To say that `Address` is missing when it is a
//! number would only confuse.

use std::collections::HashSet;

use crate::json::Node;
use crate::problem::{Problem, Problems};

/// The problems `found` by the compiler, without those that follow from the reader's, and with pointers as the reader
/// has them: from `base`, the place of `section`, and with keys as the document spells them.
pub(super) fn without(
    mut found: Problems,
    reader: &Problems,
    section: &Node,
    base: &str,
) -> Problems {
    found.repoint(|pointer| format!("{base}{}", section.spelled(pointer)));
    if !reader.has_errors() {
        return found;
    }
    let blamed = Blamed::new(reader, base);
    let mut kept = Problems::new();
    kept.append_if(found, |problem| !blamed.explains(problem));
    kept
}

/// Places of which not everything could be read.
struct Blamed<'a> {
    base: &'a str,
    /// Places at and below which nothing is believed.
    regions: HashSet<&'a str>,
    /// Places above these, but still within one route or cluster.
    above: HashSet<&'a str>,
    /// Objects with keys that nobody knows: what is missing there may be what is written wrongly.
    strangers: HashSet<&'a str>,
}

/// Tokens of a pointer from the section to a route or cluster.
const ENTRY: usize = 2;

impl<'a> Blamed<'a> {
    fn new(reader: &'a Problems, base: &'a str) -> Self {
        let mut blamed = Self {
            base,
            regions: HashSet::new(),
            above: HashSet::new(),
            strangers: HashSet::new(),
        };
        for problem in reader.errors() {
            let place = problem.pointer.as_str();
            let parent = parent(place).unwrap_or(place);
            if matches!(&*problem.code, "unknown_key" | "renamed_key") {
                blamed.strangers.insert(parent);
            }
            // Keys of one object depend on each other; those of a route or cluster hardly do.
            let region = if blamed.depth(parent) > ENTRY {
                parent
            } else {
                place
            };
            blamed.regions.insert(region);
            let mut above = region;
            while let Some(next) = self::parent(above) {
                if blamed.depth(next) <= ENTRY {
                    break;
                }
                blamed.above.insert(next);
                above = next;
            }
        }
        blamed
    }

    fn explains(&self, problem: &Problem) -> bool {
        let place = problem.pointer.as_str();
        let is_missing = problem.code.starts_with("missing_") || problem.code.starts_with("no_");
        // Without the section's own keys there is hardly a cluster that routes could name.
        if problem.code == "unknown_cluster" && self.strangers.contains(self.base) {
            return true;
        }
        if self.above.contains(place) {
            return true;
        }
        let mut at = Some(place);
        while let Some(pointer) = at {
            if self.regions.contains(pointer) || (is_missing && self.strangers.contains(pointer)) {
                return true;
            }
            at = parent(pointer);
        }
        false
    }

    /// How many tokens there are from the section to `pointer`.
    fn depth(&self, pointer: &str) -> usize {
        let below = pointer.get(self.base.len()..).unwrap_or_default();
        below.matches('/').count()
    }
}

fn parent(pointer: &str) -> Option<&str> {
    pointer.rsplit_once('/').map(|(parent, _)| parent)
}
