//! Tests of services, instances and their labels.

use super::*;

fn table(list: &[(&str, (u32, u32))]) -> BTreeMap<String, (u32, u32)> {
    let entries = list.iter();
    entries
        .map(|(address, numbers)| ((*address).to_owned(), *numbers))
        .collect()
}

#[tokio::test(start_paused = true)]
async fn tags_and_metadata_become_routes_and_clusters() {
    let consul = FakeConsul::new("sas");
    let by_tags =
        served("web", "web-1", 80).with_tag("proxy.cluster.loadBalancingPolicy=RoundRobin");
    consul.register("sas", "n1", by_tags);
    let by_meta = ServiceDefinition::new("api", 81)
        .with_address("10.9.9.9")
        .with_meta("proxy_enable", "true")
        .with_meta("proxy_routes_main_path", "/api/{**rest}")
        .with_meta("proxy_routes_main_headers_0_name", "X-Version")
        .with_meta("proxy_routes_main_headers_0_values", "2")
        .with_meta("team", "blue");
    consul.register("sas", "n1", by_meta);
    consul.register("sas", "n1", ServiceDefinition::new("silent", 82));
    let state = once(&consul, DiscoveryOptions::default()).await.state;
    assert_eq!(problems(&state), []);
    let web = cluster(&state, "web").unwrap();
    assert_eq!(web.load_balancing_policy.as_deref(), Some("RoundRobin"));
    assert_eq!(
        destinations(&state, "web"),
        table(&[("http://10.0.0.1:80", (0, 1))])
    );
    let (id, destination) = web.destinations.iter().next().unwrap();
    assert_eq!(
        (id.to_string().as_str(), destination.zone.as_deref()),
        ("sas/n1/web-1", Some("sas"))
    );
    let hosts = route(&state, "web:main").r#match.hosts.clone();
    assert_eq!(hosts, Some(vec!["web.example".to_owned()]));
    let api = &route(&state, "api:main").r#match;
    assert_eq!(api.path.as_deref(), Some("/api/{**rest}"));
    assert_eq!(api.headers.as_ref().unwrap()[0].name, "X-Version");
    assert_eq!(
        destinations(&state, "api"),
        table(&[("http://10.9.9.9:81", (0, 1))])
    );
    assert!(cluster(&state, "silent").is_none() && cluster(&state, "consul").is_none());
}

#[tokio::test(start_paused = true)]
async fn only_healthy_instances_are_destinations_with_the_weight_of_their_status() {
    let consul = FakeConsul::new("sas");
    for (nth, status) in [
        (1, HealthStatus::Passing),
        (2, HealthStatus::Warning),
        (3, HealthStatus::Critical),
    ] {
        let id = format!("web-{nth}");
        consul.register(
            "sas",
            "n1",
            served("web", &id, 80 + nth).with_weights(10, 3),
        );
        consul.set_check("sas", &id, status);
    }
    consul.register("sas", "n2", served("web", "web-4", 84));
    consul.set_node_maintenance("sas", "n2", true);
    let state = once(&consul, DiscoveryOptions::default()).await.state;
    assert_eq!(
        destinations(&state, "web"),
        table(&[("http://10.0.0.1:81", (0, 10))])
    );
    let services = ServiceOptions::default().with_include_warning(true);
    let state = once(&consul, DiscoveryOptions::default().with_services(services))
        .await
        .state;
    let both = [
        ("http://10.0.0.1:81", (0, 10)),
        ("http://10.0.0.1:82", (0, 3)),
    ];
    assert_eq!(destinations(&state, "web"), table(&both));
}

#[tokio::test(start_paused = true)]
async fn a_service_without_a_healthy_instance_keeps_its_route() {
    let consul = FakeConsul::new("sas");
    consul.register("sas", "n1", served("web", "web-1", 80));
    consul.set_check("sas", "web-1", HealthStatus::Critical);
    let state = once(&consul, DiscoveryOptions::default()).await.state;
    assert_eq!(destinations(&state, "web"), table(&[]));
    assert!(route(&state, "web:main").cluster_id.is_some());
}

#[tokio::test(start_paused = true)]
async fn instances_that_cannot_be_reached_are_left_out_and_named() {
    let consul = FakeConsul::new("sas");
    consul.register(
        "sas",
        "n1",
        served("web", "good", 80).with_address("2a02:6b8::1"),
    );
    consul.register("sas", "n1", served("web", "portless", 0));
    consul.register("sas", "n1", served("web", "odd", 80).with_address("a b/c"));
    consul.register(
        "sas",
        "n1",
        served("web", "odd-scheme", 80).with_tag("proxy.destinations.scheme=ftp"),
    );
    consul.register(
        "sas",
        "n2",
        served("web", "good", 80).with_address("[2a02:6b8::1]"),
    );
    consul.register(
        "sas",
        "n3",
        served("web", "good", 81).with_tag("proxy.destinations.scheme=https"),
    );
    let state = once(&consul, DiscoveryOptions::default()).await.state;
    let expected = [
        ("http://[2a02:6b8::1]:80", (0, 1)),
        ("https://10.0.0.1:81", (0, 1)),
    ];
    assert_eq!(destinations(&state, "web"), table(&expected));
    let left_out = problems(&state);
    assert_eq!(left_out.len(), 3, "{left_out:?}");
    assert!(left_out.iter().all(|(code, _)| code == "instance_left_out"));
}

#[tokio::test(start_paused = true)]
async fn other_datacenters_have_the_second_tier_and_their_own_addresses() {
    let consul = FakeConsul::new("sas");
    for name in ["vla", "iva"] {
        consul.add_datacenter(name);
    }
    consul.register("sas", "n1", served("web", "web", 80));
    let mut far = served("web", "web", 80).with_address("10.1.0.1");
    let wan = r#"{"Address": "192.0.2.1", "Port": 8080}"#;
    far.tagged_addresses
        .insert("wan".to_owned(), serde_json::from_str(wan).unwrap());
    consul.register("vla", "v1", far);
    consul.register(
        "iva",
        "i1",
        served("web", "web", 80).with_address("10.2.0.1"),
    );
    let expected = [
        ("http://10.0.0.1:80", (0, 1)),
        ("http://192.0.2.1:8080", (1, 1)),
        ("http://10.2.0.1:80", (1, 1)),
    ];
    let state = once(&consul, all_datacenters()).await.state;
    assert_eq!(destinations(&state, "web"), table(&expected));
    let services = ServiceOptions::default()
        .with_wan_addresses(false)
        .with_priorities(BTreeMap::from([("iva".into(), 5)]));
    let state = once(&consul, all_datacenters().with_services(services))
        .await
        .state;
    let expected = [
        ("http://10.0.0.1:80", (0, 1)),
        ("http://10.1.0.1:80", (1, 1)),
        ("http://10.2.0.1:80", (5, 1)),
    ];
    assert_eq!(destinations(&state, "web"), table(&expected));
}

#[tokio::test(start_paused = true)]
async fn the_first_instance_is_right_and_contradictions_are_reported() {
    let consul = FakeConsul::new("sas");
    consul.add_datacenter("aaa");
    let web = |policy: &str| {
        served("web", "web", 80).with_tag(format!("proxy.cluster.loadBalancingPolicy={policy}"))
    };
    consul.register("sas", "n2", web("RoundRobin"));
    consul.register(
        "sas",
        "n3",
        web("Random").with_meta("proxy_cluster_loadBalancingPolicy", "Random"),
    );
    consul.register("aaa", "n1", web("FirstAlphabetical"));
    let state = once(&consul, all_datacenters()).await.state;
    let policy = cluster(&state, "web")
        .unwrap()
        .load_balancing_policy
        .clone();
    assert_eq!(policy.as_deref(), Some("RoundRobin"));
    let problems = problems(&state);
    assert_eq!(problems.len(), 1, "{problems:?}");
    assert!(
        problems[0]
            .1
            .ends_with("/proxy.cluster.loadbalancingpolicy"),
        "{problems:?}"
    );
}

#[tokio::test(start_paused = true)]
async fn a_mistake_costs_its_own_service_only() {
    let consul = FakeConsul::new("sas");
    consul.register(
        "sas",
        "n1",
        served("bad", "bad", 80).with_tag("proxy.routes.main.order=first"),
    );
    consul.register("sas", "n1", served("good", "good", 80));
    let state = once(&consul, DiscoveryOptions::default()).await.state;
    assert!(cluster(&state, "good").is_some() && cluster(&state, "bad").is_none());
    assert_eq!(state.status.quarantined.len(), 1);
}

#[tokio::test(start_paused = true)]
async fn traefik_s_tags_are_a_dialect_for_services_without_ours() {
    let consul = FakeConsul::new("sas");
    let tags = |service: &str| {
        ServiceDefinition::new(service, 9)
            .with_tag("traefik.enable=true")
            .with_tag("traefik.http.routers.r.rule=Host(`t.example`) && PathPrefix(`/x`)")
            .with_tag("traefik.http.services.s.loadbalancer.server.port=8080")
    };
    consul.register("sas", "n1", tags("web"));
    consul.register("sas", "n1", tags("ours").with_tag("proxy.enable=false"));
    let hidden = ServiceDefinition::new("hidden", 80)
        .with_tag("traefik.http.routers.r.rule=HostRegexp(`x`)");
    consul.register("sas", "n1", hidden);
    let state = once(&consul, DiscoveryOptions::default()).await.state;
    assert_eq!(problems(&state), []);
    assert_eq!(
        destinations(&state, "web"),
        table(&[("http://10.0.0.1:8080", (0, 1))])
    );
    let web = route(&state, "web:r");
    assert_eq!(web.r#match.hosts, Some(vec!["t.example".to_owned()]));
    assert_eq!(web.r#match.path.as_deref(), Some("/x/{**rest}"));
    assert!(cluster(&state, "ours").is_none() && cluster(&state, "hidden").is_none());
    let off = ServiceOptions::default().with_traefik_tags(false);
    let state = once(&consul, DiscoveryOptions::default().with_services(off))
        .await
        .state;
    assert!(cluster(&state, "web").is_none());
}

/// A request that Traefik would reject is not let through.
#[tokio::test(start_paused = true)]
async fn what_traefik_protects_is_left_out_and_named_at_its_service() {
    let consul = FakeConsul::new("sas");
    let web = |service: &str| {
        ServiceDefinition::new(service, 80)
            .with_tag("traefik.enable=true")
            .with_tag(format!(
                "traefik.http.routers.r.rule=Host(`{service}.example`)"
            ))
    };
    let auth = web("auth")
        .with_tag("traefik.http.middlewares.a.basicauth.users=u:p")
        .with_tag("traefik.http.routers.r.middlewares=a@consulcatalog");
    consul.register("sas", "n1", auth);
    let internal = web("internal").with_tag("traefik.http.routers.r.entrypoints=internal");
    consul.register("sas", "n1", internal);
    let open = web("open")
        .with_tag("traefik.http.routers.r.entrypoints=web")
        .with_tag("traefik.http.services.s.loadbalancer.server.port=81")
        .with_tag("traefik.http.services.s.loadbalancer.server.weight=7");
    consul.register("sas", "n1", open);
    let state = once(&consul, DiscoveryOptions::default()).await.state;
    let routes = state.config.as_ref().unwrap().routes.keys();
    let routes: Vec<_> = routes.map(ToString::to_string).collect();
    assert_eq!(routes, ["open:r"]);
    assert_eq!(
        destinations(&state, "open"),
        table(&[("http://10.0.0.1:81", (0, 7))])
    );
    let codes: Vec<_> = problems(&state).into_iter().map(|(code, _)| code).collect();
    assert!(
        codes.contains(&"traefik_middleware".to_owned()),
        "{codes:?}"
    );
    assert!(
        codes.contains(&"traefik_entry_point".to_owned()),
        "{codes:?}"
    );
    let services = ServiceOptions::default().with_traefik_entry_points(vec!["internal".to_owned()]);
    let state = once(&consul, DiscoveryOptions::default().with_services(services))
        .await
        .state;
    let routes = state.config.as_ref().unwrap().routes.keys();
    let routes: Vec<_> = routes.map(ToString::to_string).collect();
    assert_eq!(routes, ["internal:r"]);
}

#[tokio::test(start_paused = true)]
async fn a_service_without_labels_can_be_served_and_the_prefix_can_be_another() {
    let consul = FakeConsul::new("sas");
    consul.register("sas", "n1", ServiceDefinition::new("plain", 80));
    consul.register(
        "sas",
        "n1",
        ServiceDefinition::new("other", 80).with_tag("acme.enable=false"),
    );
    let services = ServiceOptions::default()
        .with_enabled_by_default(true)
        .with_label_prefix("acme.");
    let state = once(&consul, DiscoveryOptions::default().with_services(services))
        .await
        .state;
    assert!(cluster(&state, "plain").is_some());
    assert!(cluster(&state, "other").is_none());
    assert!(
        cluster(&state, "consul").is_none(),
        "nobody asks the servers over HTTP"
    );
}
