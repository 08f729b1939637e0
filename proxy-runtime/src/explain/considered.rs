//! The routes that do not match a request, and those that no request can reach.

use std::collections::HashMap;

use proxy_model::compiled::{Route, RouteIndex};
use proxy_model::matching::Mismatch;
use proxy_model::{RequestHead, RouteId, Snapshot};
use serde::Serialize;

use super::Explanation;
use crate::status::secret::{REDACTED, sounds_secret};

/// Maximum of routes that are listed.
const LISTED: usize = 200;
/// Maximum characters of a part of the request.
const SHOWN: usize = 120;

/// A route that does not match the request.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Considered {
    /// The route.
    pub route: RouteId,
    /// The first condition that fails: `host`, `path`, `method`, `header NAME` or
    /// `query parameter NAME`. `precedence` if the route matches but another one comes first.
    pub rejected: String,
    /// All conditions that fail, in the order in which they are checked; empty for `precedence`.
    pub misses: Vec<Miss>,
}

/// A condition of a route that a request does not meet.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Miss {
    /// The condition, as in [`Considered::rejected`].
    pub criterion: String,
    /// The value that the route requires: `/orders/{id}`, `ExactHeader a or b`. `(redacted)` if the name sounds
    /// like a secret.
    pub wanted: String,
    /// The value that the request has; `None` if it has none.
    pub came: Option<String>,
}

/// A route that no request can reach, because an earlier route takes all its requests.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct ShadowedRoute {
    /// The route.
    pub route: RouteId,
    /// The route that takes its requests.
    pub by: RouteId,
}

/// Lists the routes other than `matched`, the nearest misses first: those with the fewest conditions that fail.
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
        .map(|(_, route)| (route.matcher().mismatches(head), route))
        .collect();
    // The sort is stable: equal misses stay in the order of the configuration.
    misses.sort_by_cached_key(|(mismatches, route)| {
        (
            mismatches.len(),
            distance(mismatches.first()),
            usize::MAX - shared_prefix(route, head.path()),
        )
    });
    explanation.considered_omitted = misses.len().saturating_sub(LISTED);
    misses.truncate(LISTED);
    explanation.considered = misses
        .into_iter()
        .map(|(mismatches, route)| Considered {
            route: route.id().clone(),
            rejected: match mismatches.first() {
                None => "precedence".to_owned(),
                Some(mismatch) => mismatch.to_string(),
            },
            misses: mismatches
                .iter()
                .map(|mismatch| miss(route, mismatch, head))
                .collect(),
        })
        .collect();
}

/// Distance of a route from a match, by its first failing condition: the later that is checked, the smaller.
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

/// Number of bytes that the path of a route shares with that of a request.
fn shared_prefix(route: &Route, path: &str) -> usize {
    let template = route.matcher().path().as_str();
    let template = template.trim_start_matches('/').bytes();
    let path = path.trim_start_matches('/').bytes();
    let shared = template.zip(path);
    shared
        .take_while(|(wanted, came)| wanted.eq_ignore_ascii_case(came))
        .count()
}

fn miss(route: &Route, mismatch: &Mismatch, head: &dyn RequestHead) -> Miss {
    let name = match mismatch {
        Mismatch::Header(name) | Mismatch::Query(name) => &**name,
        Mismatch::Host | Mismatch::Path | Mismatch::Method => "",
    };
    // The wanted value of a secret is a secret as well.
    let wanted = match sounds_secret(name) {
        true => REDACTED.to_owned(),
        false => route.matcher().wanted(mismatch, head),
    };
    Miss {
        criterion: mismatch.to_string(),
        wanted,
        came: came(mismatch, head).map(|came| shown(&came)),
    }
}

/// Returns the part of the request that a condition is about.
fn came(mismatch: &Mismatch, head: &dyn RequestHead) -> Option<String> {
    match mismatch {
        Mismatch::Host => Some(head.authority().to_owned()).filter(|host| !host.is_empty()),
        Mismatch::Path => Some(head.path().to_owned()),
        Mismatch::Method => Some(head.method().to_owned()),
        Mismatch::Header(name) => {
            let mut lines = Vec::new();
            head.for_each_header(name, &mut |line| {
                lines.push(String::from_utf8_lossy(line).into_owned());
                // A few lines are enough to show what came.
                lines.len() < 3
            });
            (!lines.is_empty()).then(|| lines.join(", "))
        }
        Mismatch::Query(_) => head.query().map(|query| format!("?{query}")),
    }
}

/// Returns the beginning of a part of the request, without control characters.
fn shown(text: &str) -> String {
    let clean = text.chars().filter(|c| !c.is_control());
    let mut shown: String = clean.take(SHOWN).collect();
    if text.chars().nth(SHOWN).is_some() {
        shown.push('…');
    }
    shown
}

/// Returns the routes that no request can reach, with the route that comes first. Only those are found whose paths are
/// equal, or lie below a catch-all with a smaller `Order`.
pub fn shadowed_routes(snapshot: &Snapshot) -> Vec<ShadowedRoute> {
    let routes = snapshot.routes();
    let mut first_of: HashMap<(i32, String), &Route> = HashMap::new();
    let lowest = routes.iter().map(Route::order).min();
    let mut shadowed = Vec::new();
    for route in routes {
        let twin = (route.order(), route.matcher().signature());
        let earlier = match first_of.get(&twin) {
            Some(earlier) => Some(*earlier),
            // Nothing comes before the lowest order, so most configurations need no search.
            None if Some(route.order()) == lowest => None,
            None => routes.iter().find(|other| {
                other.order() < route.order() && other.matcher().covers(route.matcher())
            }),
        };
        first_of.entry(twin).or_insert(route);
        if let Some(earlier) = earlier {
            shadowed.push(ShadowedRoute {
                route: route.id().clone(),
                by: earlier.id().clone(),
            });
        }
    }
    shadowed
}
