use std::sync::Arc;

use xds_types::pb::envoy::config::route::v3::Route;
use xds_types::pb::envoy::config::route::v3::header_matcher::HeaderMatchSpecifier;

use super::world::{SUFFIX, World};
use crate::translate::Translator;

const A: &str = "{name: a, provides: [{name: http}]}";
const WITH_BRANCHES: &str =
    "{name: a, provides: [{name: http}], branches: [{name: b2}, {name: b1}]}";

fn weights(expected: &[(&str, u32)]) -> Vec<(String, u32)> {
    expected
        .iter()
        .map(|(name, weight)| ((*name).to_owned(), *weight))
        .collect()
}

/// The worked example of the requirements: a service with a canary.
#[test]
fn a_service_with_a_canary_branch_is_served_as_the_example_says() {
    let service = "[{name: nomad-ui, provides: [{name: http, proto: http}], status: run,
        branches: [{name: fix1, status: run, canary_percent: 5}]}]";
    let served = World::new()
        .registry(service)
        .live("nomad-ui-http@sas=10.0.0.1:80", &[])
        .live("nomad-ui-http@vla=10.0.1.1:80", &[])
        .live("nomad-ui-fix1-http@vla=10.0.1.9:80", &[])
        .translate();
    assert_eq!(served.host_names(), ["nomad-ui-fix1-http", "nomad-ui-http"]);
    assert_eq!(
        served.cluster_names(),
        ["nomad-ui-fix1-http", "nomad-ui-http"]
    );
    let domain = format!("nomad-ui-http.{SUFFIX}");
    assert_eq!(
        served.host("nomad-ui-http").domains,
        [domain.clone(), format!("{domain}:80")]
    );
    let expected = [
        "x-branch-name=fix1 in any case -> nomad-ui-fix1-http 120s nomad-ui-fix1-http.",
        "x-sticky-uid~1|[yY]es|[tT]rue -> nomad-ui-http 120s nomad-ui-http.",
        "-> W 120s nomad-ui-http.",
    ];
    assert_eq!(served.routes("nomad-ui-http"), expected);
    assert_eq!(
        served.weights("nomad-ui-http"),
        weights(&[("nomad-ui-http", 95), ("nomad-ui-fix1-http", 5)])
    );
    let expected = [
        "x-sticky-uid~1|[yY]es|[tT]rue -> nomad-ui-fix1-http 120s nomad-ui-fix1-http.",
        "-> W 120s nomad-ui-fix1-http.",
    ];
    assert_eq!(served.routes("nomad-ui-fix1-http"), expected);
    assert_eq!(
        served.weights("nomad-ui-fix1-http"),
        weights(&[("nomad-ui-fix1-http", 100)])
    );
    assert_eq!(
        served.endpoints("nomad-ui-http"),
        ["sas P0 10.0.0.1:80", "vla P1 10.0.1.1:80"]
    );
    assert_eq!(
        served.endpoints("nomad-ui-fix1-http"),
        ["vla P0 10.0.1.9:80"]
    );
    assert_eq!(served.codes(), <[&str; 0]>::default());
}

#[test]
fn each_thing_that_is_provided_has_its_own_host_and_cluster() {
    let two = "[{name: a, provides: [{name: http}, {name: grpc, proto: grpc}]}]";
    let served = World::new().registry(two).translate();
    assert_eq!(served.host_names(), ["a-grpc", "a-http"]);
    assert_eq!(served.cluster_names(), ["a-grpc", "a-http"]);
}

#[test]
fn what_does_not_run_is_not_served() {
    for (services, expected) in [
        (
            "[{name: a, status: stop, provides: [{name: http}], branches: [{name: b}]}]",
            vec![],
        ),
        (
            "[{name: a, provides: [{name: http}], branches: [{name: b, status: stop}]}]",
            vec!["a-http"],
        ),
        ("[{name: a}]", vec![]),
        ("[]", vec![]),
    ] {
        let served = World::new().registry(services).translate();
        assert_eq!(served.host_names(), expected, "{services}");
        assert_eq!(served.cluster_names(), expected, "{services}");
    }
}

#[test]
fn branches_are_routed_to_by_name_before_those_who_stay() {
    let served = World::new()
        .registry(&format!("[{WITH_BRANCHES}]"))
        .translate();
    let expected = [
        "x-branch-name=b1 in any case -> a-b1-http 120s a-b1-http.",
        "x-branch-name=b2 in any case -> a-b2-http 120s a-b2-http.",
        "x-sticky-uid~1|[yY]es|[tT]rue -> a-http 120s a-http.",
        "-> W 120s a-http.",
    ];
    assert_eq!(served.routes("a-http"), expected);
    assert_eq!(
        served.routes("a-b1-http").len(),
        2,
        "a branch knows of no other"
    );
}

/// `shop`'s branch `api` and the service `shop-api` would have the same name, and the service keeps it.
#[test]
fn a_branch_takes_no_service_its_name() {
    let both = "[{name: a, provides: [{name: http}], branches: [{name: b, canary_percent: 50}]}, {name: a-b, provides: [{name: http}]}]";
    let served = World::new()
        .registry(both)
        .live("a-b-http@sas=10.0.0.1:80", &[])
        .translate();
    assert_eq!(served.routes("a-b-http").len(), 2);
    assert_eq!(
        served.routes("a-http").len(),
        2,
        "there is no route to the branch"
    );
    assert_eq!(served.weights("a-http"), weights(&[("a-http", 100)]));
    assert_eq!(served.codes(), ["branch_name_taken"]);
    let owners: Vec<_> = served
        .translation
        .services
        .iter()
        .map(|service| service.clusters.len())
        .collect();
    assert_eq!(owners, [1, 1]);
}

#[test]
fn a_branch_with_odd_characters_is_taken_as_it_is_or_escaped() {
    let odd = "[{name: a, provides: [{name: http}], branches: [{name: 'fix[1.*'}]}]";
    let mut world = World::new().registry(odd);
    let served = world.translate();
    assert!(served.routes("a-http")[0].starts_with("x-branch-name=fix[1.* in any case "));
    world.options.legacy_regex = true;
    let served = world.translate();
    let pattern = legacy_pattern(&served.host("a-http").routes[0]);
    assert_eq!(pattern, r"(?i)fix\[1\.\*");
}

#[allow(deprecated, reason = "it is what old Envoys want")]
fn legacy_pattern(route: &Route) -> String {
    let header = &route.r#match.as_ref().unwrap().headers[0];
    match &header.header_match_specifier {
        Some(HeaderMatchSpecifier::SafeRegexMatch(regex)) => regex.regex.clone(),
        other => panic!("{other:?}"),
    }
}

/// The name of one branch costs no other service anything, even if it is long.
#[test]
fn a_long_branch_name_is_routed_to_and_where_it_cannot_be_costs_that_route_only() {
    let long = "b".repeat(120);
    let service = format!(
        "[{{name: a, provides: [{{name: http}}], branches: [{{name: {long}}}, {{name: c}}]}}]"
    );
    let mut world = World::new().registry(&service);
    let served = world.translate();
    assert_eq!(served.routes("a-http").len(), 4);
    assert!(served.routes("a-http")[0].starts_with(&format!("x-branch-name={long} in any case ")));
    assert_eq!(served.codes(), <[&str; 0]>::default());
    // As an expression it has more instructions than Envoys take.
    world.options.legacy_regex = true;
    let served = world.translate();
    assert_eq!(served.host("a-http").routes.len(), 3);
    assert_eq!(legacy_pattern(&served.host("a-http").routes[0]), "(?i)c");
    assert_eq!(served.codes(), ["branch_name_too_long"]);
    assert!(served.cluster_names().contains(&&*format!("a-{long}-http")));
}

/// Two branches of different services, or of one service, may have one joined name. The first gets it. The
/// other branch is left out, and nothing else.
#[test]
fn branches_with_one_joined_name_cost_the_second_its_branch_only() {
    let both = "[{name: shop, provides: [{name: http}], branches: [{name: a-b}]},
        {name: shop-a, provides: [{name: http}], branches: [{name: b, canary_percent: 100}]}]";
    let served = World::new()
        .registry(both)
        .live("shop-a-b-http@sas=10.0.0.1:80", &[])
        .translate();
    assert_eq!(
        served.host_names(),
        ["shop-a-b-http", "shop-a-http", "shop-http"]
    );
    assert_eq!(served.routes("shop-http").len(), 3);
    assert_eq!(
        served.routes("shop-a-http"),
        [
            "x-sticky-uid~1|[yY]es|[tT]rue -> shop-a-http 120s shop-a-http.",
            "-> W 120s shop-a-http."
        ]
    );
    assert_eq!(
        served.weights("shop-a-http"),
        weights(&[("shop-a-http", 100)])
    );
    assert_eq!(served.codes(), ["branch_name_taken"]);

    let one = "[{name: s, provides: [{name: http}], branches: [{name: a, provides: [{name: b-http}]}, {name: a-b}]}]";
    let served = World::new().registry(one).translate();
    assert_eq!(served.host_names(), ["s-a-b-http", "s-http"]);
    assert_eq!(served.codes(), ["branch_name_taken"]);

    let services = "[{name: s, provides: [{name: a-http}]}, {name: s-a, provides: [{name: http}]}]";
    let served = World::new().registry(services).translate();
    assert_eq!(served.host_names(), ["s-a-http"]);
}

/// Cases R14 to R18, R20 and R21.
#[test]
fn canaries_get_their_share() {
    let with = |branches: &str| {
        format!("[{{name: a, provides: [{{name: http}}], branches: [{branches}]}}]")
    };
    // Branches, weights, and the codes of what is reported.
    type Case = (
        &'static str,
        &'static [(&'static str, u32)],
        &'static [&'static str],
    );
    let cases: &[Case] = &[
        (
            "{name: b1, canary_percent: 5}",
            &[("a-http", 95), ("a-b1-http", 5)],
            &[],
        ),
        (
            "{name: b2, canary_percent: 10}, {name: b1, canary_percent: 5}",
            &[("a-http", 85), ("a-b1-http", 5), ("a-b2-http", 10)],
            &[],
        ),
        ("{name: b1, canary_percent: 0}", &[("a-http", 100)], &[]),
        (
            "{name: b1, canary_percent: 100}",
            &[("a-http", 0), ("a-b1-http", 100)],
            &[],
        ),
        (
            "{name: b1, canary_percent: 70}, {name: b2, canary_percent: 60}",
            &[("a-http", 0), ("a-b1-http", 70), ("a-b2-http", 30)],
            &["canaries_over_100"],
        ),
        (
            "{name: b1, canary_percent: 5, provides: [{name: rpc}]}",
            &[("a-http", 100)],
            &[],
        ),
        (
            "{name: b1, canary_percent: 5, status: stop}",
            &[("a-http", 100)],
            &[],
        ),
        (
            "{name: dead, canary_percent: 5}",
            &[("a-http", 100)],
            &["canary_without_instances"],
        ),
        (
            "{name: none, canary_percent: 5}",
            &[("a-http", 100)],
            &["canary_without_instances"],
        ),
    ];
    for (branches, expected, codes) in cases {
        let served = World::new()
            .registry(&with(branches))
            .live("a-b1-http@sas=10.0.0.1:80", &[])
            .live("a-b2-http@vla=10.0.0.2:80", &[])
            .dead("a-dead-http@sas=10.0.0.3:80", &[])
            .translate();
        assert_eq!(served.weights("a-http"), weights(expected), "{branches}");
        assert_eq!(served.codes(), *codes, "{branches}");
    }
}

/// Cases R22 to R30.
#[test]
fn services_that_the_registry_does_not_know_ask_by_tags() {
    // Tags, domains, the timeout in seconds, and the codes of what is reported.
    type Case = (
        &'static [&'static str],
        &'static [&'static str],
        u32,
        &'static [&'static str],
    );
    let cases: &[Case] = &[
        (&["domain-x"], &["x", "x:80"], 10, &[]),
        (
            &["domain-x", "domain-y"],
            &["x", "x:80", "y", "y:80"],
            10,
            &[],
        ),
        (&["domain-X", "domain-x"], &["x", "x:80"], 10, &[]),
        (&["domain-x:8080"], &["x:8080"], 10, &[]),
        (
            &["domain-", "domain-x"],
            &["x", "x:80"],
            10,
            &["bad_domain"],
        ),
        (
            &["domain-*", "domain-a b", "domain-x"],
            &["x", "x:80"],
            10,
            &["bad_domain", "bad_domain"],
        ),
        (
            &["domain-x", "envoy.settings.upstream.timeout=30s"],
            &["x", "x:80"],
            30,
            &[],
        ),
        (
            &["domain-x", "envoy.settings.upstream.timeout=30"],
            &["x", "x:80"],
            10,
            &["bad_tag"],
        ),
        (
            &["domain-x", "envoy.settings.upstream.timeout=abc"],
            &["x", "x:80"],
            10,
            &["bad_tag"],
        ),
        (
            &["domain-x", "envoy.settings.upstream.timeout=-1s"],
            &["x", "x:80"],
            10,
            &["bad_tag"],
        ),
        (
            &["domain-x", "envoy.settings.upstream.timeout=0s"],
            &["x", "x:80"],
            10,
            &["bad_tag"],
        ),
        (
            &["domain-x", "envoy.settings.upstream.timeot=1s"],
            &["x", "x:80"],
            10,
            &["unknown_tag"],
        ),
    ];
    for (tags, domains, timeout, codes) in cases {
        let served = World::new().live("j@sas=10.0.0.1:80", tags).translate();
        assert_eq!(served.host("j").domains, *domains, "{tags:?}");
        let operation = domains[0];
        assert_eq!(
            served.routes("j"),
            [format!("-> W {timeout}s {operation}")],
            "{tags:?}"
        );
        assert_eq!(served.weights("j"), weights(&[("j", 100)]));
        assert_eq!(served.codes(), *codes, "{tags:?}");
    }
}

/// Any registered instance can set a tag, which must not take over the requests of other services.
#[test]
fn a_tag_takes_no_names_of_the_registry() {
    let name = format!("domain-soon-http.{SUFFIX}");
    let served = World::new().live("j@sas=10.0.0.1:80", &[&name]).translate();
    assert_eq!(served.host("j").domains.len(), 2);
    assert_eq!(served.codes(), ["domain_of_registry"]);
    for wildcard in [
        format!("domain-*.{SUFFIX}"),
        format!("domain-*-http.{SUFFIX}:80"),
        "domain-*.net".to_owned(),
    ] {
        let served = World::new()
            .live("j@sas=10.0.0.1:80", &["domain-x", &wildcard])
            .translate();
        assert_eq!(served.host("j").domains, ["x", "x:80"], "{wildcard}");
        assert_eq!(served.codes(), ["bad_domain"]);
    }
}

#[test]
fn without_a_domain_a_service_is_not_served() {
    for tags in [
        &["a", "domain"][..],
        &["envoy.settings.upstream.timeout=30s"],
    ] {
        let served = World::new().live("j@sas=10.0.0.1:80", tags).translate();
        assert_eq!(served.cluster_names(), <[&str; 0]>::default());
    }
    let only_bad = World::new()
        .live("j@sas=10.0.0.1:80", &["domain-"])
        .translate();
    assert_eq!(
        (only_bad.cluster_names(), only_bad.codes()),
        (vec![], vec!["bad_domain"])
    );
    let dead = World::new()
        .dead("j@sas=10.0.0.1:80", &["domain-x"])
        .translate();
    assert_eq!(
        dead.host_names(),
        ["j"],
        "the union of all instances counts, healthy or not"
    );
    assert_eq!(dead.endpoints("j"), <[String; 0]>::default());
}

/// Case R28.
#[test]
fn of_instances_that_differ_the_smallest_id_counts_in_every_datacenter() {
    let timeout = |seconds: u32| format!("envoy.settings.upstream.timeout={seconds}s");
    let mut world = World::new()
        .live("j@sas=10.0.0.1:80", &["domain-x", &timeout(20)])
        .live("j@iva=10.0.1.1:80", &["domain-x", &timeout(30)]);
    for own in ["sas", "iva"] {
        Arc::make_mut(&mut world.known.catalog).own = own.into();
        let served = world.translate();
        assert_eq!(served.routes("j"), ["-> W 30s x"], "{own}");
        assert_eq!(served.codes(), ["tags_differ"]);
    }
}

#[test]
fn the_timeout_of_the_settings_is_for_those_that_the_registry_does_not_know() {
    let served = World::new()
        .registry(&format!("[{A}]"))
        .settings(r#"{"rds": {"route": {"upstream_timeout": "7s"}}}"#)
        .live("j@sas=10.0.0.1:80", &["domain-x"])
        .translate();
    assert_eq!(served.routes("j"), ["-> W 7s x"]);
    assert_eq!(served.routes("a-http")[1], "-> W 120s a-http.");
}

#[test]
fn a_service_of_the_registry_asks_for_nothing_by_tags() {
    let served = World::new()
        .registry(&format!("[{A}]"))
        .live(
            "a-http@sas=10.0.0.1:80",
            &["domain-x", "envoy.settings.upstream.max_requests=7"],
        )
        .translate();
    assert_eq!(served.translation.services.len(), 1);
    let domain = format!("a-http.{SUFFIX}");
    assert_eq!(
        served.host("a-http").domains,
        [domain.clone(), format!("{domain}:80")]
    );
}

#[test]
fn the_static_file_has_hosts_and_listeners() {
    let text = "
listeners:
- {name: mysql, port: 3306, tcp: {cluster: db, idleTimeout: 30m}}
- {name: inside, address: '::1', port: 8081, http: {}}
services:
- {name: db, protocol: tcp, endpoints: ['10.0.0.5:3306', {address: '10.0.1.5:3306', zone: vla}]}
- {name: old, domains: [Old.example], timeout: 3s, endpoints: ['10.0.0.6:80']}
- {name: away, consulService: j}
";
    let served = World::new()
        .fixed(text)
        .live("j@vla=10.0.0.9:80", &[])
        .translate();
    assert_eq!(served.cluster_names(), ["away", "db", "old"]);
    assert_eq!(
        served.endpoints("db"),
        ["sas P0 10.0.0.5:3306", "vla P1 10.0.1.5:3306"]
    );
    assert_eq!(served.endpoints("away"), ["vla P0 10.0.0.9:80"]);
    assert_eq!(
        served.host("old").domains,
        ["old.example", "old.example:80"]
    );
    assert_eq!(served.routes("old"), ["-> W 3s old.example"]);
    assert!(
        served
            .cluster("db")
            .typed_extension_protocol_options
            .is_empty()
    );
    let listeners: Vec<_> = served
        .translation
        .services
        .iter()
        .flat_map(|s| &s.listeners)
        .map(|l| &*l.name)
        .collect();
    assert_eq!(listeners, ["inside", "mysql"]);
}

/// Unchanged services keep the same pointer, even if they were translated again with the same result.
#[test]
fn only_what_changed_is_translated_anew() {
    let world = World::new()
        .registry(&format!("[{A}, {{name: b, provides: [{{name: http}}]}}]"))
        .live("a-http@sas=10.0.0.1:80", &[])
        .live("j@sas=10.0.0.2:80", &["domain-x"]);
    let mut translator = Translator::new(world.options.clone());
    let first = translator.translate(&world.known).services;
    let mut renewed = World {
        known: world.known.clone(),
        options: world.options.clone(),
    };
    renewed.known.defaults = Arc::new((*world.known.defaults).clone());
    let again = translator.translate(&renewed.known).services;
    assert!(
        first
            .iter()
            .zip(&again)
            .all(|(one, other)| Arc::ptr_eq(one, other))
    );
    let moved = renewed.live("a-http@sas=10.0.0.3:80", &[]);
    let after = translator.translate(&moved.known).services;
    let same: Vec<_> = again
        .iter()
        .zip(&after)
        .map(|(one, other)| Arc::ptr_eq(one, other))
        .collect();
    let names: Vec<_> = after
        .iter()
        .map(|service| &*service.owner.service)
        .collect();
    assert_eq!(
        (names, same),
        (vec!["j", "a", "b"], vec![true, false, true])
    );
}
