//! Tests of the options.

use std::time::Duration;

use super::*;

#[test]
fn clusters_are_balanced_and_probed_as_the_options_say() {
    let health = HealthOptions::default()
        .with_interval(Duration::from_secs(7))
        .with_timeout(Duration::from_secs(3))
        .with_path("/alive");
    let options = GenerateOptions::default()
        .with_load_balancing_policy("LeastRequests")
        .with_health(health);
    let own = member("n2", "10.0.0.2", "orders", &[("health-path", "/health")]);
    let config = whole(&discover_with(&[orders(&[]), own], &options));
    let cluster = &config.clusters[0];
    assert_eq!(
        cluster.load_balancing_policy.as_deref(),
        Some("LeastRequests")
    );
    let active = cluster
        .health_check
        .as_ref()
        .unwrap()
        .active
        .as_ref()
        .unwrap();
    assert_eq!(active.path.as_deref(), Some("/alive"));
    assert_eq!(active.interval, Some(Duration::from_secs(7).into()));
    assert_eq!(active.timeout, Some(Duration::from_secs(3).into()));
    let own = of_each(cluster, |d| d.health_path.clone());
    assert_eq!(own[1].1.as_deref(), Some("/health"));
}

#[test]
fn probes_can_be_off() {
    let options =
        GenerateOptions::default().with_health(HealthOptions::default().with_enabled(false));
    let own = member("n2", "10.0.0.2", "orders", &[("health-path", "/h")]);
    let config = whole(&discover_with(&[orders(&[]), own], &options));
    assert_eq!(config.clusters[0].health_check, None);
    let own = of_each(&config.clusters[0], |d| d.health_path.clone());
    assert_eq!(own.iter().filter(|(_, path)| path.is_some()).count(), 0);
}

#[test]
fn informational_tags_can_stay_out() {
    let members = [orders(&[("version", "v1"), ("region", "eu")])];
    let config = whole(&discover(&members));
    let keys = |config: &ProxyConfig| -> Vec<String> {
        let metadata = config.clusters[0].destinations[0].metadata.clone();
        metadata.unwrap().keys().cloned().collect()
    };
    assert_eq!(keys(&config), ["Weight", "Version", "Region"]);
    let options = GenerateOptions::default().with_informational_tags(false);
    assert_eq!(keys(&whole(&discover_with(&members, &options))), ["Weight"]);
}

#[test]
fn options_that_cannot_be_used_harm_no_service() {
    let options = GenerateOptions::default()
        .with_version_header("X Version")
        .with_region_header("")
        .with_health(HealthOptions::default().with_path("/a b"));
    let discovery = discover_with(&[orders(&[("version", "v1"), ("region", "eu")])], &options);
    let config = whole(&discovery);
    assert_eq!(clusters(&config), ["service:orders"]);
    assert_eq!(
        told(&discovery),
        [
            "/VersionHeader invalid_header_name",
            "/RegionHeader invalid_header_name",
            "/HealthCheck/Path invalid_probe_path",
        ]
    );
    let options = GenerateOptions::default()
        .with_version_header("X-Part")
        .with_region_header("x-part");
    let discovery = discover_with(&[orders(&[("version", "v1"), ("region", "eu")])], &options);
    assert_eq!(
        clusters(&whole(&discovery)),
        ["service:orders", "service:orders@version=v1"]
    );
    assert_eq!(told(&discovery), ["/RegionHeader duplicate_header"]);
}
