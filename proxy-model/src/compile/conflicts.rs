//! Routes that match the same requests: only the first gets any.

use std::collections::hash_map::Entry;
use std::collections::{BTreeSet, HashMap};

use crate::compiled::Route;
use crate::matching::HostPattern;
use crate::problem::{Problem, Problems, pointer_to};
use crate::suggest::shortened;

/// Maximum number of routes, or of hosts, that one problem names.
const NAMED: usize = 3;

/// Hosts of routes that otherwise match the same with the same `Order`, and the position of the first route that has
/// each. `None` is every host.
type Taken = HashMap<Option<String>, usize>;

/// Warns once for each route that never gets requests, or never gets those to some of its hosts, because
/// earlier routes take them.
///
/// A route conflicts with an earlier one if `Order`, path, methods, conditions and a host are equal.
/// Parameter names and the order of lists are ignored. A host pattern and a host that it matches do not
/// conflict: the more specific one wins.
pub(super) fn warn(routes: &[Route], problems: &mut Problems) {
    let mut seen: HashMap<(i32, String), Taken> = HashMap::with_capacity(routes.len());
    for (position, route) in routes.iter().enumerate() {
        let criteria = (route.order(), route.matcher().signature_but_hosts());
        let taken = seen.entry(criteria).or_default();
        let hosts = hosts(route);
        let mut winners = BTreeSet::new();
        let mut lost = Vec::new();
        let count = hosts.len();
        for host in hosts {
            match taken.entry(host) {
                Entry::Vacant(free) => {
                    free.insert(position);
                }
                Entry::Occupied(first) => {
                    winners.insert(*first.get());
                    lost.extend(first.key().clone());
                }
            }
        }
        if winners.is_empty() {
            continue;
        }
        let winners: Vec<_> = winners.iter().map(|i| routes[*i].id().as_str()).collect();
        let (first, comes, takes) = match winners.len() {
            1 => (named(&winners), "comes", "takes"),
            _ => (named(&winners), "come", "take"),
        };
        // Without a host there is one pattern, which is lost or is not.
        let (code, message) = if lost.is_empty() || lost.len() == count {
            let message = format!(
                "the route matches the same requests as {first}, which {comes} first and {takes} them all"
            );
            ("duplicate_route_criteria", message)
        } else {
            let message = format!(
                "the route's requests to {} match {first} as well, which {comes} first and {takes} them",
                named(&lost)
            );
            ("overlapping_route_criteria", message)
        };
        problems.push(
            Problem::warning(pointer_to("/Routes", route.id().as_str()), code, message)
                .with_suggestion("remove one of them, or give them different `Order`s or criteria"),
        );
    }
}

/// Returns the routes that take requests of others because of a lower `Order` alone: pairs of the one that
/// takes them and the one that loses them. Both have equal criteria and a host in common.
pub(crate) fn overrides(routes: &[Route]) -> Vec<(usize, usize)> {
    let mut seen: HashMap<String, Vec<usize>> = HashMap::new();
    for (position, route) in routes.iter().enumerate() {
        let alike = seen.entry(route.matcher().signature_but_hosts());
        alike.or_default().push(position);
    }
    let mut found = Vec::new();
    for alike in seen.values_mut().filter(|alike| alike.len() > 1) {
        alike.sort_by_key(|position| routes[*position].order());
        // The first to have a host takes its requests.
        let mut taken = Taken::new();
        for &position in alike.iter() {
            let hosts = hosts(&routes[position]).into_iter();
            let winners: BTreeSet<_> = hosts
                .map(|host| *taken.entry(host).or_insert(position))
                .collect();
            let by_order = |winner: &usize| routes[*winner].order() != routes[position].order();
            let winners = winners.into_iter().filter(by_order);
            found.extend(winners.map(|winner| (winner, position)));
        }
    }
    found.sort_unstable();
    found
}

/// The route's host patterns in comparable form, each once and in order.
fn hosts(route: &Route) -> BTreeSet<Option<String>> {
    let patterns = route.matcher().hosts();
    if patterns.is_empty() {
        return BTreeSet::from([None]);
    }
    let signatures = patterns.iter().map(HostPattern::signature);
    signatures.map(Some).collect()
}

/// `a`, `b` and 7 more.
fn named<T: AsRef<str>>(names: &[T]) -> String {
    let shown = |name: &T| format!("`{}`", shortened(name.as_ref()));
    let mut parts: Vec<_> = names.iter().take(NAMED).map(shown).collect();
    if let Some(more) = names.len().checked_sub(NAMED).filter(|more| *more > 0) {
        parts.push(format!("{more} more"));
    }
    let last = parts.pop().unwrap_or_default();
    match parts.is_empty() {
        true => last,
        false => format!("{} and {last}", parts.join(", ")),
    }
}
