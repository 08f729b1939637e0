//! Domains of virtual hosts as patterns, and their rank.

use std::collections::{BTreeMap, BTreeSet};

use proxy_model::matching::HostPattern;

use super::Reading;

/// Where in `Order` the routes of a virtual host are. Envoy looks into one virtual host only, the one with the most specific
/// domain, and tries its routes one after the other; the model looks at `Order` first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Specificity {
    Exact,
    /// A wildcard with a suffix of so many bytes, counted down from the longest name.
    Suffix(usize),
    Any,
}

const LONGEST_NAME: usize = 255;

/// Where the routes for any host begin.
const AFTER_ALL: i32 = 1_000_000_000;

/// Routes of one virtual host for which there is room.
pub(super) const MOST_ROUTES: usize = 99_999;

/// Between the first routes of two ranks.
const STEP: i32 = 100_000;

impl Specificity {
    /// `Order` of the route at a position. `None`: there is no room for so many.
    pub(super) fn order(self, position: usize) -> Option<i32> {
        let position = i32::try_from(position).ok().filter(|at| *at < STEP)?;
        let rank = match self {
            Self::Exact => 0,
            Self::Suffix(length) => i32::try_from(LONGEST_NAME.saturating_sub(length)).ok()? + 1,
            Self::Any => return Some(AFTER_ALL + position),
        };
        // The last rank ends where routes are that say nothing of their order, as those of this family may.
        let last = i32::try_from(LONGEST_NAME).ok()? + 2;
        Some((rank - last) * STEP + position)
    }
}

/// The patterns for the domains of a virtual host by how specific they are; `None` for all hosts. Domains that are refused are
/// not among them.
pub(super) fn patterns(
    domains: &[String],
    reading: &mut Reading,
) -> BTreeMap<Specificity, Option<Vec<String>>> {
    let mut groups: BTreeMap<Specificity, Option<Vec<String>>> = BTreeMap::new();
    let mut known = BTreeSet::new();
    for domain in domains {
        if domain == "*" {
            groups.insert(Specificity::Any, None);
            continue;
        }
        // `name:*` is how any port is said.
        let domain = domain.strip_suffix(":*").unwrap_or(domain);
        match HostPattern::parse(domain) {
            Ok(pattern) => {
                known.insert((pattern.to_ascii(), pattern.port()));
            }
            Err(error) => {
                reading.refuse("domains", format!("`{domain}` cannot be honoured: {error}"));
            }
        }
    }
    for (pattern, port) in &known {
        let name = port.and_then(|port| pattern.strip_suffix(&format!(":{port}")));
        // A name on any port is a name on each.
        if name.is_some_and(|name| known.contains(&(name.to_owned(), None))) {
            continue;
        }
        let name = name.unwrap_or(pattern);
        let rank = match name.strip_prefix('*') {
            Some(suffix) => Specificity::Suffix(suffix.len()),
            None => Specificity::Exact,
        };
        if let Some(patterns) = groups.entry(rank).or_insert_with(|| Some(Vec::new())) {
            patterns.push(pattern.clone());
        }
    }
    groups
}
