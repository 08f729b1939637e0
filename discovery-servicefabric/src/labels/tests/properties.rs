//! Properties of every service.

use proptest::prelude::*;
use proptest::sample::select;

use super::*;

fn any_key() -> impl Strategy<Value = String> {
    let part = prop_oneof![
        8 => select(vec![
            "Enable", "Backend", "Routes", "Destinations", "r", "R", "BackendId", "Path", "Hosts", "Methods", "Order",
            "MatchHeaders", "MatchQueries", "Transforms", "[0]", "[1]", "[00]", "[x]", "Name", "Values", "Mode", "Metadata",
            "PathPrefix", "PathSet", "HealthCheck", "Healthcheck", "Active", "Passive", "Enabled", "Interval", "SessionAffinity", "Settings",
            "ServiceFabric", "ListenerName", "PartitionMode", "PartitionKey", "Header", "Query", "RouteValue", "Hash",
            "RoleRouting", "ListenerMode", "DefaultRoute", "HttpClient", "HttpRequest", "Version", "WeightedClusters",
            "ClusterId", "Weight", "Priority", "Host", "StatefulReplicaSelectionMode", "__SF", "ServiceName", "",
        ])
        .prop_map(str::to_owned),
        1 => ".{0,6}",
    ];
    prop::collection::vec(part, 0..6).prop_map(|parts| format!("YARP.{}", parts.join(".")))
}

fn any_value() -> impl Strategy<Value = String> {
    prop_oneof![
        4 => select(vec![
            "true", "false", "1", "0", "GET,POST", "/{**rest}", "/a/{id}", "{", "a.example", "Key", "PerPartition", "Merge",
            "Methods", "Header", "PerListener", "X-A", "a", "b", "Exists", "PrimaryOnly", "00:00:10", "10s", "Fnv1a64", "id",
        ])
        .prop_map(str::to_owned),
        1 => ".{0,12}",
    ]
}

fn any_address() -> impl Strategy<Value = String> {
    let url = prop_oneof![
        4 => "(https?|net.tcp|HTTPS)://[a-z0-9.:@?#/ -]{0,16}",
        1 => ".{0,20}",
    ];
    prop_oneof![
        6 => prop::collection::btree_map(prop_oneof!["[abAB]", ".{0,4}"], url, 0..4)
            .prop_map(|listeners| serde_json::json!({ "Endpoints": listeners }).to_string()),
        1 => "https?://[a-z0-9.]{1,8}",
        1 => ".{0,30}",
        1 => Just(String::new()),
    ]
}

fn any_replica() -> impl Strategy<Value = Replica> {
    let role = select(vec![
        ReplicaRole::Primary,
        ReplicaRole::ActiveSecondary,
        ReplicaRole::IdleSecondary,
        ReplicaRole::Unknown,
    ]);
    let status = select(vec![
        ReplicaStatus::Ready,
        ReplicaStatus::Ready,
        ReplicaStatus::Down,
    ]);
    (0_i64..6, any_address(), role, status).prop_map(|(id, address, role, status)| Replica {
        replica_role: role,
        replica_status: status,
        ..replica(id, &address)
    })
}

fn any_partition() -> impl Strategy<Value = PartitionDescription> {
    let kind = select(vec![
        PartitionKind::Singleton,
        PartitionKind::Int64Range,
        PartitionKind::Named,
        PartitionKind::Invalid,
    ]);
    let information = (
        kind,
        "[p-s]{0,2}",
        any::<Option<i8>>(),
        any::<Option<i8>>(),
        any::<Option<bool>>(),
    );
    let replicas = prop::collection::vec(any_replica(), 0..4);
    (information, replicas).prop_map(|((kind, id, low, high, name), replicas)| {
        let information = PartitionInformation {
            service_partition_kind: kind,
            id,
            low_key: low.map(Into::into),
            high_key: high.map(Into::into),
            name: name.map(|name| name.to_string()),
        };
        PartitionDescription::new(information, replicas)
    })
}

/// Partitions as a cluster has them.
fn honest_partitions() -> impl Strategy<Value = Vec<PartitionDescription>> {
    let replicas = || prop::collection::vec(any_replica(), 0..4);
    prop_oneof![
        replicas().prop_map(|replicas| vec![singleton(replicas)]),
        prop::collection::vec(replicas(), 0..5).prop_map(|all| {
            let numbered = all.into_iter().enumerate();
            numbered
                .map(|(i, replicas)| {
                    range(&format!("p{i}"), i as i64 * 10, i as i64 * 10 + 9, replicas)
                })
                .collect()
        }),
        prop::collection::vec(replicas(), 0..5).prop_map(|all| {
            let numbered = all.into_iter().enumerate();
            numbered
                .map(|(i, replicas)| named(&format!("p{i}"), &format!("n{i}"), replicas))
                .collect()
        }),
    ]
}

/// Labels that are right.
fn honest_labels() -> impl Strategy<Value = Vec<(String, String)>> {
    let backend = |name: &'static str, values: Vec<&'static str>| {
        let label = select(values)
            .prop_map(move |value| vec![(format!("YARP.Backend.{name}"), value.to_owned())]);
        prop_oneof![Just(Vec::new()), label]
    };
    let criteria = select(vec![
        vec![],
        vec![("Methods", "GET,POST")],
        vec![("Methods", "PUT")],
        vec![("Hosts", "a.example")],
        vec![
            ("MatchHeaders.[0].Name", "X"),
            ("MatchHeaders.[0].Mode", "Exists"),
        ],
        vec![("Transforms.[7].PathPrefix", "/x")],
        vec![("ServiceFabric.ListenerName", "a")],
        vec![("ServiceFabric.PartitionKey.RouteValue", "id")],
        vec![("ClusterId", "elsewhere")],
    ]);
    let route = (
        select(vec!["/a/{id}", "/{id}/{**rest}", "/b/{id}/c"]),
        criteria,
    );
    let routes = prop::collection::vec(route, 0..4).prop_map(|routes| {
        let mut labels = Vec::new();
        for (i, (path, criteria)) in routes.into_iter().enumerate() {
            labels.push((format!("YARP.Routes.r{i}.Path"), path.to_owned()));
            let keys = criteria.into_iter();
            labels.extend(
                keys.map(|(key, value)| (format!("YARP.Routes.r{i}.{key}"), value.to_owned())),
            );
        }
        labels
    });
    (
        backend(
            "ServiceFabric.PartitionMode",
            vec!["Merge", "PerPartition", "Key"],
        ),
        backend("ServiceFabric.ListenerMode", vec!["One", "PerListener"]),
        backend(
            "ServiceFabric.RoleRouting",
            vec!["Off", "Methods", "Header"],
        ),
        backend("ServiceFabric.ListenerName", vec!["a", "b"]),
        backend("ServiceFabric.DefaultRoute", vec!["true", "false"]),
        backend("ServiceFabric.PathPrefix", vec!["true", "false"]),
        backend("HealthCheck.Active.ServiceFabric.ListenerName", vec!["a"]),
        routes,
    )
        .prop_map(|(a, b, c, d, e, f, g, h)| {
            let fixed = [
                ("YARP.Backend.ServiceFabric.PartitionKey.Header", "X-Key"),
                (
                    "YARP.Backend.ServiceFabric.RoleRouting.Header.Name",
                    "X-Read",
                ),
            ];
            let fixed = fixed.map(|(key, value)| (key.to_owned(), value.to_owned()));
            [a, b, c, d, e, f, g, h, fixed.into()].concat()
        })
}

fn described(
    kind: ServiceKind,
    pairs: &[(String, String)],
    partitions: Vec<PartitionDescription>,
) -> ServiceDescription {
    let pairs: Vec<(&str, &str)> = pairs
        .iter()
        .map(|(k, v)| (k.as_str(), v.as_str()))
        .collect();
    service(kind, &pairs, partitions)
}

fn any_kind() -> impl Strategy<Value = ServiceKind> {
    select(vec![
        ServiceKind::Stateless,
        ServiceKind::Stateful,
        ServiceKind::Invalid,
    ])
}

/// Checks the properties of a service.
fn check(
    parser: &YarpLabels,
    service: &ServiceDescription,
    schemes: &[&str],
) -> Result<(), TestCaseError> {
    let parsed = parser.parse(&service.name, service);
    prop_assert_eq!(
        &parser.parse(&service.name, service),
        &parsed,
        "it is not deterministic"
    );
    let mut turned = service.clone();
    turned.partitions.reverse();
    for partition in &mut turned.partitions {
        partition.replicas.reverse();
    }
    let ids: std::collections::HashSet<_> = service
        .partitions
        .iter()
        .map(|p| p.information.id.to_lowercase())
        .collect();
    if ids.len() == service.partitions.len() {
        prop_assert_eq!(
            &parser.parse(&turned.name, &turned),
            &parsed,
            "the order of replicas matters"
        );
    }
    prop_assert!(parsed.problems.len() <= 102);
    let Some(config) = parsed.config else {
        prop_assert!(!parsed.problems.has_errors());
        return Ok(());
    };
    for destination in config
        .clusters
        .values()
        .flat_map(|cluster| cluster.destinations.values())
    {
        for address in [Some(&destination.address), destination.health.as_ref()]
            .into_iter()
            .flatten()
        {
            let allowed = schemes
                .iter()
                .any(|scheme| address.starts_with(&format!("{scheme}://")));
            prop_assert!(allowed, "{}", address);
        }
    }
    if parsed.problems.has_errors() {
        prop_assert_eq!(&*config, &ProxyConfig::default());
    }
    let compiled = Snapshot::compile(Arc::clone(&config), &CompileOptions::default());
    if let Err(problems) = compiled {
        // Only the program knows its policies.
        let is_policy = |p: &proxy_model::Problem| {
            p.code.starts_with("unknown_") && p.code.ends_with("_policy")
        };
        prop_assert!(
            problems.errors().all(is_policy),
            "{}\n{:#?}",
            problems,
            config
        );
    }
    Ok(())
}

proptest! {
    #[test]
    fn anything_at_all_does_no_harm(
        pairs in prop::collection::vec((any_key(), any_value()), 0..20),
        partitions in prop::collection::vec(any_partition(), 0..4),
        kind in any_kind(),
        insecure: bool,
    ) {
        let parser = YarpLabels::new(LabelOptions::default().with_insecure_http(insecure));
        let schemes: &[&str] = if insecure { &["https", "http"] } else { &["https"] };
        check(&parser, &described(kind, &pairs, partitions), schemes)?;
    }

    #[test]
    fn what_is_right_is_served(
        pairs in honest_labels(),
        partitions in honest_partitions(),
        kind in any_kind(),
    ) {
        let parser = YarpLabels::default();
        let service = described(kind, &pairs, partitions);
        check(&parser, &service, &["https"])?;
        let parsed = parser.parse(&service.name, &service);
        prop_assert!(!parsed.problems.has_errors(), "{}", parsed.problems);
        let config = parsed.config.unwrap();
        // Each cluster that a route names exists, except other services' clusters.
        for route in config.routes.values() {
            let one = route.cluster_id.iter();
            let many = route.partitioned_clusters.iter().flat_map(|p| p.partitions.iter().map(|p| &p.cluster_id));
            for id in one.chain(many) {
                prop_assert!(id.as_str() == "elsewhere" || config.clusters.contains_key(id), "{}", id);
            }
        }
    }

    /// Addresses come from arbitrary code in the cluster.
    #[test]
    fn addresses_do_no_harm(address in any_address(), listener in prop::option::of("[abAB]")) {
        if let Ok(endpoints) = Endpoints::parse(&address) {
            let _ = endpoints.choose(listener.as_deref(), Schemes::All);
        }
    }
}
