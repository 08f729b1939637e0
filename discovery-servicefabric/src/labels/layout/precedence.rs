//! The routes of a service that gain precedence over others only because they get methods.
//!
//! Labels may hold very many routes with very many hosts. Therefore routes are not compared in pairs: those that
//! may lose precedence are found by their hosts, and each host is looked up once.

use std::cmp::Reverse;
use std::collections::HashMap;
use std::collections::hash_map::Entry;

use discovery_core::labels::LabelNode;
use proxy_model::Problem;
use proxy_model::matching::HostPattern;

use super::roles::is_safe;
use crate::labels::read::{Labelled, Roles, ServiceRoute};

/// Warns if a route gains precedence over another one only through its added methods: the other one had
/// methods before, and this one had none.
pub(super) fn warn(root: &LabelNode<'_>, labelled: &Labelled) {
    if labelled.settings.roles != Roles::ByMethod {
        return;
    }
    let mut sets = HostSets::default();
    let mut open = Vec::new();
    let mut listed = Vec::new();
    let own = labelled.routes.iter().filter(|r| !r.goes_elsewhere());
    for (position, route) in own.enumerate() {
        let methods = route.config.r#match.methods.as_deref().unwrap_or_default();
        let ranked = || Ranked::of(route, position);
        match methods {
            [] => open.push(ranked().numbered(&mut sets)),
            _ if methods.iter().any(|method| is_safe(method)) => {
                listed.push(ranked().numbered(&mut sets));
            }
            _ => {}
        }
    }
    let mut places: HashMap<&Place, ListedRoutes<'_>> = HashMap::new();
    for route in &listed {
        places.entry(&route.place).or_default().add(route);
    }
    for route in &open {
        let overtaken = places
            .get(&route.place)
            .and_then(|listed| listed.overtaken_by(route));
        let Some(overtaken) = overtaken else {
            continue;
        };
        let message = format!(
            "reads of this route are told by their methods, so it now comes before the route `{}` for these",
            overtaken.name
        );
        let pointer = root.locate(["Routes", route.name]);
        let problem = Problem::warning(pointer, "changed_precedence", message);
        root.report(problem.with_suggestion("give the routes different `Order`s"));
    }
}

/// The criteria that are compared before methods: the order, and the path without the names of its
/// parameters.
type Place = (i32, Option<String>);

/// A route with what decides which of several comes first.
#[derive(Debug)]
struct Ranked<'l> {
    name: &'l str,
    place: Place,
    /// The hosts in a comparable form, sorted, each once.
    hosts: Vec<String>,
    /// Equal for equal hosts.
    set: usize,
    /// True if no host is a pattern.
    is_exact: bool,
    /// The criteria that are compared after hosts; less comes first.
    rank: (Reverse<usize>, Reverse<usize>, usize),
}

/// Numbers of sets of hosts.
#[derive(Debug, Default)]
struct HostSets(HashMap<Vec<String>, usize>);

impl<'l> Ranked<'l> {
    fn of(route: &'l ServiceRoute, position: usize) -> Self {
        let criteria = &route.config.r#match;
        let hosts = criteria.hosts.iter().flatten();
        let mut hosts: Vec<String> = hosts.map(|host| comparable(host)).collect();
        hosts.sort_unstable();
        hosts.dedup();
        Self {
            name: route.name(),
            place: (
                route.config.order.unwrap_or_default(),
                criteria.path.as_deref().map(shape),
            ),
            is_exact: hosts.iter().all(|host| !host.contains('*')),
            hosts,
            set: 0,
            rank: (
                Reverse(criteria.headers.as_ref().map_or(0, Vec::len)),
                Reverse(criteria.query_parameters.as_ref().map_or(0, Vec::len)),
                position,
            ),
        }
    }

    fn numbered(mut self, sets: &mut HostSets) -> Self {
        let next = sets.0.len();
        self.set = *sets.0.entry(self.hosts.clone()).or_insert(next);
        self
    }

    fn position(&self) -> usize {
        self.rank.2
    }
}

/// Routes at one place that have methods, among them methods of reads.
#[derive(Debug, Default)]
struct ListedRoutes<'r> {
    /// The last route of each set of hosts.
    last: HashMap<usize, &'r Ranked<'r>>,
    /// A route for every host.
    everywhere: Option<&'r Ranked<'r>>,
    /// A route with a host pattern.
    with_pattern: Option<&'r Ranked<'r>>,
    with_hosts: Two<'r>,
    /// Routes without a host pattern, by each of their hosts.
    by_host: HashMap<&'r str, Two<'r>>,
}

/// Up to two routes whose host sets differ. Two are enough: any further route differs from at least one of them.
#[derive(Debug, Default)]
struct Two<'r>(Option<&'r Ranked<'r>>, Option<&'r Ranked<'r>>);

impl<'r> Two<'r> {
    fn add(&mut self, route: &'r Ranked<'r>) {
        match self.0 {
            None => self.0 = Some(route),
            Some(first) if first.set != route.set => {
                self.1.get_or_insert(route);
            }
            Some(_) => {}
        }
    }

    fn with_other_hosts(&self, route: &Ranked<'_>) -> Option<&'r Ranked<'r>> {
        let mut both = [self.0, self.1].into_iter().flatten();
        both.find(|one| one.set != route.set)
    }
}

impl<'r> ListedRoutes<'r> {
    fn add(&mut self, route: &'r Ranked<'r>) {
        match self.last.entry(route.set) {
            Entry::Vacant(entry) => {
                entry.insert(route);
            }
            Entry::Occupied(mut entry) if entry.get().rank < route.rank => {
                entry.insert(route);
            }
            Entry::Occupied(_) => {}
        }
        if route.hosts.is_empty() {
            self.everywhere.get_or_insert(route);
            return;
        }
        self.with_hosts.add(route);
        if !route.is_exact {
            self.with_pattern.get_or_insert(route);
            return;
        }
        for host in &route.hosts {
            self.by_host.entry(host).or_default().add(route);
        }
    }

    /// The first of those that were found.
    fn overtaken_by(&self, open: &Ranked<'_>) -> Option<&'r Ranked<'r>> {
        self.found(open).min_by_key(|route| route.position())
    }

    /// Routes that `open` may come before: at most one for each of its hosts, and four.
    fn found(&self, open: &Ranked<'_>) -> impl Iterator<Item = &'r Ranked<'r>> {
        // Equal hosts do not distinguish routes.
        let alike = self.last.get(&open.set).copied();
        let alike = alike.filter(|route| open.rank < route.rank);
        let has_hosts = !open.hosts.is_empty();
        let everywhere = self.everywhere.filter(|_| has_hosts);
        // Which of them is more specific depends on the request.
        let with_pattern = self
            .with_pattern
            .filter(|route| has_hosts && route.set != open.set);
        let by_pattern = match open.is_exact {
            true => None,
            false => self.with_hosts.with_other_hosts(open),
        };
        // Others without a pattern share a host, or no request is for both.
        let shared = open.hosts.iter().filter(|_| open.is_exact);
        let shared = shared.filter_map(|host| self.by_host.get(host.as_str()));
        let shared = shared.filter_map(|two| two.with_other_hosts(open));
        [alike, everywhere, with_pattern, by_pattern]
            .into_iter()
            .flatten()
            .chain(shared)
    }
}

/// Returns a host in the form that all spellings of it have. An invalid one is reported where routes are compiled.
fn comparable(host: &str) -> String {
    HostPattern::parse(host).map_or_else(|_| host.to_ascii_lowercase(), |host| host.to_ascii())
}

/// A path with parameters without names, since names do not affect matching.
fn shape(path: &str) -> String {
    let mut shape = String::with_capacity(path.len());
    let mut in_name = false;
    for c in path.trim_matches('/').chars() {
        in_name = match c {
            '{' => true,
            '}' | ':' | '=' | '?' => false,
            '*' => in_name,
            _ if in_name => continue,
            _ => false,
        };
        shape.push(c.to_ascii_lowercase());
    }
    shape
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use proptest::sample::select;

    use super::*;

    fn ranked(hosts: &[String], headers: usize, position: usize) -> Ranked<'static> {
        let mut hosts = hosts.to_vec();
        hosts.sort_unstable();
        hosts.dedup();
        Ranked {
            name: "r",
            place: (0, None),
            is_exact: hosts.iter().all(|host| !host.contains('*')),
            hosts,
            set: 0,
            rank: (Reverse(headers), Reverse(0), position),
        }
    }

    /// The reference check, for two routes.
    fn may_overtake(open: &Ranked<'_>, listed: &Ranked<'_>) -> bool {
        match (open.hosts.is_empty(), listed.hosts.is_empty()) {
            (false, true) => true,
            (true, false) => false,
            _ if open.hosts == listed.hosts => open.rank < listed.rank,
            _ if open.is_exact && listed.is_exact => {
                open.hosts.iter().any(|host| listed.hosts.contains(host))
            }
            _ => true,
        }
    }

    fn any_route() -> impl Strategy<Value = (Vec<String>, usize)> {
        let host = select(vec!["a", "b", "c", "*.a", "*.b"]).prop_map(str::to_owned);
        (prop::collection::vec(host, 0..3), 0_usize..2)
    }

    proptest! {
        #[test]
        fn what_is_found_by_hosts_is_what_comparing_all_would_find(
            routes in prop::collection::vec(any_route(), 1..8),
            open in any_route(),
            place in 0_usize..8,
        ) {
            let mut sets = HostSets::default();
            let listed: Vec<_> = routes
                .iter()
                .enumerate()
                .map(|(i, (hosts, headers))| ranked(hosts, *headers, 2 * i).numbered(&mut sets))
                .collect();
            let open = ranked(&open.0, open.1, 2 * place + 1).numbered(&mut sets);
            let mut index = ListedRoutes::default();
            for route in &listed {
                index.add(route);
            }
            let expected = listed.iter().any(|listed| may_overtake(&open, listed));
            prop_assert_eq!(index.overtaken_by(&open).is_some(), expected);
            for found in index.found(&open) {
                prop_assert!(may_overtake(&open, found), "{:?}", found);
            }
        }
    }

    /// 150 routes beside 150 others, of 301 hosts each, are two thousand million pairs of hosts.
    #[test]
    fn the_work_grows_with_the_number_of_hosts_and_not_of_pairs() {
        let mut sets = HostSets::default();
        let mut route = |i: usize, kind: &str| {
            let own = (0..300).map(|host| format!("{kind}{i}-{host}.example"));
            let hosts: Vec<String> = own.chain(["shared.example".to_owned()]).collect();
            ranked(&hosts, 0, i).numbered(&mut sets)
        };
        let listed: Vec<_> = (0..150).map(|i| route(i, "listed")).collect();
        let open: Vec<_> = (150..300).map(|i| route(i, "open")).collect();
        let mut index = ListedRoutes::default();
        for route in &listed {
            index.add(route);
        }
        let kept: usize = index
            .by_host
            .values()
            .map(|two| two.0.iter().chain(&two.1).count())
            .sum();
        assert_eq!(kept, 150 * 300 + 2, "two of the host that all share");
        for route in &open {
            assert_eq!(index.found(route).count(), 1);
            assert_eq!(index.overtaken_by(route).unwrap().position(), 0);
        }
    }
}
