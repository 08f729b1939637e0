use proxy_model::config::DestinationConfig;

use super::*;
use crate::testing::ScriptedLookup;

fn one(address: &str, health: Option<&str>, host: Option<&str>) -> Destinations {
    let destination = DestinationConfig {
        address: address.to_owned(),
        health: health.map(str::to_owned),
        host: host.map(str::to_owned),
        weight: Some(3),
        ..Default::default()
    };
    [("d1".into(), destination)].into()
}

async fn resolve(resolver: &DnsResolver, destinations: &Destinations) -> Resolved {
    let cluster = ClusterId::from("c");
    let answer = resolver.resolve(&cluster, destinations).await;
    answer.expect("failures are problems")
}

/// The destinations as `id address health host`.
fn shown(resolved: &Resolved) -> Vec<String> {
    resolved
        .destinations
        .iter()
        .map(|(id, d)| {
            let health = d.health.as_deref().unwrap_or("-");
            let host = d.host.as_deref().unwrap_or("-");
            format!("{id} {} {health} {host}", d.address)
        })
        .collect()
}

#[tokio::test]
async fn names_become_addresses() {
    let lookup = ScriptedLookup::new();
    lookup.set("localhost", &["127.0.0.1"]);
    lookup.set("six.example", &["fd00::7"]);
    let resolver = DnsResolver::with_lookup(lookup);
    for (id, destinations, expected) in [
        (
            "E15",
            one(
                "http://localhost/a/b/c",
                Some("http://localhost/healthz"),
                None,
            ),
            "d1[127.0.0.1] http://127.0.0.1/a/b/c http://127.0.0.1/healthz localhost",
        ),
        (
            "E16",
            one(
                "http://localhost:8080/a/b/c",
                Some("http://localhost:8080/healthz"),
                None,
            ),
            "d1[127.0.0.1] http://127.0.0.1:8080/a/b/c http://127.0.0.1:8080/healthz localhost:8080",
        ),
        (
            "E17",
            one(
                "https://localhost:8443/a/b/c",
                Some("https://localhost:8443/healthz"),
                Some("overriddenhost"),
            ),
            "d1[127.0.0.1] https://127.0.0.1:8443/a/b/c https://127.0.0.1:8443/healthz overriddenhost",
        ),
        (
            "IPv6",
            one("http://six.example:81", None, None),
            "d1[fd00::7] http://[fd00::7]:81/ - six.example:81",
        ),
        (
            "an address stays",
            one("http://10.0.0.1:80", None, None),
            "d1 http://10.0.0.1:80 - -",
        ),
        (
            "so does an IPv6 one",
            one("http://[::1]:80", None, None),
            "d1 http://[::1]:80 - -",
        ),
        (
            "what is no URL is for others to judge",
            one("nonsense", None, None),
            "d1 nonsense - -",
        ),
    ] {
        let resolved = resolve(&resolver, &destinations).await;
        assert_eq!(shown(&resolved), [expected], "{id}");
        assert_eq!(resolved.destinations[0].weight, Some(3));
        assert!(resolved.problems.is_empty());
    }
}

#[tokio::test]
async fn addresses_are_sorted_and_each_is_there_once() {
    let lookup = ScriptedLookup::new();
    lookup.set("many", &["10.0.0.9", "10.0.0.10", "fd00::1", "10.0.0.9"]);
    let ids = |resolved: &Resolved| -> Vec<String> {
        resolved
            .destinations
            .keys()
            .map(ToString::to_string)
            .collect()
    };
    for (family, expected) in [
        (
            AddressFamily::Any,
            &["d1[10.0.0.9]", "d1[10.0.0.10]", "d1[fd00::1]"][..],
        ),
        (AddressFamily::V4, &["d1[10.0.0.9]", "d1[10.0.0.10]"]),
        (AddressFamily::V6, &["d1[fd00::1]"]),
    ] {
        let resolver = DnsResolver::with_lookup(lookup.clone()).with_family(family);
        let resolved = resolve(&resolver, &one("http://many", None, None)).await;
        assert_eq!(ids(&resolved), expected);
    }
    let many: Vec<String> = (0..4096)
        .map(|i| format!("10.1.{}.{}", i / 256, i % 256))
        .collect();
    let many: Vec<&str> = many.iter().map(String::as_str).collect();
    lookup.set("crowd", &many);
    let resolved = resolve(
        &DnsResolver::with_lookup(lookup),
        &one("http://crowd", None, None),
    )
    .await;
    assert_eq!(resolved.destinations.len(), 256);
}

#[tokio::test]
async fn a_name_keeps_its_last_addresses_and_is_asked_again_soon() {
    let lookup = ScriptedLookup::new();
    let resolver = DnsResolver::with_lookup(lookup.clone());
    let destinations = one("http://name", None, None);

    let resolved = resolve(&resolver, &destinations).await;
    assert!(resolved.destinations.is_empty());
    assert!(resolved.problems.has_errors());
    assert_eq!(resolved.refresh_after, Some(Duration::from_secs(5)));

    lookup.set("name", &["10.0.0.1"]);
    let resolved = resolve(&resolver, &destinations).await;
    assert!(resolved.problems.is_empty());
    assert_eq!(resolved.refresh_after, Some(Duration::from_secs(60)));

    for broken in [
        |l: &ScriptedLookup| l.fail("name"),
        |l: &ScriptedLookup| l.set("name", &[]),
    ] {
        broken(&lookup);
        let resolved = resolve(&resolver, &destinations).await;
        assert_eq!(shown(&resolved), ["d1[10.0.0.1] http://10.0.0.1/ - name"]);
        assert!(!resolved.problems.is_empty() && !resolved.problems.has_errors());
    }
}

#[tokio::test]
async fn addresses_need_no_refresh() {
    let resolver = DnsResolver::with_lookup(ScriptedLookup::new()).with_refresh(Duration::ZERO);
    let resolved = resolve(&resolver, &one("http://10.0.0.1", None, None)).await;
    assert_eq!(resolved.refresh_after, None);
    let resolved = resolve(&resolver, &one("http://name", None, None)).await;
    assert_eq!(resolved.refresh_after, Some(Duration::from_secs(1)));
}

#[tokio::test]
async fn the_system_knows_this_machine() {
    let resolved = resolve(
        &DnsResolver::new(),
        &one("http://localhost:81/x", None, None),
    )
    .await;
    assert!(!resolved.destinations.is_empty());
    for destination in resolved.destinations.values() {
        assert!(destination.address.contains("127.0.0.1") || destination.address.contains("[::1]"));
        assert_eq!(destination.host.as_deref(), Some("localhost:81"));
    }
}
