//! Reads to secondaries.

use proptest::prelude::*;
use proptest::sample::select;
use proxy_model::config::RouteHeader;

use super::traffic::{Request, Routing, get};
use super::*;

const BY_METHOD: (&str, &str) = ("YARP.Backend.ServiceFabric.RoleRouting", "Methods");
const BY_HEADER: (&str, &str) = ("YARP.Backend.ServiceFabric.RoleRouting", "Header");
const NAME: (&str, &str) = (
    "YARP.Backend.ServiceFabric.RoleRouting.Header.Name",
    "X-Read",
);
const VALUE: (&str, &str) = (
    "YARP.Backend.ServiceFabric.RoleRouting.Header.Value",
    "stale, ok",
);

const WRITES: &str = "fabric:/App/Web";
const READS: &str = "fabric:/App/Web/secondaries";

fn replicas() -> Vec<Replica> {
    vec![
        with_role(1, ReplicaRole::Primary),
        with_role(2, ReplicaRole::ActiveSecondary),
        with_role(3, ReplicaRole::IdleSecondary),
    ]
}

fn stateful(pairs: &[(&str, &str)]) -> ServiceDescription {
    service(ServiceKind::Stateful, pairs, vec![singleton(replicas())])
}

#[track_caller]
fn routing(pairs: &[(&str, &str)]) -> Routing {
    Routing::of(&good(&YarpLabels::default(), &stateful(pairs)))
}

#[test]
fn the_primary_takes_the_writes_and_reads_while_nobody_else_can() {
    let config = good(
        &YarpLabels::default(),
        &stateful(&[BY_METHOD, ("YARP.Routes.r.Path", "/")]),
    );
    assert_eq!(cluster_ids(&config), [WRITES, READS]);
    let tiers = |id: &str| {
        let cluster = &config.clusters[&ClusterId::from(id)];
        let tiers = cluster.destinations.iter();
        tiers
            .map(|(id, d)| (id.to_string(), d.priority))
            .collect::<Vec<_>>()
    };
    assert_eq!(tiers(WRITES), [("P1/1".to_owned(), None)]);
    assert_eq!(
        tiers(READS),
        [("P1/1".to_owned(), Some(1)), ("P1/2".to_owned(), None)]
    );
    assert_eq!(
        route_ids(&config),
        ["fabric%3A%2FApp%2FWeb:r:reads", "fabric%3A%2FApp%2FWeb:r"]
    );
    let considered: Vec<_> = parse(&stateful(&[BY_METHOD])).replicas;
    assert_eq!(
        considered.iter().map(|r| r.replica_id).collect::<Vec<_>>(),
        [1, 2]
    );

    let base = ("YARP.Destinations.Priority", "3");
    let config = good(&YarpLabels::default(), &stateful(&[BY_METHOD, base]));
    let reads = &config.clusters[&ClusterId::from(READS)].destinations;
    assert_eq!(
        reads.values().map(|d| d.priority).collect::<Vec<_>>(),
        [Some(4), Some(3)]
    );
    let told = rejected(&stateful(&[
        BY_METHOD,
        ("YARP.Destinations.Priority", "127"),
    ]));
    assert_eq!(
        told,
        ["error at /YARP.Destinations.Priority: the tier is larger than 126"]
    );
}

#[test]
fn methods_tell_reads() {
    let routing = routing(&[BY_METHOD, ("YARP.Routes.r.Path", "/{**rest}")]);
    for (method, expected) in [
        ("GET", READS),
        ("HEAD", READS),
        ("OPTIONS", READS),
        ("POST", WRITES),
        ("DELETE", WRITES),
        ("TRACE", WRITES),
        ("PROPFIND", WRITES),
    ] {
        assert_eq!(
            routing.cluster(&get("/x").method(method)),
            expected,
            "{method}"
        );
    }
}

#[test]
fn methods_that_a_route_has_already_are_divided() {
    for (methods, get_goes, post_goes, routes) in [
        ("GET,POST", READS, WRITES, 2),
        ("get,post,head", READS, WRITES, 2),
        ("GET", READS, "405", 1),
        ("POST,PUT", "405", WRITES, 1),
    ] {
        let pairs = [
            BY_METHOD,
            ("YARP.Routes.r.Path", "/"),
            ("YARP.Routes.r.Methods", methods),
        ];
        let config = good(&YarpLabels::default(), &stateful(&pairs));
        assert_eq!(config.routes.len(), routes, "{methods}");
        let routing = Routing::of(&config);
        assert_eq!(routing.cluster(&get("/")), get_goes, "{methods}");
        assert_eq!(
            routing.cluster(&get("/").method("POST")),
            post_goes,
            "{methods}"
        );
    }
}

#[test]
fn a_header_tells_reads() {
    for (labels, value, expected) in [
        (&[NAME][..], Some("anything"), READS),
        (&[NAME], None, WRITES),
        (&[NAME, VALUE], Some("OK"), READS),
        (&[NAME, VALUE], Some("no"), WRITES),
    ] {
        let pairs: Vec<_> = [BY_HEADER, ("YARP.Routes.r.Path", "/")]
            .into_iter()
            .chain(labels.iter().copied())
            .collect();
        let mut request = get("/").method("POST");
        request.header = value.map(|value| ("x-read", value.to_owned()));
        assert_eq!(
            routing(&pairs).cluster(&request),
            expected,
            "{labels:?} {value:?}"
        );
    }
    let header = RouteHeader {
        name: "X-Read".into(),
        mode: proxy_model::config::HeaderMatchMode::Exists,
        ..RouteHeader::default()
    };
    let options = LabelOptions::default()
        .with_role_routing(RoleRouting::Header)
        .with_read_header(header);
    let config = good(
        &YarpLabels::new(options),
        &stateful(&[("YARP.Routes.r.Path", "/")]),
    );
    assert_eq!(
        Routing::of(&config).cluster(&get("/").header("x-read", "1")),
        READS
    );
}

#[test]
fn labels_about_roles_that_make_no_sense_are_told() {
    let told = rejected(&stateful(&[BY_HEADER]));
    assert_eq!(
        told,
        [
            "error at /YARP.Backend.ServiceFabric.RoleRouting: the header that marks a read is not named (add `YARP.Backend.ServiceFabric.RoleRouting.Header.Name`)"
        ]
    );
    let bad = ("YARP.Backend.ServiceFabric.RoleRouting.Header.Name", "a b");
    let told = rejected(&stateful(&[BY_HEADER, bad, ("YARP.Routes.r.Path", "/")]));
    assert_eq!(told.len(), 1, "{told:?}");
    assert!(
        told[0].starts_with("error at /YARP.Backend.ServiceFabric.RoleRouting.Header.Name: "),
        "{told:?}"
    );

    let mode = (
        "YARP.Backend.ServiceFabric.StatefulReplicaSelectionMode",
        "SecondaryOnly",
    );
    for (described, pointer) in [
        (stateful(&[BY_METHOD, NAME]), "RoleRouting.Header.Name"),
        (stateful(&[BY_METHOD, mode]), "StatefulReplicaSelectionMode"),
        (
            service(ServiceKind::Stateless, &[BY_METHOD], vec![]),
            "RoleRouting",
        ),
    ] {
        let parsed = parse(&described);
        let found: Vec<_> = parsed
            .problems
            .iter()
            .map(|p| (p.pointer.clone(), &*p.code))
            .collect();
        assert_eq!(
            found,
            [(
                format!("/YARP.Backend.ServiceFabric.{pointer}"),
                "no_effect"
            )]
        );
    }
    // The option applies only to services for which it is useful.
    let options = LabelOptions::default().with_role_routing(RoleRouting::Methods);
    let config = good(&YarpLabels::new(options), &web(&[]));
    assert_eq!(cluster_ids(&config), [WRITES]);
}

/// Splitting a route does not change which route takes a request, except in one case, which is reported.
#[test]
fn routes_of_a_service_keep_their_order() {
    let requests: Vec<Request> = ["GET", "POST"]
        .into_iter()
        .flat_map(|method| {
            ["/a/b", "/a", "/z"].into_iter().flat_map(move |path| {
                let plain = get(path).method(method);
                let hosted = plain.clone().host("a.example");
                let marked = plain.clone().header("x-mark", "1");
                [plain, hosted, marked]
            })
        })
        .collect();
    let pairs = [
        ("YARP.Routes.all.Path", "/{**rest}"),
        ("YARP.Routes.host.Path", "/{**rest}"),
        ("YARP.Routes.host.Hosts", "a.example"),
        ("YARP.Routes.mark.Path", "/{**rest}"),
        ("YARP.Routes.mark.MatchHeaders.[0].Name", "X-Mark"),
        ("YARP.Routes.mark.MatchHeaders.[0].Mode", "Exists"),
        ("YARP.Routes.post.Path", "/a"),
        ("YARP.Routes.post.Methods", "POST"),
        ("YARP.Routes.a.Path", "/a"),
        ("YARP.Routes.a.Hosts", "a.example"),
        ("YARP.Routes.first.Path", "/z"),
        ("YARP.Routes.first.Order", "-1"),
    ];
    let undivided = routing(&pairs);
    let by_method: Vec<_> = [BY_METHOD].into_iter().chain(pairs).collect();
    let by_header: Vec<_> = [BY_HEADER, NAME].into_iter().chain(pairs).collect();
    for divided in [routing(&by_method), routing(&by_header)] {
        for request in &requests {
            let found = divided.outcome(request);
            let found = found.trim_end_matches(":reads");
            assert_eq!(found, undivided.outcome(request), "{request:?}");
        }
    }
    let parsed = parse(&stateful(&[
        BY_METHOD,
        ("YARP.Routes.host.Path", "/a"),
        ("YARP.Routes.host.Hosts", "a.example"),
        ("YARP.Routes.get.Path", "a/"),
        ("YARP.Routes.get.Methods", "GET"),
    ]));
    assert_eq!(
        problems(&parsed),
        [
            "warning at /YARP.Routes.host.Path: reads of this route are told by their methods, so it now comes before the route `get` for these (give the routes different `Order`s)"
        ]
    );
}

/// A route, as labels describe it.
fn any_route() -> impl Strategy<Value = Vec<(&'static str, &'static str)>> {
    let one_of = |labels: Vec<(&'static str, &'static str)>| prop::option::of(select(labels));
    (
        select(vec![
            ("Path", "/a"),
            ("Path", "/{x}"),
            ("Path", "/{y}/"),
            ("Path", "/{**z}"),
        ]),
        one_of(vec![
            ("Methods", "GET"),
            ("Methods", "POST"),
            ("Methods", "GET,POST"),
        ]),
        one_of(vec![("Hosts", "a.example"), ("Hosts", "*.example")]),
        one_of(vec![("MatchQueries.[0].Name", "q")]),
        one_of(vec![("Order", "1")]),
    )
        .prop_map(|(path, methods, hosts, query, order)| {
            let exists = query.map(|_| ("MatchQueries.[0].Mode", "Exists"));
            let optional = [methods, hosts, query, exists, order];
            [path]
                .into_iter()
                .chain(optional.into_iter().flatten())
                .collect()
        })
}

proptest! {
    /// The same route takes a request, whether or not its service is divided, or the difference is
    /// reported.
    #[test]
    fn dividing_changes_where_a_request_goes_and_not_which_route_takes_it(
        routes in prop::collection::vec(any_route(), 1..5),
        by_header: bool,
    ) {
        let mut labels = Vec::new();
        for (i, route) in routes.iter().enumerate() {
            labels.extend(route.iter().map(|(key, value)| (format!("YARP.Routes.r{i}.{key}"), *value)));
        }
        let pairs: Vec<_> = labels.iter().map(|(key, value)| (key.as_str(), *value)).collect();
        let undivided = parse(&stateful(&pairs));
        let division = if by_header { vec![BY_HEADER, NAME] } else { vec![BY_METHOD] };
        let divided = parse(&stateful(&[division, pairs].concat()));
        prop_assert!(!divided.problems.has_errors());
        if !divided.problems.is_empty() {
            prop_assert!(!by_header && divided.problems.iter().all(|p| p.code == "changed_precedence"));
            return Ok(());
        }
        let undivided = Routing::of(&undivided.config.unwrap());
        let divided = Routing::of(&divided.config.unwrap());
        for method in ["GET", "POST"] {
            for path in ["/a", "/b", "/c/d"] {
                for (host, query, header) in [
                    ("a.example", None, None),
                    ("b.example", Some("q=1"), Some("1")),
                    ("other", Some("q=1"), None),
                ] {
                    let mut request = get(path).method(method).host(host);
                    request.query = query.map(str::to_owned);
                    request.header = header.map(|value| ("x-read", value.to_owned()));
                    let found = divided.outcome(&request);
                    prop_assert_eq!(found.trim_end_matches(":reads"), undivided.outcome(&request), "{:?}", request);
                }
            }
        }
    }
}

#[test]
fn roles_partitions_and_listeners_go_together() {
    let address = |id: i64| {
        format!(r#"{{"Endpoints":{{"web":"https://h{id}","grpc":"https://h{id}:5001"}}}}"#)
    };
    let of = |id: i64, role| Replica {
        replica_role: role,
        ..replica(id, &address(id))
    };
    let partitions = vec![
        range(
            "p1",
            0,
            9,
            vec![
                of(1, ReplicaRole::Primary),
                of(2, ReplicaRole::ActiveSecondary),
            ],
        ),
        range(
            "p2",
            10,
            19,
            vec![
                of(3, ReplicaRole::Primary),
                of(4, ReplicaRole::ActiveSecondary),
            ],
        ),
    ];
    let labels = |mode| {
        [
            BY_METHOD,
            ("YARP.Backend.ServiceFabric.PartitionMode", mode),
            ("YARP.Backend.ServiceFabric.ListenerName", "web"),
            ("YARP.Routes.r.Path", "/{**rest}"),
            ("YARP.Routes.g.Path", "/grpc/{**rest}"),
            ("YARP.Routes.g.ServiceFabric.ListenerName", "grpc"),
        ]
    };
    let key = (
        "YARP.Backend.ServiceFabric.PartitionKey.Query",
        "PartitionID",
    );
    let by_key: Vec<_> = labels("Key").into_iter().chain([key]).collect();
    for (pairs, first, second) in [
        (
            &labels("PerPartition")[..],
            "PartitionID=p1",
            "PartitionID=p2",
        ),
        (&by_key, "PartitionID=9", "PartitionID=10"),
    ] {
        let described = service(ServiceKind::Stateful, pairs, partitions.clone());
        let config = good(&YarpLabels::default(), &described);
        assert_eq!(config.clusters.len(), 8);
        let routing = Routing::of(&config);
        for (path, method, query, expected) in [
            ("/x", "GET", first, "p1/secondaries"),
            ("/x", "POST", first, "p1"),
            ("/x", "GET", second, "p2/secondaries"),
            ("/grpc/x", "GET", second, "p2/grpc/secondaries"),
            ("/grpc/x", "POST", second, "p2/grpc"),
        ] {
            let found = routing.cluster(&get(path).method(method).query(query));
            assert_eq!(
                found,
                format!("fabric:/App/Web/{expected}"),
                "{path} {method} {query}"
            );
        }
        let reads = &config.clusters[&ClusterId::from("fabric:/App/Web/p2/grpc/secondaries")];
        assert_eq!(
            addresses(reads),
            [("p2/3", "https://h3:5001/"), ("p2/4", "https://h4:5001/")]
        );
    }
}
