//! Problems that only follow from other problems.
//!
//! A part with a mistake is compiled as far as it could be read, so that a person sees all problems at
//! once. The compiler may then miss a value that the reader could not read. To report that `Address` is
//! missing when it is a number would only confuse. Only problems that certainly follow from others are left
//! out: a problem too many is better than one that shows up after the first was fixed.

#[cfg(test)]
mod tests;

use std::collections::HashSet;

use crate::json::{Node, Speller};
use crate::problem::{Problem, Problems};

/// The problems `found` by the compiler, without those that follow from the reader's, and with pointers as the reader
/// has them: from `base`, the place of `section`, and with keys as the document spells them.
pub(super) fn without(
    mut found: Problems,
    reader: &Problems,
    section: &Node,
    base: &str,
) -> Problems {
    let mut speller = Speller::new(section, &LISTS);
    found.repoint(|pointer| format!("{base}{}", speller.spelled(pointer)));
    if !reader.has_errors() {
        return found;
    }
    let blamed = Blamed::new(reader, section, base);
    let mut kept = Problems::new();
    kept.append_if(found, |problem| !blamed.explains(problem));
    kept
}

/// The keys whose values are lists. The compiler counts their elements; the document may give them other numbers.
const LISTS: [&str; 9] = [
    "Headers",
    "Hosts",
    "Methods",
    "Partitions",
    "QueryParameters",
    "SslProtocols",
    "Transforms",
    "Values",
    "WeightedClusters",
];

/// Codes that follow when a key beside the place, or one of the place's own, could not be read.
const DEPENDENT: [(&str, &[&str]); 6] = [
    ("missing_values", &["Mode"]),
    ("unexpected_values", &["Mode"]),
    ("unexpected_transform_key", &["Forwarded"]),
    ("no_criteria", &["Path", "Hosts"]),
    (
        "missing_partition_key",
        &["Header", "QueryParameter", "RouteValue"],
    ),
    ("missing_partition_range", &["LowKey", "HighKey", "Name"]),
];

/// Codes whose pointer names the object with the missing keys.
const OF_OBJECTS: [&str; 3] = [
    "no_criteria",
    "missing_partition_key",
    "missing_partition_range",
];

/// Places that were only partly readable.
struct Blamed<'a> {
    section: &'a Node,
    base: &'a str,
    /// Places at and below which nothing was readable.
    unread: HashSet<&'a str>,
    /// Places above these.
    above: HashSet<&'a str>,
    /// Objects with unknown keys. A missing key of such an object may be a misspelled one.
    strangers: HashSet<&'a str>,
}

impl<'a> Blamed<'a> {
    fn new(reader: &'a Problems, section: &'a Node, base: &'a str) -> Self {
        let mut blamed = Self {
            section,
            base,
            unread: HashSet::new(),
            above: HashSet::new(),
            strangers: HashSet::new(),
        };
        for problem in reader.errors() {
            let place = problem.pointer.as_str();
            match &*problem.code {
                "unknown_key" | "renamed_key" => {
                    blamed.strangers.insert(parent(place).unwrap_or(place));
                    continue;
                }
                // The first of the two was read.
                "duplicate_key" => continue,
                _ => {}
            }
            blamed.unread.insert(place);
            let mut at = parent(place);
            while let Some(pointer) = at.filter(|pointer| blamed.above.insert(pointer)) {
                at = parent(pointer);
            }
        }
        blamed
    }

    fn explains(&self, problem: &Problem) -> bool {
        let place = problem.pointer.as_str();
        if self.is_unread(place) {
            return true;
        }
        match &*problem.code {
            "unknown_cluster" => return self.misses("", &["Clusters"]),
            // Only half of what the route matches is known.
            "duplicate_route_criteria" | "overlapping_route_criteria" => {
                return self.above.contains(place);
            }
            "unknown_route_parameter" => {
                let route = self.entry(place);
                return self.misses(route, &["Match"])
                    || self.misses(&format!("{route}/Match"), &["Path"]);
            }
            // Formats are of what `Forwarded` names; other keys never go with it.
            "unexpected_transform_key" if !place.to_ascii_lowercase().ends_with("format") => {
                return false;
            }
            _ => {}
        }
        let object = parent(place).unwrap_or(place);
        if let Some((_, keys)) = DEPENDENT.iter().find(|(code, _)| *code == problem.code) {
            let own = OF_OBJECTS.contains(&&*problem.code).then_some(place);
            let object = own.unwrap_or(object);
            let object = object.get(self.base.len()..).unwrap_or_default();
            if keys.iter().any(|key| self.is_unread_key(object, key)) {
                return true;
            }
        }
        if OF_OBJECTS.contains(&&*problem.code) && self.strangers.contains(place) {
            return true;
        }
        let is_missing = problem.code.starts_with("missing_") || problem.code.starts_with("no_");
        is_missing && self.strangers.contains(object) && !self.is_written(place)
    }

    /// Returns true if the place, or one above it, could not be read.
    fn is_unread(&self, place: &str) -> bool {
        let mut at = Some(place);
        while let Some(pointer) = at {
            if self.unread.contains(pointer) {
                return true;
            }
            at = parent(pointer);
        }
        false
    }

    /// Returns true if one of `keys` of the object at `object`, from the section, could not be read or may
    /// be misspelled as an unknown key.
    fn misses(&self, object: &str, keys: &[&str]) -> bool {
        let object = self.section.spelled(object);
        keys.iter().any(|key| {
            let place = format!("{}{object}/{key}", self.base);
            let is_strange = self
                .strangers
                .contains(format!("{}{object}", self.base).as_str());
            self.is_unread_key(&object, key) || (is_strange && !self.is_written(&place))
        })
    }

    fn is_unread_key(&self, object: &str, key: &str) -> bool {
        let place = self.section.spelled(&format!("{object}/{key}"));
        let place = format!("{}{place}", self.base);
        self.unread.contains(place.as_str())
    }

    /// Returns true if the document has a value at the place.
    fn is_written(&self, place: &str) -> bool {
        let below = place.get(self.base.len()..).unwrap_or_default();
        self.section.at(below).is_some()
    }

    /// The route or cluster that the place is in, from the section.
    fn entry<'p>(&self, place: &'p str) -> &'p str {
        let below = place.get(self.base.len()..).unwrap_or_default();
        let end = below.match_indices('/').nth(2);
        end.map_or(below, |(end, _)| &below[..end])
    }
}

fn parent(pointer: &str) -> Option<&str> {
    pointer.rsplit_once('/').map(|(parent, _)| parent)
}
