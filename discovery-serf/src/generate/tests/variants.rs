//! Tests of versions and regions that requests select.

use proxy_model::RequestHead;
use proxy_model::matching::Lookup;

use super::*;

fn options() -> GenerateOptions {
    GenerateOptions::default()
        .with_version_header("X-Version")
        .with_region_header("X-Region")
}

fn web(node: &str, address: &str, version: &str, region: &str) -> Member {
    let more = [
        ("route-path", "/web/{**rest}"),
        ("instance", node),
        ("version", version),
        ("region", region),
    ];
    member(node, address, "web", &more)
}

fn three() -> [Member; 3] {
    [
        web("a", "10.0.0.1", "stable", "eu"),
        web("b", "10.0.0.2", "stable", "us"),
        web("c", "10.0.0.3", "canary", "eu"),
    ]
}

struct Head<'h>(&'h [(&'h str, &'h str)]);

impl RequestHead for Head<'_> {
    fn method(&self) -> &str {
        "GET"
    }

    fn path(&self) -> &str {
        "/web/x"
    }

    fn query(&self) -> Option<&str> {
        None
    }

    fn authority(&self) -> &str {
        "any.local"
    }

    fn is_https(&self) -> bool {
        false
    }

    fn for_each_header(&self, name: &str, each: &mut dyn FnMut(&[u8]) -> bool) {
        for (other, value) in self.0 {
            if *other == name && !each(value.as_bytes()) {
                return;
            }
        }
    }
}

/// The ids of the destinations that a request with these headers can go to.
fn reached(config: &ProxyConfig, headers: &[(&str, &str)]) -> Vec<String> {
    let (snapshot, _) = Snapshot::compile(config.clone(), &CompileOptions::default()).unwrap();
    let Lookup::Matched(index) = snapshot.find(&Head(headers)) else {
        panic!("no route");
    };
    let route = snapshot.route_at(index);
    let id = route.config().cluster_id.as_ref().unwrap();
    cluster(config, id.as_str())
        .destinations
        .keys()
        .map(ToString::to_string)
        .collect()
}

#[test]
fn each_version_and_region_has_a_cluster_and_a_route() {
    let discovery = discover_with(&three(), &options());
    assert_eq!(told(&discovery), [""; 0]);
    assert_eq!(
        routes(&whole(&discovery)),
        [
            "route:web /web/{**rest}",
            "route:web@version=canary /web/{**rest} X-Version=canary",
            "route:web@version=stable /web/{**rest} X-Version=stable",
            "route:web@region=eu /web/{**rest} X-Region=eu",
            "route:web@region=us /web/{**rest} X-Region=us",
            "route:web@version=canary,region=eu /web/{**rest} X-Version=canary X-Region=eu",
            "route:web@version=stable,region=eu /web/{**rest} X-Version=stable X-Region=eu",
            "route:web@version=stable,region=us /web/{**rest} X-Version=stable X-Region=us",
        ]
    );
    // Without the options there is one of each.
    assert_eq!(whole(&discover(&three())).routes.len(), 1);
    let versions = GenerateOptions::default().with_version_header("X-Version");
    assert_eq!(whole(&discover_with(&three(), &versions)).routes.len(), 3);
}

#[test]
fn requests_reach_what_they_ask_for_and_otherwise_any() {
    let config = whole(&discover_with(&three(), &options()));
    for (headers, expected) in [
        (&[][..], &["a", "b", "c"][..]),
        (&[("x-version", "canary")], &["c"]),
        (&[("x-version", "CANARY")], &["c"]),
        (&[("x-region", "eu")], &["a", "c"]),
        (&[("x-version", "stable"), ("x-region", "us")], &["b"]),
        // No instance has both: the version counts.
        (&[("x-version", "canary"), ("x-region", "us")], &["c"]),
        // No instance has it: any will do.
        (&[("x-version", "v9")], &["a", "b", "c"]),
        (&[("x-version", "v9"), ("x-region", "us")], &["b"]),
    ] {
        assert_eq!(reached(&config, headers), expected, "{headers:?}");
    }
}

#[test]
fn spellings_of_one_version_are_one() {
    let members = [
        web("a", "10.0.0.1", "V2", ""),
        web("b", "10.0.0.2", "v2", ""),
    ];
    let discovery = discover_with(&members, &options());
    let config = whole(&discovery);
    assert_eq!(clusters(&config), ["service:web", "service:web@version=V2"]);
    assert_eq!(config.clusters[1].destinations.len(), 2);
}

#[test]
fn what_nobody_could_ask_for_is_told() {
    let members = [
        web("a", "10.0.0.1", "a b", "eu"),
        web("b", "10.0.0.2", "x,region=eu", "eu"),
        web("c", "10.0.0.3", "v1", "ü"),
    ];
    let discovery = discover_with(&members, &options());
    let config = whole(&discovery);
    assert_eq!(
        clusters(&config),
        [
            "service:web",
            "service:web@version=v1",
            "service:web@region=eu"
        ]
    );
    assert_eq!(told(&discovery), [" invalid_variant", " invalid_variant"]);
    let first = discovery.services[0].problems.iter().next().unwrap();
    assert!(
        first.message.contains("`version` `a b` of 2 instances"),
        "{first}"
    );
    // They serve nevertheless.
    assert_eq!(reached(&config, &[]), ["a", "b", "c"]);
}

#[test]
fn versions_without_end_are_bounded() {
    let members: Vec<_> = (0..500_u32)
        .map(|i| {
            let address = std::net::Ipv4Addr::from(0x0a00_0000 + i).to_string();
            web(
                &format!("n{i:03}"),
                &address,
                &format!("v{i:03}"),
                &format!("r{i:03}"),
            )
        })
        .collect();
    let discovery = discover_with(&members, &options());
    let config = whole(&discovery);
    assert_eq!(config.clusters.len(), 1 + 64 + 64 + 64);
    assert_eq!(
        told(&discovery),
        [" too_many_variants", " too_many_variants"]
    );
    assert!(
        config
            .clusters
            .contains_key(&ClusterId::from("service:web@version=v063"))
    );
}

#[test]
fn a_service_may_be_called_as_the_version_of_another() {
    let claims = member(
        "n9",
        "10.0.0.9",
        "WEB@version=canary",
        &[("host", "other.local")],
    );
    let mut members = three().to_vec();
    members.push(claims);
    let versions = GenerateOptions::default().with_version_header("X-Version");
    let discovery = discover_with(&members, &versions);
    // `whole` fails if two have one id.
    let config = whole(&discovery);
    assert_eq!(
        routes(&config),
        [
            "route:WEB@version=canary host other.local",
            "route:web /web/{**rest}",
            "route:web@version=stable /web/{**rest} X-Version=stable",
        ]
    );
    assert_eq!(told(&discovery), [" duplicate_cluster"]);
}

#[test]
fn without_a_route_there_is_nothing_to_ask() {
    let plain = member("n1", "10.0.0.1", "plain", &[("version", "v1")]);
    let discovery = discover_with(&[plain, orders(&[])], &options());
    assert_eq!(
        clusters(&whole(&discovery)),
        ["service:orders", "service:plain"]
    );
    // Nor is there while no member has a service.
    let legacy = member("n1", "10.0.0.1", "", &[("version", "v1")]);
    let discovery = discover_with(&[legacy], &options());
    assert_eq!(clusters(&whole(&discovery)), ["backend-cluster"]);
}

#[test]
fn who_is_drained_is_not_asked_for_either() {
    let mut members = three();
    members[2].tags.insert("weight", "0");
    let config = whole(&discover_with(&members, &options()));
    let ids: Vec<_> = config.clusters.keys().map(|id| id.as_str()).collect();
    assert!(!ids.contains(&"service:web@version=canary"), "{ids:?}");
    assert_eq!(
        reached(&config, &[("x-version", "canary")]),
        ["a", "b", "c"],
        "it is any instance's request, of which the drained one has no share"
    );
    // If all are drained there is no other instance to use.
    for member in &mut members {
        member.tags.insert("weight", "0");
    }
    let config = whole(&discover_with(&members, &options()));
    assert_eq!(reached(&config, &[("x-version", "canary")]), ["c"]);
}
