//! Virtual hosts: which routes are tried for which host, in which order.
//!
//! Envoy chooses a virtual host by the most specific domain and never looks into another one. The model
//! ranks all routes together, hosts being one criterion of several. So each domain that any route names
//! gets all routes that take requests to it, those without a host among them, in the order of precedence.

use std::collections::{BTreeMap, BTreeSet};

use proxy_model::compiled::Route;
use proxy_model::matching::RequestHost;
use xds_types::pb::envoy::config::route::v3::{Route as EnvoyRoute, VirtualHost};

use super::BridgeOptions;

/// The name that everything matches.
const ANY: &str = "*";

/// The routes by the names that their patterns have.
struct Hosts<'a> {
    routes: &'a [Route],
    by_name: BTreeMap<String, Vec<usize>>,
    /// The routes that accept requests to any host.
    anywhere: Vec<usize>,
    ports: BTreeSet<u16>,
    https: bool,
}

/// Returns the virtual hosts for `routes`. `written` has Envoy's forms of the routes in the same order.
pub(super) fn virtual_hosts(
    routes: &[Route],
    written: &[Option<EnvoyRoute>],
    options: &BridgeOptions,
) -> Vec<VirtualHost> {
    let hosts = Hosts::new(routes, options);
    let names = std::iter::once(ANY).chain(hosts.by_name.keys().map(String::as_str));
    let mut found = Vec::new();
    for name in names {
        for (domains, indices) in hosts.of_name(name) {
            let routes: Vec<EnvoyRoute> = (indices.iter())
                .filter_map(|index| written.get(*index)?.clone())
                .collect();
            if let (Some(first), false) = (domains.first(), routes.is_empty()) {
                found.push(VirtualHost {
                    name: first.clone(),
                    domains,
                    routes,
                    ..VirtualHost::default()
                });
            }
        }
    }
    found
}

impl<'a> Hosts<'a> {
    fn new(routes: &'a [Route], options: &BridgeOptions) -> Self {
        let mut hosts = Self {
            routes,
            by_name: BTreeMap::new(),
            anywhere: Vec::new(),
            ports: options.ports.iter().copied().collect(),
            https: options.https,
        };
        for (index, route) in routes.iter().enumerate() {
            let patterns = route.matcher().hosts();
            let mut anywhere = patterns.is_empty();
            for pattern in patterns {
                hosts.ports.extend(pattern.port());
                let name = name_of(&pattern.to_ascii(), pattern.port());
                if name == ANY {
                    anywhere = true;
                } else {
                    hosts.by_name.entry(name).or_default().push(index);
                }
            }
            if anywhere {
                hosts.anywhere.push(index);
            }
        }
        hosts
    }

    /// The domains of one name, those together that have the same routes in the same order.
    fn of_name(&self, name: &str) -> Vec<(Vec<String>, Vec<usize>)> {
        let candidates = self.candidates(name);
        let sample = self.sample(name);
        let mut groups: Vec<(Vec<String>, Vec<usize>)> = Vec::new();
        let mut add = |domain: String, authority: &str| {
            let host = RequestHost::parse(authority, self.https);
            let indices = self.in_order(&candidates, &host);
            match groups.iter_mut().find(|(_, known)| *known == indices) {
                Some((domains, _)) => domains.push(domain),
                None => groups.push((vec![domain], indices)),
            }
        };
        add(name.to_owned(), &sample);
        for port in &self.ports {
            add(format!("{name}:{port}"), &format!("{sample}:{port}"));
        }
        if !name.starts_with(ANY) {
            let other = (1..=u16::MAX)
                .find(|port| !self.ports.contains(port))
                .unwrap_or(1);
            add(format!("{name}:*"), &format!("{sample}:{other}"));
        }
        if name == ANY {
            // `*` has what these have, unless they differ.
            if let Some((domains, _)) = groups.first_mut() {
                domains.truncate(1);
            }
        }
        groups
    }

    /// The routes that may take requests to `name`.
    fn candidates(&self, name: &str) -> Vec<usize> {
        let mut found = self.anywhere.clone();
        let of = |name: &str| self.by_name.get(name).into_iter().flatten();
        found.extend(of(name));
        let mut rest = name.strip_prefix("*.").unwrap_or(name);
        while let Some((_, suffix)) = rest.split_once('.') {
            found.extend(of(&format!("*.{suffix}")));
            rest = suffix;
        }
        found.sort_unstable();
        found.dedup();
        found
    }

    /// Returns a host that `name` matches, and no more specific name.
    fn sample(&self, name: &str) -> String {
        let Some(suffix) = name.strip_prefix(ANY) else {
            return name.to_owned();
        };
        let mut number = 0_u64;
        loop {
            let sample = format!("any{number}{suffix}");
            if !self.by_name.contains_key(&sample) {
                return sample;
            }
            number += 1;
        }
    }

    /// Returns the `candidates` that accept requests to `host`, in the order in which they are tried.
    fn in_order(&self, candidates: &[usize], host: &RequestHost<'_>) -> Vec<usize> {
        let mut ranked: Vec<_> = (candidates.iter())
            .filter_map(|index| {
                let route = self.routes.get(*index)?;
                Some((route.matcher().precedence(route.order(), host)?, *index))
            })
            .collect();
        ranked.sort_unstable();
        ranked.into_iter().map(|(_, index)| index).collect()
    }
}

/// A pattern's name without its port.
fn name_of(pattern: &str, port: Option<u16>) -> String {
    let name = port.and_then(|port| pattern.strip_suffix(&format!(":{port}")));
    name.unwrap_or(pattern).to_owned()
}
