//! The routes that do not match a request.

use proxy_model::compiled::RouteIndex;
use proxy_model::matching::Mismatch;
use proxy_model::{RequestHead, RouteId, Snapshot};
use serde::Serialize;

use super::Explanation;

/// Maximum of routes that are listed.
const LISTED: usize = 200;

/// A route that does not match the request.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Considered {
    /// The route.
    pub route: RouteId,
    /// The first condition that fails: `host`, `path`, `method`, `header NAME` or
    /// `query parameter NAME`. `precedence` if the route matches but another one comes first.
    pub rejected: String,
}

/// Lists the routes other than `matched`, the nearest misses first.
pub(super) fn considered(
    snapshot: &Snapshot,
    matched: Option<RouteIndex>,
    head: &dyn RequestHead,
    explanation: &mut Explanation,
) {
    let matched = matched.map(|index| index.0 as usize);
    let others = snapshot.routes().iter().enumerate();
    let mut misses: Vec<_> = others
        .filter(|(position, _)| Some(*position) != matched)
        .map(|(_, route)| (route.matcher().check(head).err(), route.id()))
        .collect();
    // The sort is stable: equal misses stay in the order of the configuration.
    misses.sort_by_key(|(mismatch, _)| distance(mismatch.as_ref()));
    explanation.considered_omitted = misses.len().saturating_sub(LISTED);
    misses.truncate(LISTED);
    explanation.considered = misses
        .into_iter()
        .map(|(mismatch, route)| Considered {
            route: route.clone(),
            rejected: mismatch.map_or_else(|| "precedence".to_owned(), |m| m.to_string()),
        })
        .collect();
}

/// Distance of a route from a match: the later its failing condition is checked, the smaller.
fn distance(mismatch: Option<&Mismatch>) -> u8 {
    match mismatch {
        None => 0,
        Some(Mismatch::Query(_)) => 1,
        Some(Mismatch::Header(_)) => 2,
        Some(Mismatch::Method) => 3,
        Some(Mismatch::Path) => 4,
        Some(Mismatch::Host) => 5,
    }
}
