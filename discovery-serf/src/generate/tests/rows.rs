//! The rows of the configuration's table, by their numbers. Those about values of tags are with the catalog.

use super::*;

#[test]
fn rows_1_and_2_a_cluster_and_a_route_for_each_service() {
    let discovery = discover(&[
        orders(&[("health-path", "/healthz"), ("instance", "orders-1")]),
        member(
            "n2",
            "10.0.0.2",
            "payments",
            &[
                ("route-path", "/payments/{**catch-all}"),
                ("instance", "payments-2"),
            ],
        ),
    ]);
    assert_eq!(told(&discovery), [""; 0]);
    let names: Vec<_> = discovery.services.iter().map(|s| &*s.name).collect();
    assert_eq!(names, ["orders", "payments"]);
    let written = serde_json::to_value(whole(&discovery)).unwrap();
    let active = |path| {
        serde_json::json!({ "Active": {
            "Enabled": true, "Interval": "00:00:02", "Timeout": "00:00:01", "Path": path,
        } })
    };
    let expected = serde_json::json!({
        "Routes": {
            "route:orders": {
                "ClusterId": "service:orders",
                "Match": { "Hosts": ["orders.local"] },
            },
            "route:payments": {
                "ClusterId": "service:payments",
                "Match": { "Path": "/payments/{**catch-all}" },
            },
        },
        "Clusters": {
            "service:orders": {
                "LoadBalancingPolicy": "RoundRobin",
                "HealthCheck": active("/healthz"),
                "Destinations": { "orders-1": {
                    "Address": "http://10.0.0.1:5000", "Weight": 1, "Metadata": { "Weight": "1" },
                } },
            },
            "service:payments": {
                "LoadBalancingPolicy": "RoundRobin",
                "HealthCheck": active("/health"),
                "Destinations": { "payments-2": {
                    "Address": "http://10.0.0.2:5000", "Weight": 1, "Metadata": { "Weight": "1" },
                } },
            },
        },
    });
    assert_eq!(written, expected, "{written:#}");
}

#[test]
fn row_3_a_canary_is_one_cluster_with_weights() {
    let web = |node, address, version, weight| {
        let more = [
            ("route-path", "/{**catch-all}"),
            ("version", version),
            ("weight", weight),
            ("region", "eu"),
        ];
        member(node, address, "web", &more)
    };
    let discovery = discover(&[
        web("w1", "10.0.0.1", "stable", "10"),
        web("w2", "10.0.0.2", "canary", "1"),
    ]);
    let config = whole(&discovery);
    assert_eq!(routes(&config), ["route:web /{**catch-all}"]);
    let of = |d: &DestinationConfig| {
        let text = |key| metadata(d, key).unwrap_or_default().to_owned();
        (
            d.weight.unwrap(),
            text("Weight"),
            text("Version"),
            text("Region"),
        )
    };
    let said = |weight: u32, version: &str| {
        (
            weight,
            weight.to_string(),
            version.to_owned(),
            "eu".to_owned(),
        )
    };
    assert_eq!(
        of_each(cluster(&config, "service:web"), of),
        [
            ("10.0.0.1:5000", said(10, "stable")),
            ("10.0.0.2:5000", said(1, "canary"))
        ]
    );
}

#[test]
fn rows_36_and_37_the_host_before_the_path() {
    for (host, path, expected) in [
        ("a.local", "/a", "route:web host a.local"),
        ("", "/a", "route:web /a"),
        ("  ", "/a", "route:web /a"),
        ("a b", "/a", "route:web /a"),
        ("a.local", "/{", "route:web host a.local"),
    ] {
        let more = [("host", host), ("route-path", path)];
        let config = whole(&discover(&[member("n", "10.0.0.1", "web", &more)]));
        assert_eq!(routes(&config), [expected]);
    }
}

#[test]
fn rows_38_39_and_40_a_service_without_hint_is_alone_or_has_no_route() {
    // Row 38.
    let reports = member("n2", "10.0.0.2", "reports", &[]);
    let discovery = discover(std::slice::from_ref(&reports));
    assert_eq!(routes(&whole(&discovery)), ["route:reports /{**catch-all}"]);
    assert_eq!(told(&discovery), [""; 0]);
    // Row 39.
    let discovery = discover(&[orders(&[]), reports.clone()]);
    let config = whole(&discovery);
    assert_eq!(clusters(&config), ["service:orders", "service:reports"]);
    assert_eq!(routes(&config), ["route:orders host orders.local"]);
    assert_eq!(told(&discovery), [" no_route_hint"]);
    // Row 40.
    let plain = member("n3", "10.0.0.3", "plain", &[]);
    let discovery = discover(&[plain, reports]);
    assert_eq!(routes(&whole(&discovery)), [""; 0]);
    assert_eq!(told(&discovery), [" no_route_hint", " no_route_hint"]);
}

/// A slip in a host must not open the only service to all requests.
#[test]
fn rows_45_and_48_a_hint_that_cannot_be_used_is_none_and_opens_nothing() {
    for slip in [("host", "a b"), ("route-path", "/a/{")] {
        let reports = member("n2", "10.0.0.2", "reports", &[slip]);
        let discovery = discover(std::slice::from_ref(&reports));
        let config = whole(&discovery);
        assert_eq!(clusters(&config), ["service:reports"]);
        assert_eq!(routes(&config), [""; 0], "{slip:?}");
        assert!(told(&discovery).contains(&" no_route_hint".to_owned()));
    }
    let both = member(
        "n2",
        "10.0.0.2",
        "reports",
        &[("host", "a b"), ("route-path", "/x")],
    );
    assert_eq!(routes(&whole(&discover(&[both]))), ["route:reports /x"]);
}

#[test]
fn a_crash_gives_nobody_the_requests_of_others() {
    let reports = member("n2", "10.0.0.2", "reports", &[]);
    let crashed = discover(&[failed(orders(&[])), reports.clone()]);
    let config = whole(&crashed);
    assert_eq!(clusters(&config), ["service:reports"]);
    assert_eq!(routes(&config), [""; 0]);
    assert_eq!(told(&crashed), [" no_route_hint"]);
    // Who leaves by its own will makes room.
    let left = orders(&[]).with_status(MemberStatus::Left);
    let config = whole(&discover(&[left, reports]));
    assert_eq!(routes(&config), ["route:reports /{**catch-all}"]);
}

#[test]
fn row_51_each_destination_is_probed_where_it_says() {
    let at = |node, address, path| {
        let more = [("instance", node), ("health-path", path)];
        member(node, address, "web", &more)
    };
    let discovery = discover(&[
        at("a", "10.0.0.1", "/h1"),
        at("b", "10.0.0.2", "/h2"),
        at("c", "10.0.0.3", "/h1"),
        at("d", "10.0.0.4", ""),
        at("e", "10.0.0.5", "/health"),
    ]);
    let config = whole(&discovery);
    let (snapshot, _) = Snapshot::compile(config.clone(), &CompileOptions::default()).unwrap();
    let compiled = &snapshot.clusters()[0];
    let check = compiled.active_check().expect("it is on");
    let probed: Vec<_> = compiled
        .destinations()
        .iter()
        .map(|d| check.path_at(d))
        .collect();
    assert_eq!(probed, ["/h1", "/h2", "/h1", "/health", "/health"]);
    // The cluster's is that of the first, and not repeated.
    let own = of_each(cluster(&config, "service:web"), |d| d.health_path.clone());
    assert_eq!(own[0].1, None);
    assert_eq!(own[2].1, None);
}

#[test]
fn rows_52_to_55_weights_are_normalised() {
    for (weight, expected) in [
        ("", 1),
        (" 5 ", 5),
        ("abc", 1),
        ("1.5", 1),
        ("-3", 1),
        ("99999999999999999999", 1),
        ("0", 0),
        ("5000", 1000),
    ] {
        let config = whole(&discover(&[orders(&[("weight", weight)])]));
        let of = |d: &DestinationConfig| (d.weight, metadata(d, "Weight").map(str::to_owned));
        assert_eq!(
            of_each(cluster(&config, "service:orders"), of),
            [(
                "10.0.0.1:5000",
                (Some(expected), Some(expected.to_string()))
            )]
        );
    }
}

#[test]
fn row_56_copies_instead_of_weights() {
    let options = GenerateOptions::default().with_weights(WeightStrategy::Duplicate);
    let at = |node, address, weight| {
        member(
            node,
            address,
            "web",
            &[("instance", node), ("weight", weight)],
        )
    };
    let discovery = discover_with(
        &[
            at("x", "10.0.0.1", "3"),
            at("y", "10.0.0.2", "1"),
            at("z", "10.0.0.3", "0"),
        ],
        &options,
    );
    let config = whole(&discovery);
    let of = |d: &DestinationConfig| {
        let weight = metadata(d, "Weight").unwrap().to_owned();
        (d.address.clone(), d.weight.unwrap(), weight)
    };
    let copy = |address: &str, weight, said: &str| (address.to_owned(), weight, said.to_owned());
    assert_eq!(
        of_each(cluster(&config, "service:web"), of),
        [
            ("x#0", copy("http://10.0.0.1:5000", 1, "3")),
            ("x#1", copy("http://10.0.0.1:5000", 1, "3")),
            ("x#2", copy("http://10.0.0.1:5000", 1, "3")),
            ("y#0", copy("http://10.0.0.2:5000", 1, "1")),
            ("z#0", copy("http://10.0.0.3:5000", 0, "0")),
        ]
    );
    assert_eq!(told(&discovery), [""; 0]);
    // Names that look like copies stay apart.
    let discovery = discover_with(
        &[at("x", "10.0.0.1", "2"), at("x#1", "10.0.0.2", "1")],
        &options,
    );
    let keys = whole(&discovery).clusters[0].destinations.len();
    assert_eq!(keys, 3);
}

#[test]
fn copies_are_bounded() {
    let options = GenerateOptions::default().with_weights(WeightStrategy::Duplicate);
    let members: Vec<_> = (0..300_u32)
        .map(|i| {
            let address = std::net::Ipv4Addr::from(0x0a00_0000 + i).to_string();
            let weight = if i == 0 { "100" } else { "1000" };
            member(&format!("n{i}"), &address, "web", &[("weight", weight)])
        })
        .collect();
    let discovery = discover_with(&members, &options);
    let copies = whole(&discovery).clusters[0].destinations.len();
    assert_eq!(copies, 1 + 299 * 3);
    assert_eq!(told(&discovery), [" too_many_copies"]);
}

#[test]
fn rows_57_and_58_services_that_want_the_same_requests() {
    let want = |node, address, service, key, value| member(node, address, service, &[(key, value)]);
    for (row, key, one, other) in [
        (57, "host", "shop.local", "SHOP.local"),
        (58, "route-path", "/x/{**a}", "/x/{**b}"),
        (58, "route-path", "/X/{id}/", "x/{name}"),
        (18, "route-path", "/{**catch-all}", "/{**rest}"),
    ] {
        let discovery = discover(&[
            want("n1", "10.0.0.1", "b", key, one),
            want("n2", "10.0.0.2", "a", key, other),
        ]);
        let config = whole(&discovery);
        // Both are there, and the order is that of the ids.
        let ids: Vec<_> = config.routes.keys().map(|id| id.as_str()).collect();
        assert_eq!(ids, ["route:a", "route:b"], "row {row}");
        // Who compiles them reports it, for the service that came later.
        let (_, problems) = Snapshot::compile_isolated(config, &CompileOptions::default());
        let codes: Vec<_> = problems.iter().map(|p| (&*p.pointer, &*p.code)).collect();
        let expected = ("/Routes/route:b", "duplicate_route_criteria");
        assert_eq!(codes, [expected], "row {row}");
        assert!(told(&discovery).is_empty(), "row {row}");
    }
}

#[test]
fn row_59_a_host_is_more_than_no_host() {
    let everything = member("n2", "10.0.0.2", "web", &[("route-path", "/{**all}")]);
    let discovery = discover(&[orders(&[]), everything]);
    assert_eq!(
        routes(&whole(&discovery)),
        ["route:orders host orders.local", "route:web /{**all}"]
    );
    assert_eq!(told(&discovery), [""; 0]);
}

#[test]
fn rows_60_to_65_without_a_service_the_backend_is_empty() {
    let plain = |node, address| member(node, address, "", &[("host", "ignored.local")]);
    // Row 60.
    let discovery = discover(&[plain("a", "10.0.0.1"), plain("b", "10.0.0.2")]);
    let config = whole(&discovery);
    assert_eq!(clusters(&config), ["backend-cluster"]);
    assert_eq!(routes(&config), ["backend-route /{**catch-all}"]);
    assert_eq!(config.clusters[0].destinations.len(), 0);
    assert_eq!(discovery.services[0].name.as_ref(), "backend-cluster");
    // Row 61.
    let discovery = discover(&[failed(orders(&[])), plain("a", "10.0.0.2")]);
    assert_eq!(whole(&discovery), ProxyConfig::default());
    // Row 62: see the updates. Row 63: a service with that name is an ordinary one.
    let config = whole(&discover(&[member("a", "10.0.0.1", "backend", &[])]));
    assert_eq!(clusters(&config), ["service:backend"]);
    assert_eq!(routes(&config), ["route:backend /{**catch-all}"]);
    // Row 64: the pool is empty, and requests get 503.
    let gone = failed(plain("a", "10.0.0.1"));
    let config = whole(&discover(&[gone]));
    assert_eq!(routes(&config), ["backend-route /{**catch-all}"]);
    assert_eq!(config.clusters[0].destinations.len(), 0);
    // Row 65: no members.
    assert_eq!(whole(&discover(&[])), ProxyConfig::default());
}

#[test]
fn a_service_that_cannot_be_served_is_told_of_and_not_served() {
    let discovery = discover(&[orders(&[("http-port", "x")])]);
    assert_eq!(whole(&discovery), ProxyConfig::default());
    let [service] = &discovery.services[..] else {
        panic!("{discovery:?}");
    };
    assert!(service.rejected.has_errors());
    assert_eq!(
        told(&discovery),
        ["/members/n1/tags/http-port invalid_http_port"]
    );
}

#[test]
fn a_service_that_is_kept_has_a_route_and_no_destination() {
    let options = CatalogOptions::default().with_keep_empty_services(true);
    let catalog = ServiceCatalog::build(&[failed(orders(&[]))], &options);
    let config = whole(&discovery_of(&catalog, &GenerateOptions::default()));
    assert_eq!(routes(&config), ["route:orders host orders.local"]);
    assert_eq!(config.clusters[0].destinations.len(), 0);
}
