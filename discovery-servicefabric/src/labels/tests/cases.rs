//! The cases of discovery that are about labels, endpoints and replicas, under their numbers.

use proxy_model::config::{ProxyConfig, RouteHeader};
use proxy_model::{Problem, Problems, Snapshot, pointer_to};

use super::*;

const ROUTE: (&str, &str) = ("YARP.Routes.r1.Path", "/{**catch-all}");

#[test]
fn case_1_a_service_becomes_a_cluster_and_its_routes() {
    let config = good(&YarpLabels::default(), &web(&[ROUTE]));
    assert_eq!(cluster_ids(&config), ["fabric:/App/Web"]);
    let cluster = &config.clusters[0];
    assert_eq!(addresses(cluster), [("P1/101", "https://10.0.0.1/")]);
    assert_eq!(route_ids(&config), ["fabric%3A%2FApp%2FWeb:r1"]);
    let route = &config.routes[0];
    assert_eq!(route.cluster_id, Some("fabric:/App/Web".into()));
    assert_eq!(route.r#match.path.as_deref(), Some("/{**catch-all}"));

    let metadata = cluster.metadata.as_ref().unwrap();
    let metadata: Vec<_> = metadata
        .iter()
        .map(|(k, v)| (k.as_str(), v.as_str()))
        .collect();
    assert_eq!(
        metadata,
        [
            ("__SF.ApplicationTypeName", "AppType"),
            ("__SF.ApplicationName", "fabric:/App"),
            ("__SF.ServiceTypeName", "WebType"),
            ("__SF.ServiceName", "fabric:/App/Web"),
        ]
    );
    let metadata = cluster.destinations[0].metadata.as_ref().unwrap();
    let metadata: Vec<_> = metadata
        .iter()
        .map(|(k, v)| (k.as_str(), v.as_str()))
        .collect();
    assert_eq!(metadata, [("PartitionId", "P1"), ("ReplicaId", "101")]);
    let outcome = ReplicaOutcome::new("P1", 101, ServiceKind::Stateless, Ok(vec!["https".into()]));
    assert_eq!(parse(&web(&[ROUTE])).replicas, [outcome]);
}

/// Case 3 requires exactly `true`, as preview10 does; here any case is accepted, as in its successor.
#[test]
fn cases_2_3_and_49_only_services_that_ask_are_served() {
    for (enable, served, told) in [
        (None, false, true),
        (Some("true"), true, false),
        (Some("True"), true, false),
        (Some(" TRUE "), true, false),
        (Some("false"), false, false),
        (Some(""), false, false),
        (Some("yes"), false, true),
        (Some("1"), false, true),
    ] {
        let mut service = web(&[]);
        let mut pairs = vec![ROUTE];
        pairs.extend(enable.map(|value| ("YARP.Enable", value)));
        service.labels = labels(&pairs);
        let parsed = parse(&service);
        assert_eq!(parsed.config.is_some(), served, "{enable:?}");
        assert_eq!(!parsed.problems.is_empty(), told, "{enable:?}");
        assert!(!parsed.problems.has_errors() && (served || parsed.replicas.is_empty()));
    }
    let mut service = web(&[]);
    service.labels = labels(&[ROUTE, ("YARP.Enabled", "true")]);
    assert_eq!(
        problems(&parse(&service)),
        [
            "warning at /YARP.Enabled: the service is not served, since `YARP.Enable` is not `true` (did you mean `YARP.Enable`?)"
        ]
    );
    service.labels = labels(&[("Other.Enable", "true")]);
    assert_eq!(parse(&service), ParsedService::default());
}

#[test]
fn cases_6_7_9_11_13_and_20_endpoints() {
    let address = |listeners: &str| format!(r#"{{"Endpoints":{{{listeners}}}}}"#);
    let insecure = LabelOptions::default().with_insecure_http(true);
    let secure = LabelOptions::default();
    let name = |name| ("YARP.Backend.ServiceFabric.ListenerName", name);
    let health = |name| {
        (
            "YARP.Backend.HealthCheck.Active.ServiceFabric.ListenerName",
            name,
        )
    };
    let rejection = "its listener `http` has the scheme `http`, which the option `DiscoverInsecureHttpDestinations` would allow";
    let two = r#""b":"https://b","B":"https://B:8443","a":"https://a/""#;
    for (case, options, listeners, label, expected) in [
        (
            "6",
            &insecure,
            ADDRESS,
            None,
            Ok(("http://10.0.0.1/", "http")),
        ),
        (
            "7",
            &secure,
            r#"{"Endpoints":{"http":"http://10.0.0.1"}}"#,
            None,
            Err(rejection),
        ),
        (
            "8",
            &secure,
            &address(two),
            None,
            Ok(("https://b:8443/", "B")),
        ),
        (
            "9",
            &secure,
            &address(two),
            Some(name("a")),
            Ok(("https://a/", "a")),
        ),
        ("11", &secure, ADDRESS, Some(name("http")), Err(rejection)),
        (
            "13",
            &secure,
            &address(r#""":"https://x/y""#),
            None,
            Ok(("https://x/y", "")),
        ),
        (
            "20",
            &secure,
            ADDRESS,
            Some(health("probe")),
            Err("it has no listener `probe`, only `http`, `https`"),
        ),
        (
            "28",
            &secure,
            ADDRESS,
            Some(("YARP.Backend.BackendId", "")),
            Ok(("https://10.0.0.1/", "https")),
        ),
    ] {
        let mut service = web(&[ROUTE]);
        let pairs = [("YARP.Enable", "true"), ROUTE].into_iter().chain(label);
        service.labels = labels(&pairs.collect::<Vec<_>>());
        service.partitions[0].replicas[0].address = listeners.to_owned();
        let parsed = YarpLabels::new(options.clone()).parse(&service.name, &service);
        let config = parsed.config.as_ref().expect("it is enabled");
        assert_compiles(config);
        // The cluster and its routes stay, independent of the replicas.
        assert_eq!(
            config.routes[0].cluster_id,
            Some("fabric:/App/Web".into()),
            "{case}"
        );
        let found = addresses(&config.clusters[&ClusterId::from("fabric:/App/Web")]);
        assert_eq!(parsed.replicas.len(), 1);
        match (expected, &parsed.replicas[0].result) {
            (Ok((address, listener)), Ok(listeners)) => {
                assert_eq!(found, [("P1/101", address)], "{case}");
                assert_eq!(listeners, &[listener.to_owned()], "{case}");
                assert_eq!(problems(&parsed), Vec::<String>::new(), "{case}");
            }
            (Err(reason), Err(told)) => {
                assert_eq!(found, [], "{case}");
                assert_eq!(told, reason, "{case}");
                let problems: Vec<_> = parsed.problems.iter().collect();
                assert_eq!(problems.len(), 1, "{case}: {problems:?}");
                assert_eq!(problems[0].code, "no_usable_endpoint");
                assert!(problems[0].message.contains(reason) && !parsed.problems.has_errors());
            }
            (expected, found) => panic!("{case}: {found:?} instead of {expected:?}"),
        }
    }
}

#[test]
fn both_endpoints_are_taken_where_they_are_named() {
    let mut service = web(&[
        ROUTE,
        ("YARP.Backend.ServiceFabric.ListenerName", "main"),
        (
            "YARP.Backend.HealthCheck.Active.ServiceFabric.ListenerName",
            "probe",
        ),
    ]);
    service.partitions[0].replicas[0].address =
        r#"{"Endpoints":{"main":"https://h:443/base","probe":"https://h:9000/p"}}"#.to_owned();
    let config = good(&YarpLabels::default(), &service);
    let destination = &config.clusters[0].destinations[&DestinationId::from("P1/101")];
    assert_eq!(destination.address, "https://h/base");
    assert_eq!(destination.health.as_deref(), Some("https://h:9000/p"));
}

#[test]
fn cases_17_and_18_what_is_ready_counts_and_health_does_not() {
    for (status, expected) in [
        (ReplicaStatus::Ready, true),
        (ReplicaStatus::InBuild, false),
        (ReplicaStatus::Standby, false),
        (ReplicaStatus::Down, false),
        (ReplicaStatus::Dropped, false),
        (ReplicaStatus::Invalid, false),
        (ReplicaStatus::from("New"), false),
    ] {
        let mut service = web(&[ROUTE]);
        let replica = &mut service.partitions[0].replicas[0];
        replica.replica_status = status.clone();
        replica.health_state = crate::model::HealthState::Error;
        let parsed = parse(&service);
        assert_eq!(problems(&parsed), Vec::<String>::new());
        assert_eq!(!parsed.replicas.is_empty(), expected, "{status}");
        let config = parsed.config.unwrap();
        assert_eq!(
            !config.clusters[0].destinations.is_empty(),
            expected,
            "{status}"
        );
    }
}

#[test]
fn case_21_and_the_selection_of_roles() {
    let replicas = || {
        vec![
            with_role(1, ReplicaRole::Primary),
            with_role(2, ReplicaRole::ActiveSecondary),
            with_role(3, ReplicaRole::IdleSecondary),
            with_role(4, ReplicaRole::None),
            with_role(5, ReplicaRole::Unknown),
        ]
    };
    let label = |mode| {
        (
            "YARP.Backend.ServiceFabric.StatefulReplicaSelectionMode",
            mode,
        )
    };
    for (mode, option, expected) in [
        (
            None,
            ReplicaSelection::All,
            &["P1/1", "P1/2", "P1/3", "P1/4", "P1/5"][..],
        ),
        (None, ReplicaSelection::PrimaryOnly, &["P1/1"]),
        (Some(label("PrimaryOnly")), ReplicaSelection::All, &["P1/1"]),
        (
            Some(label(" primaryonly ")),
            ReplicaSelection::All,
            &["P1/1"],
        ),
        (
            Some(label("SecondaryOnly")),
            ReplicaSelection::All,
            &["P1/2"],
        ),
        (
            Some(label("All")),
            ReplicaSelection::PrimaryOnly,
            &["P1/1", "P1/2", "P1/3", "P1/4", "P1/5"],
        ),
    ] {
        let pairs: Vec<_> = [ROUTE].into_iter().chain(mode).collect();
        let stateful = service(ServiceKind::Stateful, &pairs, vec![singleton(replicas())]);
        let parser = YarpLabels::new(LabelOptions::default().with_replica_selection(option));
        let config = good(&parser, &stateful);
        let ids: Vec<_> = config.clusters[0]
            .destinations
            .keys()
            .map(|id| id.as_str())
            .collect();
        assert_eq!(ids, expected, "{mode:?}");
        assert_eq!(
            parser.parse(&stateful.name, &stateful).replicas.len(),
            expected.len()
        );

        // Instances have no roles, so they are always wanted.
        let stateless = service(ServiceKind::Stateless, &pairs, vec![singleton(replicas())]);
        assert_eq!(good(&parser, &stateless).clusters[0].destinations.len(), 5);
    }
    let bogus = service(
        ServiceKind::Stateful,
        &[ROUTE, label("Primary")],
        vec![singleton(replicas())],
    );
    let parsed = parse(&bogus);
    assert_eq!(
        problems(&parsed),
        [
            "error at /YARP.Backend.ServiceFabric.StatefulReplicaSelectionMode: `Primary` is not one of All, PrimaryOnly, SecondaryOnly"
        ]
    );
    assert_eq!(parsed.config.as_deref(), Some(&ProxyConfig::default()));
    let typo = service(
        ServiceKind::Stateful,
        &[ROUTE, label("PrimayOnly")],
        vec![singleton(replicas())],
    );
    let found = problems(&parse(&typo));
    assert!(
        found[0].contains("did you mean `PrimaryOnly`?"),
        "{found:?}"
    );
    // A parameter that is not set leaves nothing, which is as if the label were not there.
    let unset = service(
        ServiceKind::Stateful,
        &[ROUTE, label("")],
        vec![singleton(replicas())],
    );
    let parsed = parse(&unset);
    assert_eq!(problems(&parsed), [""; 0]);
    assert_eq!(parsed.config.unwrap().clusters[0].destinations.len(), 5);
}

#[test]
fn errors_of_words_and_of_what_they_make_are_told_together() {
    let pairs = [
        ("YARP.Routes.r1.Path", "/bad/{oops"),
        ("YARP.Routes.r1.Order", "abc"),
        ("YARP.Routes.r2.Path", "/good"),
        ("YARP.Routes.r2.MatchHeaders.[0].Name", "X-One"),
        ("YARP.Routes.r2.MatchHeaders.[0].Mode", "Nope"),
        ("YARP.Routes.r3.Hosts", "bad host"),
        ("YARP.Backend.HealthCheck.Active.Interval", "soon"),
        ("YARP.Backend.LoadBalancingPolicy", "RoundRobin"),
    ];
    let web = service(
        ServiceKind::Stateless,
        &pairs,
        vec![singleton(vec![replica(101, ADDRESS)])],
    );
    let found = problems(&parse(&web));
    let about = |label: &str| found.iter().filter(|of| of.contains(label)).count();
    for label in [
        "/YARP.Routes.r1.Path:",
        "/YARP.Routes.r1.Order:",
        "/YARP.Routes.r2.MatchHeaders.[0].Mode: `Nope`",
        "/YARP.Routes.r3.Hosts:",
        "/YARP.Backend.HealthCheck.Active.Interval:",
    ] {
        assert_eq!(about(label), 1, "{label} in {found:#?}");
    }
    // Without its mode the condition would lack values, which is only a consequence.
    assert_eq!(about("MatchHeaders.[0]"), 1, "{found:#?}");
}

/// The problems of a proxy that supports only forwarding.
fn unsupported(snapshot: &Snapshot) -> Problems {
    let mut problems = Problems::new();
    for route in snapshot.routes() {
        let pointer = pointer_to("/Routes", route.id().as_str());
        if route.config().authorization_policy.is_some() {
            let pointer = format!("{pointer}/AuthorizationPolicy");
            problems.push(Problem::warning(pointer, "unsupported", "it is rejected"));
        }
    }
    for cluster in snapshot.clusters() {
        let pointer = pointer_to("/Clusters", cluster.id().as_str());
        for (below, is_asked) in [
            (
                "SessionAffinity",
                cluster.config().session_affinity.is_some(),
            ),
            ("HealthCheck/Passive", cluster.passive_check().is_some()),
            ("Destinations/sample/Address", true),
        ] {
            if is_asked {
                let pointer = format!("{pointer}/{below}");
                problems.push(Problem::warning(pointer, "unsupported", "nothing is done"));
            }
        }
    }
    problems
}

#[test]
fn what_the_proxy_does_not_honour_is_told_with_its_label() {
    let pairs = [
        ROUTE,
        ("YARP.Routes.r1.AuthorizationPolicy", "Default"),
        ("YARP.Routes.r2.Path", "/two"),
        ("YARP.Backend.SessionAffinity.Enabled", "true"),
        ("YARP.Backend.HealthCheck.Passive.Enabled", "true"),
    ];
    let web = service(
        ServiceKind::Stateless,
        &pairs,
        vec![singleton(vec![replica(101, ADDRESS)])],
    );
    let parser = YarpLabels::default().with_unsupported(unsupported);
    let parsed = parser.parse(&web.name, &web);
    assert_eq!(
        problems(&parsed),
        [
            "warning at /YARP.Routes.r1.AuthorizationPolicy: it is rejected",
            "warning at /YARP.Backend.SessionAffinity.Enabled: nothing is done",
            "warning at /YARP.Backend.HealthCheck.Passive.Enabled: nothing is done",
        ]
    );
    // A policy that only the program knows hides nothing of the rest.
    let unknown = [
        pairs[0],
        pairs[2],
        pairs[3],
        ("YARP.Routes.r1.TimeoutPolicy", "house"),
    ];
    let unknown = service(
        ServiceKind::Stateless,
        &unknown,
        vec![singleton(vec![replica(101, ADDRESS)])],
    );
    assert_eq!(
        problems(&parser.parse(&unknown.name, &unknown)),
        ["warning at /YARP.Backend.SessionAffinity.Enabled: nothing is done"]
    );
    // A proxy that honours everything warns of nothing.
    assert_eq!(problems(&parse(&web)), [""; 0]);
}

#[test]
fn case_25_replicas_have_ids_in_their_partition_only() {
    let primary = || vec![with_role(7, ReplicaRole::Primary)];
    let stateful = service(
        ServiceKind::Stateful,
        &[ROUTE],
        vec![named("P2", "b", primary()), named("P1", "a", primary())],
    );
    let config = good(&YarpLabels::default(), &stateful);
    let destinations = &config.clusters[&ClusterId::from("fabric:/App/Web")].destinations;
    let ids: Vec<_> = destinations.keys().map(|id| id.as_str()).collect();
    assert_eq!(ids, ["P1/7", "P2/7"]);
    let metadata = destinations[&DestinationId::from("P1/7")]
        .metadata
        .as_ref()
        .unwrap();
    assert_eq!(metadata["NamedPartitionName"], "a");
    assert_eq!(metadata["ReplicaRole"], "Primary");
}

#[test]
fn cases_31_to_44_labels_that_are_wrong_or_look_so() {
    for (case, label, expected) in [
        (
            "31",
            ("YARP.Routes.r2.Order", "1"),
            "error at /YARP.Routes.r2.Order: the route has neither a `Path` nor `Hosts` (to match everything write `\"Path\": \"/{**catchall}\"`)",
        ),
        (
            "40",
            ("YARP.Routes.r1.MatchHeaders.[0].Mode", "Nope"),
            "error at /YARP.Routes.r1.MatchHeaders.[0].Mode: a condition needs a `Name`",
        ),
        (
            "42",
            ("YARP.Backend.HealthCheck.Active.Interval", "10"),
            "error at /YARP.Backend.HealthCheck.Active.Interval: `10` has no unit: .NET reads a bare number as days (for seconds write `10s` or `00:00:10`)",
        ),
        (
            "O09",
            ("YARP.Backend.HealthCheck.Active.Timeout", "foobar"),
            "error at /YARP.Backend.HealthCheck.Active.Timeout: `foobar` is not a length of time (write `15s`, `1m30s` or `00:00:15`)",
        ),
    ] {
        let told = rejected(&web(&[ROUTE, label]));
        assert_eq!(told, [expected], "{case}");
    }
    let told = rejected(&web(&[
        ROUTE,
        ("YARP.Routes.r1.MatchHeaders.[0].Name", "X"),
        ("YARP.Routes.r1.MatchHeaders.[0].Mode", "Nope"),
    ]));
    assert_eq!(told.len(), 1, "{told:?}");
    assert!(
        told[0].starts_with("error at /YARP.Routes.r1.MatchHeaders.[0].Mode: `Nope` is not one of")
    );

    let told = rejected(&web(&[
        ROUTE,
        ("YARP.Routes.r1.Transforms.[0].PathPrefix", "/p"),
        ("YARP.Routes.r1.Transforms.[0].pathprefix", "/p"),
    ]));
    assert_eq!(
        told,
        [
            "error at /YARP.Routes.r1.Transforms.[0].pathprefix: `pathprefix` is there twice, in different case"
        ]
    );

    // Case 36.
    let parsed = parse(&web(&[ROUTE, ("YARP.Routes.r2", "x")]));
    assert_eq!(parsed.config.as_ref().unwrap().routes.len(), 1);
    assert_eq!(
        problems(&parsed),
        ["warning at /YARP.Routes.r2: `YARP.Routes.r2` is not known"]
    );
}

#[test]
fn cases_32_and_42_values_that_are_right() {
    let config = good(
        &YarpLabels::default(),
        &web(&[
            ("YARP.Routes.r1.Hosts", " a.com , ,b.com"),
            ("YARP.Backend.HealthCheck.Active.Interval", "00:00:10"),
            ("YARP.Routes.r1.MatchHeaders.[3].Name", "X"),
            (
                "YARP.Routes.r1.MatchHeaders.[3].Values",
                "apples, oranges,grapes",
            ),
        ]),
    );
    let criteria = &config.routes[0].r#match;
    let hosts = ["a.com".to_owned(), "b.com".to_owned()];
    assert_eq!(criteria.hosts.as_deref(), Some(&hosts[..]));
    let values = ["apples", "oranges", "grapes"].map(str::to_owned);
    let header = RouteHeader {
        name: "X".into(),
        values: Some(values.into()),
        ..RouteHeader::default()
    };
    assert_eq!(criteria.headers, Some(vec![header]));
    let interval = |text: &str| {
        let config = good(
            &YarpLabels::default(),
            &web(&[ROUTE, ("YARP.Backend.HealthCheck.Active.Interval", text)]),
        );
        let health = config.clusters[0].health_check.clone().unwrap();
        health.active.unwrap().interval.unwrap().to_string()
    };
    assert_eq!(interval("00:00:10"), "00:00:10");
    // Rejected by YARP; here it is a valid time.
    assert_eq!(interval("10s"), "00:00:10");
}

#[test]
fn case_66_a_name_may_have_spaces() {
    let mut service = web(&[ROUTE]);
    service.name = "fabric:/a/b/svc x".into();
    let config = good(&YarpLabels::default(), &service);
    assert_eq!(cluster_ids(&config), ["fabric:/a/b/svc x"]);
    assert_eq!(route_ids(&config), ["fabric%3A%2Fa%2Fb%2Fsvc%20x:r1"]);
}
