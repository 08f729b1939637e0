//! Tests of quarantine, last known good forms, claims, and of the reuse of results.

use std::time::Duration;

use prost::Message;
use xds_types::pb::envoy::config::cluster::v3::Cluster;
use xds_types::pb::envoy::config::core::v3::config_source::ConfigSourceSpecifier;
use xds_types::pb::envoy::config::endpoint::v3::ClusterLoadAssignment;
use xds_types::pb::envoy::config::route::v3::route::Action;
use xds_types::pb::envoy::config::route::v3::route_action::ClusterSpecifier;
use xds_types::pb::envoy::config::route::v3::weighted_cluster::ClusterWeight;
use xds_types::pb::envoy::config::route::v3::{HeaderMatcher, RouteConfiguration, WeightedCluster};

use super::testing::{assignment, cluster, host, listener, service};
use super::*;
use crate::proto::number;
use crate::snapshot::{ResourceType, Snapshot, Subscription};
use std::sync::Arc;

fn names(snapshot: &Snapshot, kind: ResourceType) -> Vec<String> {
    let resources = snapshot.resources(kind).iter();
    resources
        .map(|resource| resource.name().to_string())
        .collect()
}

fn decoded<M: Message + Default>(snapshot: &Snapshot, kind: ResourceType, name: &str) -> M {
    let resource = snapshot.resources(kind).get(name).unwrap();
    M::decode(resource.body(Subscription::Aggregated).clone()).unwrap()
}

fn domains(snapshot: &Snapshot) -> Vec<(String, Vec<String>)> {
    let routes: RouteConfiguration = decoded(snapshot, ResourceType::Route, "main");
    let hosts = routes.virtual_hosts.into_iter();
    hosts.map(|host| (host.name, host.domains)).collect()
}

fn ports(snapshot: &Snapshot, name: &str) -> Vec<u32> {
    let assignment: ClusterLoadAssignment = decoded(snapshot, ResourceType::Endpoint, name);
    testing::ports(&assignment)
}

fn all(services: &[ServiceResources]) -> Vec<Arc<ServiceResources>> {
    services.iter().cloned().map(Arc::new).collect()
}

#[test]
fn a_service_becomes_resources_of_all_types() {
    let mut a = service("registry", "a");
    a.listeners.push(listener("in", 8080));
    let assembled = assemble(&all(&[a]), ResourceOptions::default());
    let snapshot = &assembled.snapshot;
    assert_eq!(names(snapshot, ResourceType::Cluster), ["a"]);
    assert_eq!(names(snapshot, ResourceType::Endpoint), ["a"]);
    assert_eq!(names(snapshot, ResourceType::Listener), ["in"]);
    assert_eq!(
        domains(snapshot),
        [("a".to_owned(), vec!["a.example".to_owned()])]
    );
    assert_eq!(
        (assembled.quarantined, assembled.warnings),
        (Vec::new(), Vec::new())
    );
}

#[test]
fn without_services_there_is_an_empty_route_configuration() {
    let assembled = assemble(&[], ResourceOptions::default().with_route_config("edge"));
    let routes: RouteConfiguration = decoded(&assembled.snapshot, ResourceType::Route, "edge");
    assert_eq!(
        (routes.name.as_str(), routes.virtual_hosts.len()),
        ("edge", 0)
    );
}

/// Section 4.2 of Envoy's four ways to subscribe: the source of endpoints is the one that the cluster came from.
#[test]
fn each_subscription_is_told_its_own_source() {
    let options = ResourceOptions::default().with_xds_cluster("plane");
    let mut polled = service("registry", "a");
    polled.refresh_delay = Some(Duration::from_millis(1500));
    let snapshot = assemble(&all(&[polled]), options).snapshot;
    let resource = snapshot.resources(ResourceType::Cluster).get("a").unwrap();
    let source = |subscription| {
        let cluster = Cluster::decode(resource.body(subscription).clone()).unwrap();
        let eds = cluster.eds_cluster_config.unwrap().eds_config.unwrap();
        assert_eq!(eds.resource_api_version, 2);
        eds.config_source_specifier.unwrap()
    };
    assert!(matches!(
        source(Subscription::Aggregated),
        ConfigSourceSpecifier::Ads(_)
    ));
    let ConfigSourceSpecifier::ApiConfigSource(separate) = source(Subscription::Separate) else {
        panic!("separate streams have an API");
    };
    assert_eq!((separate.api_type, separate.grpc_services.len()), (2, 1));
    let ConfigSourceSpecifier::ApiConfigSource(rest) = source(Subscription::Rest) else {
        panic!("polls have an API");
    };
    assert_eq!(
        (rest.api_type, rest.cluster_names),
        (1, vec!["plane".to_owned()])
    );
    let delay = rest.refresh_delay.unwrap();
    assert_eq!((delay.seconds, delay.nanos), (1, 500_000_000));
}

#[test]
fn a_bad_service_is_quarantined_with_reasons_and_the_rest_goes_out() {
    let mut bad = service("registry", "bad");
    bad.virtual_hosts[0].domains.clear();
    bad.clusters[0].name.clear();
    let assembled = assemble(
        &all(&[service("registry", "a"), bad]),
        ResourceOptions::default(),
    );
    assert_eq!(names(&assembled.snapshot, ResourceType::Cluster), ["a"]);
    let [quarantined] = &assembled.quarantined[..] else {
        panic!("one: {:?}", assembled.quarantined);
    };
    assert_eq!(quarantined.owner, Owner::new("registry", "bad"));
    assert!(!quarantined.serves_last_known_good);
    let fields: Vec<_> = quarantined
        .reasons
        .iter()
        .map(|reason| &*reason.field)
        .collect();
    assert_eq!(fields, ["name", "domains"]);
}

#[test]
fn a_service_that_turns_bad_keeps_its_last_known_good_form_with_endpoints_that_move() {
    let mut assembler = ResourceBuilder::new(ResourceOptions::default());
    let good = service("registry", "a");
    let first = assembler.assemble(&all(std::slice::from_ref(&good)));
    let mut bad = good.clone();
    bad.clusters[0].connect_timeout = Some(crate::proto::duration(Duration::ZERO));
    bad.assignments = vec![assignment("a", &[81])];
    let second = assembler.assemble(&all(&[bad]));
    assert!(second.quarantined[0].serves_last_known_good);
    let clusters = |assembled: &BuiltResources| {
        Arc::clone(assembled.snapshot.resources(ResourceType::Cluster))
    };
    assert_eq!(clusters(&second), clusters(&first));
    assert_eq!(ports(&second.snapshot, "a"), [81]);

    let third = assembler.assemble(&all(&[good]));
    assert_eq!(third.quarantined, []);
    assert_eq!(ports(&third.snapshot, "a"), [80]);
    let gone = assembler.assemble(&[]);
    assert_eq!(
        names(&gone.snapshot, ResourceType::Cluster),
        <[String; 0]>::default()
    );
}

#[test]
fn what_is_equal_is_not_published_anew() {
    let mut assembler = ResourceBuilder::new(ResourceOptions::default());
    let first = assembler.assemble(&all(&[service("registry", "a"), service("registry", "b")]));
    let again = assembler.assemble(&all(&[service("registry", "b"), service("registry", "a")]));
    assert!(Arc::ptr_eq(&first.snapshot, &again.snapshot));
    let elsewhere = assemble(
        &all(&[service("registry", "b"), service("registry", "a")]),
        ResourceOptions::default(),
    );
    assert_eq!(
        first.snapshot, elsewhere.snapshot,
        "another replica serves the same"
    );
}

/// Endpoints are updated first: a change of them leaves all other resources unchanged, by pointer.
#[test]
fn new_endpoints_touch_nothing_else() {
    let mut assembler = ResourceBuilder::new(ResourceOptions::default());
    let services = all(&[service("registry", "a"), service("registry", "b")]);
    let first = assembler.assemble(&services).snapshot;
    let mut moved = (*services[0]).clone();
    moved.assignments = vec![assignment("a", &[81, 82])];
    moved.virtual_hosts[0]
        .domains
        .push("later.example".to_owned());
    let services = [Arc::new(moved), Arc::clone(&services[1])];
    let fast = assembler.update_endpoints(&services).snapshot;
    assert_eq!(ports(&fast, "a"), [81, 82]);
    for kind in [
        ResourceType::Cluster,
        ResourceType::Route,
        ResourceType::Listener,
    ] {
        assert!(
            Arc::ptr_eq(first.resources(kind), fast.resources(kind)),
            "{kind}"
        );
    }
    let b = |snapshot: &Snapshot| {
        Arc::clone(snapshot.resources(ResourceType::Endpoint).get("b").unwrap())
    };
    assert!(Arc::ptr_eq(&b(&first), &b(&fast)));

    let slow = assembler.assemble(&services).snapshot;
    let endpoints = |snapshot: &Snapshot| snapshot.resources(ResourceType::Endpoint).version();
    assert_eq!(endpoints(&slow), endpoints(&fast));
    assert!(Arc::ptr_eq(
        slow.resources(ResourceType::Cluster),
        first.resources(ResourceType::Cluster)
    ));
    assert_eq!(domains(&slow)[0].1, ["a.example", "later.example"]);
}

#[test]
fn endpoints_that_went_back_meanwhile_are_served_as_wanted() {
    let mut assembler = ResourceBuilder::new(ResourceOptions::default());
    let first = service("registry", "a");
    assembler.assemble(&all(std::slice::from_ref(&first)));
    let mut moved = first.clone();
    moved.assignments = vec![assignment("a", &[81])];
    assembler.update_endpoints(&all(&[moved]));
    let back = assembler.assemble(&all(&[first]));
    assert_eq!(ports(&back.snapshot, "a"), [80]);
}

#[test]
fn bad_endpoints_do_not_get_by_on_the_fast_way() {
    let mut assembler = ResourceBuilder::new(ResourceOptions::default());
    let good = service("registry", "a");
    let first = assembler
        .assemble(&all(std::slice::from_ref(&good)))
        .snapshot;
    let mut bad = good;
    bad.assignments = vec![testing::assignment_at("a", "host.example", 80)];
    let fast = assembler.update_endpoints(&all(&[bad])).snapshot;
    assert_eq!(first, fast);
}

#[test]
fn a_cluster_without_endpoints_is_told_so() {
    let mut silent = service("registry", "a");
    silent.assignments.clear();
    let snapshot = assemble(&all(&[silent]), ResourceOptions::default()).snapshot;
    assert_eq!(ports(&snapshot, "a"), <[u32; 0]>::default());
}

/// Case R31, and the rule of precedence: the source first, then the name.
#[test]
fn a_domain_is_had_once_in_any_case_by_who_comes_first() {
    let with = |source: &str, name: &str, domains: &[&str]| {
        let mut service = service(source, name);
        service.virtual_hosts = vec![host(name, domains)];
        service
    };
    let services = [
        with("static", "a", &["Shop.example", "own.example"]),
        with("consul", "b", &["SHOP.example"]),
        with("consul", "c", &["shop.example"]),
        with("registry", "z", &["shop.EXAMPLE"]),
    ];
    let options = ResourceOptions::default().with_precedence(["registry", "consul", "static"]);
    let assembled = assemble(&all(&services), options);
    let expected = [
        ("z".to_owned(), vec!["shop.EXAMPLE".to_owned()]),
        ("a".to_owned(), vec!["own.example".to_owned()]),
    ];
    assert_eq!(domains(&assembled.snapshot), expected);
    assert_eq!(
        names(&assembled.snapshot, ResourceType::Cluster),
        ["a", "b", "c", "z"]
    );
    let losers: Vec<_> = assembled
        .warnings
        .iter()
        .map(|warning| (&*warning.owner.service, warning.code))
        .collect();
    assert_eq!(
        losers,
        [
            ("b", "domain_taken"),
            ("c", "domain_taken"),
            ("a", "domain_taken")
        ]
    );
}

#[test]
fn a_newcomer_takes_nothing_of_a_service_of_its_rank() {
    let with = |source, name, cluster_name: &str, domain: &str| {
        let mut service = service(source, name);
        service.clusters = vec![cluster(cluster_name)];
        service.assignments = vec![assignment(cluster_name, &[80])];
        service.virtual_hosts = vec![testing::host_to(name, &[domain], cluster_name)];
        service
    };
    let options = ResourceOptions::default().with_precedence(["registry", "consul"]);
    let mut builder = ResourceBuilder::new(options);
    let old = with("consul", "b", "b", "shop.example");
    builder.assemble(&all(std::slice::from_ref(&old)));
    let by_domain = with("consul", "a", "a", "SHOP.example");
    let by_name = with("consul", "B", "b", "other.example");
    let assembled = builder.assemble(&all(&[old.clone(), by_domain.clone(), by_name]));
    let hosts = |assembled: &BuiltResources| -> Vec<String> {
        domains(&assembled.snapshot)
            .into_iter()
            .map(|(name, _)| name)
            .collect()
    };
    // That of `B` responds with 503.
    assert_eq!(hosts(&assembled), ["B", "b"]);
    assert_eq!(ports(&assembled.snapshot, "b"), [80]);
    let warned: Vec<_> = (assembled.warnings.iter())
        .map(|warning| (&*warning.owner.service, warning.code))
        .collect();
    assert_eq!(warned, [("B", "name_taken"), ("a", "domain_taken")]);
    assert!(
        assembled
            .warnings
            .iter()
            .all(|warning| warning.message.contains("consul/b"))
    );
    // The order of the sources is the operator's.
    let better = with("registry", "z", "z", "shop.example");
    let assembled = builder.assemble(&all(&[old.clone(), better]));
    assert_eq!(hosts(&assembled), ["z"]);
    // What was lost is held no more, and is free when its owner leaves.
    let assembled = builder.assemble(&all(&[old, by_domain]));
    assert_eq!(hosts(&assembled), ["a"]);
}

#[test]
fn no_service_has_the_name_of_the_control_plane_s_own_cluster() {
    let options = ResourceOptions::default().with_xds_cluster("plane");
    let mut routed = service("static", "routed");
    routed.virtual_hosts = vec![testing::host_to("routed", &["routed.example"], "plane")];
    let services = [service("consul", "plane"), service("consul", "xds"), routed];
    let assembled = assemble(&all(&services), options);
    assert_eq!(names(&assembled.snapshot, ResourceType::Cluster), ["xds"]);
    let hosts = domains(&assembled.snapshot);
    assert_eq!(hosts, [("xds".to_owned(), vec!["xds.example".to_owned()])]);
    let rejected: Vec<_> = (assembled.quarantined.iter())
        .map(|it| (&*it.owner.service, it.reasons[0].resource.as_str()))
        .collect();
    assert_eq!(
        rejected,
        [("plane", "cluster plane"), ("routed", "cluster plane")]
    );
}

/// Case C17.
#[test]
fn a_cluster_name_is_had_once_and_nothing_of_the_loser_leads_to_the_winner() {
    let mut loser = service("static", "mine");
    loser.clusters = vec![cluster("a"), cluster("mine")];
    loser.assignments = vec![assignment("a", &[99]), assignment("mine", &[98])];
    loser.virtual_hosts = vec![
        testing::host_to("x", &["x.example"], "a"),
        testing::host_to("y", &["y.example"], "mine"),
    ];
    let options = ResourceOptions::default().with_precedence(["registry"]);
    let assembled = assemble(&all(&[loser, service("registry", "a")]), options);
    assert_eq!(ports(&assembled.snapshot, "a"), [80]);
    assert_eq!(ports(&assembled.snapshot, "mine"), [98]);
    let hosts: Vec<_> = domains(&assembled.snapshot)
        .into_iter()
        .map(|(name, _)| name)
        .collect();
    // No other service gets its requests.
    assert_eq!(hosts, ["a", "x", "y"]);
    let routes: RouteConfiguration = decoded(&assembled.snapshot, ResourceType::Route, "main");
    let action = routes.virtual_hosts[1].routes[0].action.clone();
    assert_eq!(action, Some(crate::proto::unavailable()));
    assert_eq!(assembled.warnings[0].code, "name_taken");
}

/// A host loses only the routes to clusters of other owners, and is never removed itself.
#[test]
fn a_host_loses_its_routes_to_clusters_of_others_only() {
    let to = |clusters: &[(&str, u32)]| {
        let mut host = host("b", &["b.example"]);
        let mut branch = testing::host_to("b", &["b.example"], "a").routes.remove(0);
        branch.r#match.as_mut().unwrap().headers = vec![HeaderMatcher {
            name: "x-branch-name".to_owned(),
            ..HeaderMatcher::default()
        }];
        let weights = clusters.iter().map(|(name, weight)| ClusterWeight {
            name: (*name).to_owned(),
            weight: Some(number(*weight)),
            ..ClusterWeight::default()
        });
        let Some(Action::Route(action)) = &mut host.routes[0].action else {
            panic!("it is a route");
        };
        action.cluster_specifier = Some(ClusterSpecifier::WeightedClusters(WeightedCluster {
            clusters: weights.collect(),
            ..WeightedCluster::default()
        }));
        host.routes.insert(0, branch);
        let mut second = service("registry", "b");
        second.clusters.push(cluster("a"));
        second.virtual_hosts = vec![host];
        second
    };
    for (weights, left) in [
        (&[("b", 95), ("a", 5)][..], ("b", 95)),
        // Envoy requires the sum of the weights to be above zero.
        (&[("b", 0), ("a", 100)], ("b", 100)),
        (&[("a", 100)], ("503", 503)),
    ] {
        let services = all(&[service("registry", "a"), to(weights)]);
        let assembled = assemble(&services, ResourceOptions::default());
        assert_eq!(assembled.warnings.len(), 1);
        let routes: RouteConfiguration = decoded(&assembled.snapshot, ResourceType::Route, "main");
        let host = routes.virtual_hosts.iter().find(|host| host.name == "b");
        let found = host.map(|host| {
            let [route] = &host.routes[..] else {
                panic!("{host:?}")
            };
            let action = match &route.action {
                Some(Action::Route(action)) => action,
                Some(Action::DirectResponse(answer)) => return ("503", answer.status),
                other => panic!("{other:?}"),
            };
            let Some(ClusterSpecifier::WeightedClusters(weighted)) = &action.cluster_specifier
            else {
                panic!("{action:?}")
            };
            let [only] = &weighted.clusters[..] else {
                panic!("{weighted:?}")
            };
            (only.name.as_str(), only.weight.unwrap().value)
        });
        assert_eq!(found, Some(left), "{weights:?}");
    }
}

#[test]
fn a_listener_and_its_address_are_had_once() {
    let with = |name: &str, listeners| {
        let mut service = ServiceResources::new(Owner::new("static", name));
        service.listeners = listeners;
        service
    };
    let services = [
        with("a", vec![listener("in", 8080)]),
        with(
            "b",
            vec![
                listener("in", 8081),
                listener("other", 8080),
                listener("free", 8082),
            ],
        ),
    ];
    let assembled = assemble(&all(&services), ResourceOptions::default());
    assert_eq!(
        names(&assembled.snapshot, ResourceType::Listener),
        ["free", "in"]
    );
    let codes: Vec<_> = assembled
        .warnings
        .iter()
        .map(|warning| warning.code)
        .collect();
    assert_eq!(codes, ["name_taken", "address_taken"]);
}

#[test]
fn what_is_kept_begins_again_as_it_was() {
    let mut assembler = ResourceBuilder::new(ResourceOptions::default());
    let good = service("registry", "a");
    assembler.assemble(&all(std::slice::from_ref(&good)));
    let mut moved = good;
    moved.assignments = vec![assignment("a", &[81])];
    let served = assembler.update_endpoints(&all(&[moved])).snapshot;
    let again = assemble(&all(&assembler.kept()), ResourceOptions::default());
    assert_eq!(again.snapshot, served);
}
