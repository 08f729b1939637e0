//! The order among routes of different services that match the same requests: the one that serves keeps them.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use proxy_model::RouteId;
use proxy_model::config::{ProxyConfig, RouteConfig, RouteMatch};
use proxy_model::matching::HostPattern;

use super::settling::Parts;

/// The routes that came after others, each with the number of the change that brought it. All others are as old as the
/// configuration.
#[derive(Debug, Default)]
pub(super) struct Seniority {
    later: HashMap<RouteId, u64>,
    /// Number of the last change.
    changes: u64,
}

impl Seniority {
    /// Takes over the numbers that were kept on disk.
    pub(super) fn restore(&mut self, later: BTreeMap<RouteId, u64>) {
        let last = later.values().copied().max().unwrap_or_default();
        self.changes = self.changes.max(last);
        self.later.extend(later);
    }

    /// The numbers of the routes of one service.
    pub(super) fn of(&self, fragment: &ProxyConfig) -> BTreeMap<RouteId, u64> {
        let ids = fragment.routes.keys();
        let later = ids.filter_map(|id| Some((id.clone(), *self.later.get(id)?)));
        later.collect()
    }

    /// Notes a change from one configuration to another. A route with other criteria than before is a new one.
    pub(super) fn note(&mut self, before: &ProxyConfig, parts: &Parts) {
        let is_first = before.routes.is_empty();
        let change = self.changes.saturating_add(1);
        let mut later = HashMap::new();
        for part in parts.iter() {
            let mut routes: Vec<_> = (part.routes.iter())
                .map(|(id, route)| {
                    let known = before.routes.get(id);
                    let is_known = known.is_some_and(|known| takes_the_same(known, route));
                    let number = match is_known || is_first {
                        true => self.later.get(id).copied().unwrap_or_default(),
                        false => change,
                    };
                    (id, route, number)
                })
                .collect();
            // Among routes of one service the written order decides.
            for at in (0..routes.len()).rev() {
                let (_, route, number) = routes[at];
                let equal = |other: &&(&RouteId, &RouteConfig, u64)| takes_the_same(route, other.1);
                if number == change
                    && let Some((.., elder)) = routes[at + 1..].iter().find(equal)
                {
                    routes[at].2 = *elder;
                }
            }
            let numbered = routes.iter().filter(|(.., number)| *number > 0);
            later.extend(numbered.map(|(id, _, number)| ((*id).clone(), *number)));
        }
        if later.values().any(|number| *number == change) {
            self.changes = change;
        }
        self.later = later;
    }

    /// Puts the routes that came later behind the others.
    pub(super) fn arrange(&self, config: &mut ProxyConfig) {
        if !self.later.is_empty() {
            let number = |id: &RouteId| self.later.get(id).copied().unwrap_or_default();
            config
                .routes
                .sort_by(|a, _, b, _| number(a).cmp(&number(b)));
        }
    }
}

fn takes_the_same(a: &RouteConfig, b: &RouteConfig) -> bool {
    if a.order.unwrap_or_default() != b.order.unwrap_or_default() {
        return false;
    }
    let (a, b) = (&a.r#match, &b.r#match);
    match (&a.hosts, &b.hosts) {
        (Some(of_a), Some(of_b)) if of_a != of_b => {
            let respelled = RouteMatch {
                hosts: Some(of_b.clone()),
                ..a.clone()
            };
            hosts(of_a) == hosts(of_b) && respelled == *b
        }
        _ => a == b,
    }
}

/// The hosts in one spelling: neither their order nor the difference between punycode and Unicode is relevant.
fn hosts(hosts: &[String]) -> BTreeSet<String> {
    let ascii = |host: &String| HostPattern::parse(host).map(|host| host.to_ascii());
    let spelled = |host| ascii(host).unwrap_or_else(|_| host.clone());
    hosts.iter().map(spelled).collect()
}
