//! Destinations apart from the rules of their cluster.

use std::sync::Arc;

use proxy_model::config::{ClusterConfig, ProxyConfig};
use proxy_model::{ClusterId, CompileOptions, DestinationId, Snapshot};

use crate::discovery::Destinations;

/// Number of times that a cluster is compiled to find its unusable destinations. Each compilation reports a
/// limited number of them.
const ATTEMPTS: usize = 8;

/// Returns a cluster's settings with these destinations, except unusable ones. `None` if the settings are
/// unusable, or all of the destinations.
pub(crate) fn with_destinations(
    settings: &ClusterConfig,
    destinations: &Destinations,
    compile: &CompileOptions,
) -> Option<ClusterConfig> {
    let id = ClusterId::from("c");
    let mut cluster = settings.clone();
    cluster.destinations.clone_from(destinations);
    for _ in 0..ATTEMPTS {
        let mut alone = ProxyConfig::default();
        alone.clusters.insert(id.clone(), cluster.clone());
        let Err(problems) = Snapshot::compile(Arc::new(alone), compile) else {
            return Some(cluster);
        };
        let before = cluster.destinations.len();
        for problem in problems.errors() {
            cluster
                .destinations
                .shift_remove(&destination_at(&problem.pointer)?);
        }
        let left = cluster.destinations.len();
        if left == before || left == 0 {
            return None;
        }
    }
    None
}

/// Adds the destinations that served `before`, and that the source could not read now, to the clusters of
/// the same id. Returns their number.
pub(crate) fn add_unread(
    config: &mut ProxyConfig,
    before: &ProxyConfig,
    unread: &[Arc<str>],
) -> usize {
    let mut added = 0;
    for (id, cluster) in &mut config.clusters {
        let Some(before) = before.clusters.get(id) else {
            continue;
        };
        for (id, destination) in &before.destinations {
            let is_unread = unread.iter().any(|of| id.as_str().starts_with(&**of));
            if is_unread && !cluster.destinations.contains_key(id) {
                cluster.destinations.insert(id.clone(), destination.clone());
                added += 1;
            }
        }
    }
    added
}

/// Returns true if a destination has an id that begins like this.
pub(crate) fn has_any(config: &ProxyConfig, beginning: &str) -> bool {
    let mut destinations = config
        .clusters
        .values()
        .flat_map(|of| of.destinations.keys());
    destinations.any(|id| id.as_str().starts_with(beginning))
}

/// The destination that a pointer into a configuration is about: `/Clusters/c/Destinations/d/Address`.
fn destination_at(pointer: &str) -> Option<DestinationId> {
    let mut tokens = pointer.split('/').skip(1);
    let is_cluster = tokens.next()? == "Clusters" && tokens.next().is_some();
    let is_destination = is_cluster && tokens.next()? == "Destinations";
    let id = tokens.next().filter(|_| is_destination)?;
    Some(DestinationId::from(
        id.replace("~1", "/").replace("~0", "~"),
    ))
}

#[cfg(test)]
mod tests {
    use proxy_model::config::DestinationConfig;

    use super::*;

    fn destinations(addresses: &[&str]) -> Destinations {
        let destination = |(i, address): (usize, &&str)| {
            let config = DestinationConfig {
                address: (*address).to_owned(),
                ..Default::default()
            };
            (DestinationId::from(format!("a/{i}")), config)
        };
        addresses.iter().enumerate().map(destination).collect()
    }

    fn left(settings: &ClusterConfig, addresses: &[&str]) -> Option<Vec<String>> {
        let found = with_destinations(
            settings,
            &destinations(addresses),
            &CompileOptions::default(),
        );
        let addresses = |cluster: ClusterConfig| {
            let destinations = cluster.destinations.into_values();
            destinations
                .map(|destination| destination.address)
                .collect()
        };
        found.map(addresses)
    }

    #[test]
    fn unusable_destinations_are_left_out_alone() {
        let settings = ClusterConfig::default();
        let of = |addresses: &[&str]| left(&settings, addresses);
        assert_eq!(
            of(&["http://1", "http://2"]).unwrap(),
            ["http://1", "http://2"]
        );
        assert_eq!(of(&["http://1", "htp:/x"]).unwrap(), ["http://1"]);
        assert_eq!(of(&[]).unwrap(), [""; 0]);
        // Its location is unknown then, which differs from having no location.
        assert_eq!(of(&["htp:/x", "htp:/y"]), None);
        // More than one report of problems shows.
        let mut many = vec!["htp:/x"; 900];
        many.push("http://1");
        assert_eq!(of(&many).unwrap(), ["http://1"]);
    }

    #[test]
    fn unusable_settings_stay_unusable() {
        let settings = ClusterConfig {
            load_balancing_policy: Some("Nonsense".to_owned()),
            ..Default::default()
        };
        assert_eq!(left(&settings, &["http://1"]), None);
    }
}
