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

fn named(hosts: impl IntoIterator<Item = String>) -> Destinations {
    let destinations = hosts.into_iter().map(|host| {
        let address = format!("http://{host}");
        let destination = DestinationConfig {
            address,
            ..Default::default()
        };
        (proxy_model::DestinationId::new(host), destination)
    });
    destinations.collect()
}

#[tokio::test(start_paused = true)]
async fn a_name_that_hangs_costs_the_others_nothing() {
    let lookup = ScriptedLookup::new();
    for name in ["a", "b", "hung"] {
        lookup.set(name, &["10.0.0.1"]);
    }
    let resolver = DnsResolver::with_lookup(lookup.clone());
    let destinations = named(["hung", "10.9.9.9", "a", "b"].map(str::to_owned));
    resolve(&resolver, &destinations).await;
    lookup.hang("hung");
    lookup.set("a", &["10.0.0.2"]);
    lookup.fail("b");
    let begun = tokio::time::Instant::now();
    let resolved = resolve(&resolver, &destinations).await;
    assert!(begun.elapsed() < Duration::from_millis(2100));
    let ids: Vec<_> = resolved.destinations.keys().map(|id| id.as_str()).collect();
    assert_eq!(
        ids,
        ["hung[10.0.0.1]", "10.9.9.9", "a[10.0.0.2]", "b[10.0.0.1]"]
    );
    let problems: Vec<_> = resolved.problems.iter().map(ToString::to_string).collect();
    assert_eq!(problems.len(), 2, "{problems:?}");
    assert!(
        problems[0].contains("the look-up did not end within 2s"),
        "{problems:?}"
    );
}

/// Takes a second for every name.
struct Slow;

#[async_trait]
impl Lookup for Slow {
    async fn lookup(&self, _: &str) -> std::io::Result<Vec<std::net::IpAddr>> {
        tokio::time::sleep(Duration::from_secs(1)).await;
        Ok(vec![std::net::Ipv4Addr::LOCALHOST.into()])
    }
}

#[tokio::test(start_paused = true)]
async fn names_are_looked_up_side_by_side() {
    let resolver = DnsResolver::with_lookup(Slow);
    let begun = tokio::time::Instant::now();
    let names = || (0..24).map(|n| format!("name{n}"));
    let resolved = resolve(&resolver, &named(names())).await;
    assert_eq!(resolved.destinations.len(), 24);
    assert!(begun.elapsed() < Duration::from_millis(2100));
}

/// More names hang than there is time for, until the resolver knows which ones hang.
#[tokio::test(start_paused = true)]
async fn names_that_hang_get_out_of_the_way() {
    let lookup = ScriptedLookup::new();
    let hung: Vec<String> = (0..100).map(|n| format!("hung{n}")).collect();
    for name in &hung {
        lookup.hang(name);
    }
    lookup.set("good", &["10.0.0.1"]);
    let resolver = DnsResolver::with_lookup(lookup);
    let destinations = named(hung.into_iter().chain(["good".to_owned()]));
    for _ in 0..4 {
        let begun = tokio::time::Instant::now();
        resolve(&resolver, &destinations).await;
        assert!(begun.elapsed() < Duration::from_millis(4600));
    }
    assert_eq!(
        resolve(&resolver, &destinations).await.destinations.len(),
        1
    );
}

#[tokio::test]
async fn what_is_remembered_is_what_is_configured() {
    let lookup = ScriptedLookup::new();
    let resolver = DnsResolver::with_lookup(lookup.clone());
    let names = |range: std::ops::Range<usize>| named(range.map(|n| format!("name{n}")));
    for n in 0..10_500 {
        lookup.set(&format!("name{n}"), &["10.0.0.1"]);
    }
    let resolved = resolve(&resolver, &names(0..10_050)).await;
    assert_eq!(resolved.destinations.len(), 10_050);
    for n in 0..10_500 {
        lookup.fail(&format!("name{n}"));
    }
    // However many they are.
    let resolved = resolve(&resolver, &names(0..10_050)).await;
    assert_eq!(resolved.destinations.len(), 10_050);

    let other = ClusterId::from("other");
    resolver.resolve(&other, &names(0..10)).await.unwrap();
    resolve(&resolver, &names(5..20)).await;
    assert_eq!(resolver.names().len(), 20);
    resolver.forget(&other);
    assert_eq!(resolver.names().len(), 15);
    resolver.forget(&ClusterId::from("c"));
    assert_eq!(resolver.names().len(), 0);
}

#[tokio::test]
async fn services_become_servers_with_their_ports_weights_and_priorities() {
    let lookup = ScriptedLookup::new();
    let name = "_http._tcp.orders.example";
    lookup.set_servers(
        name,
        &[
            (20, 0, "c.example", 8080),
            (10, 60, "a.example", 80),
            (10, 0, "b.example", 8443),
            // None of these can be connected to.
            (10, 1, "", 80),
            (10, 1, "d.example", 0),
        ],
    );
    let resolver = DnsResolver::with_lookup(lookup.clone());
    let mut destinations = one(&format!("http://{name}/base"), None, None);
    destinations[0].health = Some(format!("http://{name}/health"));
    destinations[0].priority = Some(5);
    let resolved = resolve(&resolver, &destinations).await;
    assert!(resolved.problems.is_empty(), "{}", resolved.problems);
    assert_eq!(
        shown(&resolved),
        [
            "d1[b.example:8443] http://b.example:8443/base http://b.example:8443/health -",
            "d1[a.example:80] http://a.example/base http://a.example/health -",
            "d1[c.example:8080] http://c.example:8080/base http://c.example:8080/health -",
        ]
    );
    let ranks: Vec<_> = resolved
        .destinations
        .values()
        .map(|d| (d.priority, d.weight))
        .collect();
    // Without weight: a small chance beside others, and the whole of it alone.
    assert_eq!(
        ranks,
        [
            (Some(5), Some(1)),
            (Some(5), Some(600)),
            (Some(6), Some(300))
        ]
    );

    lookup.fail(name);
    let resolved = resolve(&resolver, &destinations).await;
    assert_eq!(resolved.destinations.len(), 3, "the last ones serve on");
    assert!(!resolved.problems.is_empty() && !resolved.problems.has_errors());
}

/// The servers of a service keep their share beside other destinations, whatever the weights of records are.
#[tokio::test]
async fn weights_of_records_change_nothing_for_other_destinations() {
    let lookup = ScriptedLookup::new();
    let name = "_http._tcp.orders.example";
    let mut destinations = one(&format!("http://{name}/"), None, None);
    let mut fixed = destinations[0].clone();
    fixed.address = "http://10.0.0.1/".to_owned();
    destinations.insert("fixed".into(), fixed);
    let resolver = DnsResolver::with_lookup(lookup.clone());
    for (weights, expected) in [
        // The destination without a name has a third of all requests each time.
        ([1, 1], [3, 3, 3]),
        ([10, 10], [3, 3, 3]),
        ([10, 11], [286, 314, 300]),
        ([10, 30], [150, 450, 300]),
        ([0, 1], [1, 600, 300]),
    ] {
        let [a, b] = weights;
        lookup.set_servers(name, &[(1, a, "a.example", 80), (1, b, "b.example", 80)]);
        let resolved = resolve(&resolver, &destinations).await;
        let mut found: Vec<_> = resolved.destinations.iter().collect();
        found.sort_by_key(|(id, _)| (id.as_str() == "fixed", id.to_string()));
        let found: Vec<_> = found.iter().map(|(_, d)| d.weight.unwrap()).collect();
        assert_eq!(found, expected, "{weights:?}");
    }
    // The greatest weight stays the greatest.
    destinations[0].weight = Some(proxy_model::MAX_WEIGHT);
    destinations[1].weight = Some(0);
    let resolved = resolve(&resolver, &destinations).await;
    let mut weights: Vec<_> = resolved.destinations.values().map(|d| d.weight).collect();
    weights.sort_unstable();
    assert_eq!(weights, [Some(0), Some(1), Some(proxy_model::MAX_WEIGHT)]);
}

#[tokio::test]
async fn the_system_does_not_know_services() {
    let resolver = DnsResolver::new();
    let resolved = resolve(
        &resolver,
        &one("http://_http._tcp.orders.example/", None, None),
    )
    .await;
    assert!(resolved.destinations.is_empty());
    assert!(
        resolved
            .problems
            .to_string()
            .contains("SRV records cannot be looked up")
    );
}

#[tokio::test]
async fn names_are_looked_up_when_their_addresses_are_not_valid_any_more() {
    let lookup = ScriptedLookup::new();
    lookup.set("name", &["10.0.0.1"]);
    let resolver = DnsResolver::with_lookup(lookup.clone());
    for (valid, expected) in [(7, 7), (0, 1), (3600, 60)] {
        lookup.valid_for(Duration::from_secs(valid));
        let resolved = resolve(&resolver, &one("http://name", None, None)).await;
        assert_eq!(
            resolved.refresh_after,
            Some(Duration::from_secs(expected)),
            "{valid}"
        );
    }
}
