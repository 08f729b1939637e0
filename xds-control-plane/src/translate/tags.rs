//! The settings in tags of services that are not in the registry.

use std::collections::BTreeMap;
use std::time::Duration;

use discovery_core::text::shortened;

use super::defaults::{least_of, parse_time};
use super::model::{CatalogService, Instance, Limits};
use super::names::usable_domain;

const DOMAIN: &str = "domain-";
const SETTING: &str = "envoy.settings.upstream.";

/// The settings in the tags of a service.
#[derive(Debug, Default, PartialEq)]
pub(super) struct TagSettings {
    /// The domains in lower case, sorted by name.
    pub(super) domains: Vec<String>,
    pub(super) timeout: Option<Duration>,
    pub(super) limits: Limits,
    /// The problems of tags: a code and a message.
    pub(super) problems: Vec<(&'static str, String)>,
}

/// Returns true if a service opted in to be served.
pub(super) fn asks_to_be_served(service: &CatalogService) -> bool {
    let mut datacenters = service.datacenters.values();
    datacenters.any(|instances| ask_to_be_served(instances))
}

pub(super) fn ask_to_be_served(instances: &[Instance]) -> bool {
    let mut tags = instances.iter().flat_map(|instance| &instance.tags);
    tags.any(|tag| tag.starts_with(DOMAIN))
}

/// Reads the tags of all instances of all datacenters, healthy or not.
///
/// If instances differ, the one with the smallest id counts, then node, then datacenter. That is the same
/// in each replica of each datacenter.
pub(super) fn read(service: &CatalogService) -> TagSettings {
    let mut instances: Vec<_> = service
        .datacenters
        .iter()
        .flat_map(|(datacenter, instances)| {
            instances.iter().map(move |instance| (datacenter, instance))
        })
        .collect();
    instances.sort_by_key(|(datacenter, instance)| (&instance.id, &instance.node, *datacenter));
    let mut settings = TagSettings::default();
    let mut said: BTreeMap<&str, &str> = BTreeMap::new();
    let mut domains = BTreeMap::new();
    for tag in instances.iter().flat_map(|(_, instance)| &instance.tags) {
        if let Some(domain) = tag.strip_prefix(DOMAIN) {
            domains
                .entry(domain)
                .or_insert_with(|| usable_domain(domain));
        } else if let Some((key, value)) = tag
            .strip_prefix(SETTING)
            .and_then(|tag| tag.split_once('='))
        {
            let first = *said.entry(key).or_insert(value);
            if first != value {
                let message = format!(
                    "instances say {SETTING}{} = {} and {}; the first counts",
                    shortened(key, 60),
                    shortened(first, 60),
                    shortened(value, 60)
                );
                settings.problem("tags_differ", message);
            }
        }
    }
    for (domain, usable) in domains {
        match usable {
            Ok(domain) => settings.domains.push(domain),
            Err(why) => settings.problem(
                "bad_domain",
                format!(
                    "the tag {DOMAIN}{} is ignored: the domain {why}",
                    shortened(domain, 60)
                ),
            ),
        }
    }
    settings.domains.sort();
    settings.domains.dedup();
    for (key, value) in said {
        settings.take(key, value);
    }
    settings
}

impl TagSettings {
    fn problem(&mut self, code: &'static str, message: String) {
        const MOST: usize = 20;
        if self.problems.len() < MOST && !self.problems.iter().any(|(_, known)| *known == message) {
            self.problems.push((code, message));
        }
    }

    fn take(&mut self, key: &str, value: &str) {
        let number = || value.parse().ok().filter(|number| *number >= least_of(key));
        let is_good = match key {
            "timeout" => {
                // Seconds, with their unit: a number without one could be anything.
                let time = value.ends_with('s').then(|| parse_time(value)).flatten();
                self.timeout = time.filter(|_| !value.ends_with("ms"));
                self.timeout.is_some()
            }
            "max_connections" => set(&mut self.limits.max_connections, number()),
            "max_pending_requests" => set(&mut self.limits.max_pending_requests, number()),
            "max_requests" => set(&mut self.limits.max_requests, number()),
            "max_retries" => set(&mut self.limits.max_retries, number()),
            _ => {
                let message = format!(
                    "the tag {SETTING}{} is not known; known are timeout, max_connections, max_pending_requests, max_requests and max_retries",
                    shortened(key, 60)
                );
                return self.problem("unknown_tag", message);
            }
        };
        if !is_good {
            let expected = if key == "timeout" {
                "a time such as 30s"
            } else {
                "a whole number"
            };
            let message = format!(
                "the tag {SETTING}{key} is {}, and not {expected}; the default applies",
                shortened(value, 60)
            );
            self.problem("bad_tag", message);
        }
    }
}

fn set(field: &mut Option<u32>, value: Option<u32>) -> bool {
    *field = value;
    value.is_some()
}
