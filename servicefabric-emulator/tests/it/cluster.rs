//! A cluster from outside: the example topologies, and a few minutes in the life of a shop.

use servicefabric_emulator::cluster::{
    ApplicationStatus, Cluster, FabricName, PageRequest, PartitionKey, PartitionStatus, Replica,
    ReplicaStatus, ServiceUpdate, UpgradeRequest, UpgradeState,
};
use servicefabric_emulator::health::{EntityKey, HealthReport, HealthState};
use servicefabric_emulator::hosting::{PackageKey, Span, Timestamp};
use servicefabric_emulator::topology::Topology;

const EXAMPLES: &[(&str, &str, usize)] = &[
    ("minimal", include_str!("../../topologies/minimal.toml"), 1),
    ("shop", include_str!("../../topologies/shop.toml"), 3),
    (
        "partitions",
        include_str!("../../topologies/partitions.toml"),
        4,
    ),
    (
        "broken-labels",
        include_str!("../../topologies/broken-labels.toml"),
        7,
    ),
    (
        "thousand-services",
        include_str!("../../topologies/thousand-services.toml"),
        1000,
    ),
];

fn load(text: &str) -> Cluster {
    let topology = Topology::from_toml(text).unwrap_or_else(|error| panic!("{error}"));
    let mut cluster = Cluster::new(&topology).unwrap_or_else(|error| panic!("{error}"));
    cluster.advance(Timestamp::from_secs(1));
    cluster
}

fn name(text: &str) -> FabricName {
    FabricName::parse(text).expect("a name")
}

fn pass(cluster: &mut Cluster, seconds: u64) {
    cluster.advance(Timestamp::from_millis(
        cluster.now().as_millis() + seconds * 1000,
    ));
}

/// Returns all services of the cluster, from its pages.
fn services(cluster: &Cluster) -> Vec<FabricName> {
    let applications = cluster.applications(None, &PageRequest::default());
    let all = applications.items.iter().flat_map(|application| {
        cluster
            .services(&application.name, None, &PageRequest::default())
            .expect("the application is there")
            .items
    });
    all.map(|service| service.name.clone()).collect()
}

fn replicas(cluster: &Cluster, service: &FabricName) -> Vec<Replica> {
    let partitions = cluster
        .partitions(service, &PageRequest::default())
        .expect("the service is there")
        .items;
    partitions
        .iter()
        .flat_map(|partition| partition.replicas.values().cloned())
        .collect()
}

fn ready(cluster: &Cluster, service: &FabricName) -> usize {
    let all = replicas(cluster, service).into_iter();
    all.filter(|replica| replica.status == ReplicaStatus::Ready)
        .count()
}

#[test]
fn every_example_is_a_healthy_cluster() {
    for (example, text, count) in EXAMPLES {
        let cluster = load(text);
        let services = services(&cluster);
        assert_eq!(services.len(), *count, "{example}");
        for service in &services {
            for partition in cluster
                .partitions(service, &PageRequest::default())
                .unwrap()
                .items
            {
                assert_eq!(
                    partition.status,
                    PartitionStatus::Ready,
                    "{example}: {service}"
                );
            }
        }
        assert_eq!(
            cluster.health_state(&EntityKey::Cluster),
            HealthState::Ok,
            "{example}"
        );
        let next = cluster.next_due();
        assert!(next.is_some(), "hosting looks for unused packages");
    }
}

#[test]
fn the_first_example_of_the_page_is_the_smallest_file() {
    let page = include_str!("../../docs/topology.md");
    let block = page
        .split("```toml\n")
        .nth(1)
        .and_then(|rest| rest.split("```").next())
        .unwrap();
    let written = Topology::from_toml(block).unwrap();
    assert_eq!(written, Topology::from_toml(EXAMPLES[0].1).unwrap());
}

#[test]
fn the_page_names_every_key() {
    let page = include_str!("../../docs/topology.md");
    let cluster = serde_json::to_value(Topology::default()).unwrap();
    for section in ["cluster"] {
        for key in cluster[section].as_object().unwrap().keys() {
            assert!(page.contains(&format!("`{key}`")), "{key} is not described");
        }
    }
    for text in [
        "[cluster]\nnodes = [{ x = 1 }]",
        "[[application_types]]\nx = 1",
        "[[application_types]]\nservice_types.A.x = 1",
        "[applications.A]\nx = 1",
        "[applications.A.services.B]\nx = 1",
        "[[behaviours]]\nx = 1",
    ] {
        let error = Topology::from_toml(text).unwrap_err().to_string();
        // The error lists the valid keys.
        let known: Vec<&str> = error
            .split("expected one of")
            .nth(1)
            .map_or_else(Vec::new, |rest| {
                rest.split('`').skip(1).step_by(2).collect()
            });
        if !text.contains("nodes") {
            assert!(known.len() >= 5, "{error}");
        }
        for key in known {
            assert!(page.contains(&format!("`{key}`")), "{key} is not described");
        }
    }
}

#[test]
fn a_few_minutes_in_the_life_of_a_shop() {
    let mut cluster = load(EXAMPLES[1].1);
    let (shop, web) = (name("fabric:/Shop"), name("fabric:/Shop/Web"));
    assert_eq!(ready(&cluster, &web), 3);

    // Scale out.
    let update = ServiceUpdate {
        instance_count: Some(5),
        ..ServiceUpdate::default()
    };
    cluster.update_service(&web, update).unwrap();
    pass(&mut cluster, 1);
    assert_eq!(ready(&cluster, &web), 5);

    // A crash: one instance is gone for the back-off of 5 s, and its node reports that.
    let victim = replicas(&cluster, &web)[0].clone();
    let process = PackageKey::shared("fabric:/Shop", "WebPkg").process("Code");
    cluster
        .crash_code_package(&victim.node, &process, 1)
        .unwrap();
    assert_eq!(ready(&cluster, &web), 4);
    assert_eq!(
        cluster.health_state(&EntityKey::Application(shop.clone())),
        HealthState::Warning
    );
    pass(&mut cluster, 4);
    assert_eq!(ready(&cluster, &web), 4);
    pass(&mut cluster, 2);
    assert_eq!(ready(&cluster, &web), 5);
    // The process counts as healthy after five minutes.
    pass(&mut cluster, 300);
    assert_eq!(
        cluster.health_state(&EntityKey::Application(shop.clone())),
        HealthState::Ok
    );

    // A rolling upgrade: instances are drained, and new labels come with the new version.
    let labels = |cluster: &Cluster| {
        let application = cluster.application(&shop).unwrap();
        let declared = cluster.application_type(&application.type_name, &application.type_version);
        let (_, service_type) = declared.unwrap().service_type("WebType").unwrap();
        service_type.extensions[0].xml.clone()
    };
    assert!(!labels(&cluster).contains("YARP.Routes.offers.Path"));
    let parameters = cluster.application(&shop).unwrap().parameters.clone();
    let request = UpgradeRequest::new("2.0.0").with_parameters(parameters);
    cluster.upgrade_application(&shop, request).unwrap();
    for _ in 0..120 {
        assert!(ready(&cluster, &web) >= 4, "one domain at a time");
        cluster.resolve(&web, &PartitionKey::None, None).unwrap();
        pass(&mut cluster, 1);
    }
    let application = cluster.application(&shop).unwrap();
    assert_eq!(application.status, ApplicationStatus::Ready);
    let state = application.upgrade.as_ref().unwrap().state;
    assert_eq!(state, UpgradeState::RollingForwardCompleted);
    assert!(labels(&cluster).contains("YARP.Routes.offers.Path"));

    // A bad label: the proxy reports it, renews the report, and reports the recovery; then it stops and the
    // report expires.
    let key = EntityKey::Service(web.clone());
    let say = |cluster: &mut Cluster, state: HealthState| {
        let report = HealthReport::new("YARP", "DynamicConfig", state)
            .with_description("YARP.Routes.offers.Hosts: no host")
            .with_ttl(Span::from_secs(90), true);
        cluster
            .report_health(key.clone(), report, state != HealthState::Ok)
            .unwrap();
    };
    say(&mut cluster, HealthState::Warning);
    assert_eq!(
        cluster.health_state(&EntityKey::Cluster),
        HealthState::Warning
    );
    pass(&mut cluster, 60);
    say(&mut cluster, HealthState::Warning);
    pass(&mut cluster, 60);
    assert_eq!(cluster.health_state(&key), HealthState::Warning);
    say(&mut cluster, HealthState::Ok);
    pass(&mut cluster, 30);
    assert_eq!(cluster.health_state(&key), HealthState::Ok);
    let count = |cluster: &Cluster| cluster.health_store().events(&key).len();
    assert_eq!(count(&cluster), 2);
    pass(&mut cluster, 90);
    assert_eq!(count(&cluster), 1);
}

#[test]
fn ten_thousand_services_are_one_page_and_one_call_each() {
    let text = r#"
        cluster.nodes = 50
        [[application_types]]
        name = "T"
        service_types.S = { labels = { YARP.Enable = true } }
        [applications."A{n}"]
        type = "T"
        count = 100
        services."S{n}" = { type = "S", count = 100 }
    "#;
    let cluster = load(text);
    let services = services(&cluster);
    assert_eq!(services.len(), 10_000);
    assert!(services.iter().all(|service| ready(&cluster, service) == 1));
    // Instances are spread: no node has many more than another.
    let nodes = cluster
        .nodes(Default::default(), &PageRequest::default())
        .items;
    let counts: Vec<usize> = nodes
        .iter()
        .map(|node| cluster.replicas_on(&node.name).count())
        .collect();
    assert_eq!(counts.iter().sum::<usize>(), 10_000);
    assert!(
        counts.iter().max().unwrap() - counts.iter().min().unwrap() <= 50,
        "{counts:?}"
    );
}
