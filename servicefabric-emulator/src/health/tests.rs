//! Tests of the store.

use super::*;
use crate::cluster::testing::{SHOP, cluster, name, partition_of, pass};
use crate::cluster::{Cluster, ErrorCode};
use crate::hosting::Span;

const WEB: &str = "fabric:/Shop/Web";

fn web() -> EntityKey {
    EntityKey::Service(name(WEB))
}

fn report(state: HealthState) -> HealthReport {
    HealthReport::new("YARP", "DynamicConfig", state)
}

/// Returns the event under test.
fn event(cluster: &Cluster, key: &EntityKey) -> Option<HealthEvent> {
    let events = cluster.health_store().events(key).iter();
    events
        .into_iter()
        .find(|event| event.report.source == "YARP")
        .cloned()
}

#[test]
fn an_entity_is_as_bad_as_the_worst_below_it() {
    let mut cluster = cluster(SHOP);
    let replica = partition_of(&cluster, WEB)
        .replicas
        .values()
        .next()
        .unwrap()
        .key;
    let key = EntityKey::Replica(replica);
    let above = [
        EntityKey::Partition(replica.partition),
        web(),
        EntityKey::Application(name("fabric:/Shop")),
        EntityKey::Cluster,
    ];
    for state in [HealthState::Warning, HealthState::Error, HealthState::Ok] {
        cluster
            .report_health(key.clone(), report(state), true)
            .unwrap();
        for entity in &above {
            assert_eq!(cluster.health_state(entity), state, "{entity}");
        }
    }
    cluster
        .report_health(key, report(HealthState::Warning), true)
        .unwrap();
    let found = cluster.health(&web(), &HealthQuery::default()).unwrap();
    let replicas = found.statistics.of(EntityKind::Replica);
    assert_eq!((replicas.ok, replicas.warning, replicas.error), (2, 1, 0));
    let [evaluation] = found.evaluations.as_slice() else {
        panic!("{:?}", found.evaluations);
    };
    assert_eq!(evaluation.state(), HealthState::Warning);
    assert!(
        evaluation.description().contains("partition"),
        "{}",
        evaluation.description()
    );
}

#[test]
fn reports_wait_for_the_next_batch_unless_they_are_immediate() {
    let mut cluster = cluster(SHOP);
    cluster
        .report_health(web(), report(HealthState::Warning), false)
        .unwrap();
    pass(&mut cluster, 28);
    assert_eq!(event(&cluster, &web()), None);
    pass(&mut cluster, 1);
    assert_eq!(
        event(&cluster, &web()).unwrap().state(),
        HealthState::Warning
    );
    // A later immediate report is not overwritten by an earlier pending one.
    cluster
        .report_health(web(), report(HealthState::Error), false)
        .unwrap();
    cluster
        .report_health(web(), report(HealthState::Ok), true)
        .unwrap();
    pass(&mut cluster, 100);
    assert_eq!(event(&cluster, &web()).unwrap().state(), HealthState::Ok);
    cluster.set_health_report_interval(Span::ZERO);
    cluster
        .report_health(web(), report(HealthState::Warning), false)
        .unwrap();
    assert_eq!(
        event(&cluster, &web()).unwrap().state(),
        HealthState::Warning
    );
}

#[test]
fn a_batch_comes_too_late_for_a_short_time_to_live() {
    let mut cluster = cluster(SHOP);
    let short = report(HealthState::Ok).with_ttl(Span::from_secs(15), true);
    cluster.report_health(web(), short, false).unwrap();
    let long = report(HealthState::Ok).with_ttl(Span::from_secs(65), true);
    let other = HealthReport {
        property: "Other".to_owned(),
        ..long
    };
    cluster.report_health(web(), other, false).unwrap();
    pass(&mut cluster, 29);
    let events = cluster.health_store().events(&web());
    let own: Vec<&str> = events
        .iter()
        .filter(|event| event.report.source == "YARP")
        .map(|event| event.report.property.as_str())
        .collect();
    assert_eq!(own, ["Other"]);
    // The time counts from the report, not from the batch.
    pass(&mut cluster, 35);
    assert!(event(&cluster, &web()).is_some());
    pass(&mut cluster, 1);
    assert!(event(&cluster, &web()).is_none());
}

#[test]
fn an_event_whose_time_is_over_goes_or_is_an_error() {
    let mut cluster = cluster(SHOP);
    let ttl = Span::from_secs(90);
    cluster
        .report_health(web(), report(HealthState::Ok).with_ttl(ttl, false), true)
        .unwrap();
    pass(&mut cluster, 89);
    assert_eq!(cluster.health_state(&web()), HealthState::Ok);
    pass(&mut cluster, 1);
    let expired = event(&cluster, &web()).unwrap();
    assert!(expired.is_expired && expired.state() == HealthState::Error);
    assert_eq!(
        cluster.health_state(&EntityKey::Cluster),
        HealthState::Error
    );
    let found = cluster.health(&web(), &HealthQuery::default()).unwrap();
    assert!(found.evaluations[0].description().contains("expired"));
    // A repeated report counts again.
    cluster
        .report_health(web(), report(HealthState::Ok).with_ttl(ttl, true), true)
        .unwrap();
    assert_eq!(cluster.health_state(&web()), HealthState::Ok);
    assert!(event(&cluster, &web()).unwrap().last_error_at.is_some());
    pass(&mut cluster, 90);
    assert_eq!(event(&cluster, &web()), None);
}

#[test]
fn a_report_that_is_renewed_in_time_does_not_expire() {
    let mut cluster = cluster(SHOP);
    for _ in 0..20 {
        let renewed = report(HealthState::Ok).with_ttl(Span::from_secs(60), false);
        cluster.report_health(web(), renewed, true).unwrap();
        pass(&mut cluster, 59);
        assert!(!event(&cluster, &web()).unwrap().is_expired);
    }
    assert!(
        cluster.health_store().expiries_of(&web()) <= 1,
        "old expiries are forgotten"
    );
}

#[test]
fn sequence_numbers_order_the_reports_of_a_source() {
    let mut cluster = cluster(SHOP);
    let numbered = |number: i64, state: HealthState| report(state).with_sequence_number(number);
    cluster
        .report_health(web(), numbered(10, HealthState::Ok), false)
        .unwrap();
    let error = cluster
        .report_health(web(), numbered(9, HealthState::Error), false)
        .unwrap_err();
    assert_eq!(
        error.code,
        ErrorCode::HealthStaleReport,
        "it is stale next to one that waits, too"
    );
    cluster
        .report_health(web(), numbered(11, HealthState::Warning), true)
        .unwrap();
    pass(&mut cluster, 60);
    assert_eq!(event(&cluster, &web()).unwrap().report.sequence_number, 11);
    // A repeated number changes nothing.
    cluster
        .report_health(web(), numbered(11, HealthState::Error), true)
        .unwrap();
    assert_eq!(
        event(&cluster, &web()).unwrap().state(),
        HealthState::Warning
    );
    // A report without a number gets one that is larger than all earlier ones.
    cluster
        .report_health(web(), report(HealthState::Ok), true)
        .unwrap();
    let first = event(&cluster, &web()).unwrap().report.sequence_number;
    assert!(first > 100_000_000_000_000_000, "{first}");
    cluster
        .report_health(web(), report(HealthState::Ok), true)
        .unwrap();
    assert!(event(&cluster, &web()).unwrap().report.sequence_number > first);
}

#[test]
fn a_report_about_nothing_is_taken_and_vanishes() {
    let mut cluster = cluster(SHOP);
    let nothing = EntityKey::Service(name("fabric:/Shop/Nothing"));
    cluster
        .report_health(nothing.clone(), report(HealthState::Error), true)
        .unwrap();
    cluster
        .report_health(nothing, report(HealthState::Error), false)
        .unwrap();
    pass(&mut cluster, 60);
    assert_eq!(cluster.health_state(&EntityKey::Cluster), HealthState::Ok);
}

#[test]
fn descriptions_are_cut_and_events_are_bounded() {
    let mut cluster = cluster(SHOP);
    let long = report(HealthState::Ok).with_description("ß".repeat(4000));
    cluster.report_health(web(), long, true).unwrap();
    let kept = event(&cluster, &web()).unwrap().report.description;
    assert!(kept.len() <= 4096 && kept.len() >= 4094);
    let mut rejected = None;
    for index in 0..1000 {
        let other = HealthReport {
            property: format!("p{index}"),
            ..report(HealthState::Ok)
        };
        if let Err(error) = cluster.report_health(web(), other, true) {
            rejected = Some((index, error.code));
            break;
        }
    }
    let (index, code) = rejected.expect("there is a limit");
    assert_eq!(code, ErrorCode::HealthMaxReportsReached);
    assert!(index > 400);
}

#[test]
fn filters_choose_events_and_children() {
    let mut cluster = cluster(SHOP);
    let replica = partition_of(&cluster, WEB)
        .replicas
        .values()
        .next()
        .unwrap()
        .key;
    cluster
        .report_health(
            EntityKey::Replica(replica),
            report(HealthState::Warning),
            true,
        )
        .unwrap();
    let partition = EntityKey::Partition(replica.partition);
    for (filter, expected) in [
        (StateFilter::DEFAULT, 3),
        (StateFilter::ALL, 3),
        (StateFilter::NONE, 0),
        (StateFilter::OK, 2),
        (StateFilter::WARNING, 1),
        (StateFilter::ERROR, 0),
        (StateFilter::from_bits(6), 3),
    ] {
        let query = HealthQuery {
            replicas: filter,
            ..HealthQuery::default()
        };
        let found = cluster.health(&partition, &query).unwrap();
        assert_eq!(found.children.len(), expected, "{filter:?}");
    }
    let query = HealthQuery {
        events: StateFilter::ERROR,
        ..HealthQuery::default()
    };
    assert!(
        cluster
            .health(&partition, &query)
            .unwrap()
            .events
            .is_empty()
    );
}

fn everything() -> ChunkQuery {
    let state = StateFilter::ALL;
    let replicas = vec![ReplicaFilter { state, id: None }];
    let partitions = vec![PartitionFilter {
        state,
        id: None,
        replicas,
    }];
    let services = vec![ServiceFilter {
        state,
        name: None,
        partitions,
    }];
    let packages = vec![PackageFilter {
        state,
        ..PackageFilter::default()
    }];
    let deployed_applications = vec![DeployedApplicationFilter {
        state,
        node: None,
        packages,
    }];
    ChunkQuery {
        nodes: vec![NodeFilter { state, name: None }],
        applications: vec![ApplicationFilter {
            state,
            services,
            deployed_applications,
            ..ApplicationFilter::default()
        }],
    }
}

#[test]
fn a_chunk_has_the_whole_cluster_or_what_is_asked_for() {
    let mut cluster = cluster(SHOP);
    let chunk = cluster.health_chunk(&everything());
    assert_eq!((chunk.nodes.len(), chunk.applications.len()), (5, 1));
    let application = &chunk.applications[0];
    assert_eq!(application.type_name, "ShopType");
    assert!(!application.deployed_applications.is_empty());
    assert!(
        application
            .deployed_applications
            .iter()
            .all(|found| !found.packages.is_empty())
    );
    let replicas: usize = application
        .services
        .iter()
        .flat_map(|service| &service.partitions)
        .map(|partition| partition.replicas.len())
        .sum();
    assert_eq!(replicas, 3 + 2 * 3);

    let nothing = cluster.health_chunk(&ChunkQuery::default());
    assert!(nothing.nodes.is_empty() && nothing.applications.is_empty());

    // By default, a filter for all includes nothing, and one for a name includes any state.
    let named = ApplicationFilter {
        name: Some(name("fabric:/Shop")),
        services: vec![
            ServiceFilter::default(),
            ServiceFilter {
                name: Some(name(WEB)),
                ..ServiceFilter::default()
            },
        ],
        ..ApplicationFilter::default()
    };
    let query = ChunkQuery {
        nodes: vec![NodeFilter {
            state: StateFilter::ERROR,
            name: None,
        }],
        applications: vec![ApplicationFilter::default(), named],
    };
    let chunk = cluster.health_chunk(&query);
    assert!(chunk.nodes.is_empty());
    assert_eq!(chunk.applications.len(), 1);
    let services = &chunk.applications[0].services;
    assert_eq!(services.len(), 1);
    assert_eq!(services[0].name.as_str(), WEB);
    cluster.stop_node("_Node_4").unwrap();
    let chunk = cluster.health_chunk(&query);
    assert_eq!(chunk.nodes[0].name, "_Node_4");
    assert_eq!(chunk.state, HealthState::Error);
}

#[test]
fn hosting_speaks_of_packages_on_nodes() {
    let mut cluster = cluster(SHOP);
    let node = partition_of(&cluster, WEB)
        .replicas
        .values()
        .next()
        .unwrap()
        .node
        .clone();
    let process = crate::cluster::testing::process("WebPkg");
    cluster.crash_code_package(&node, &process, 3).unwrap();
    let package = EntityKey::DeployedServicePackage {
        package: process.package,
        node: node.clone(),
    };
    assert_eq!(cluster.health_state(&package), HealthState::Warning);
    let above = EntityKey::DeployedApplication {
        application: name("fabric:/Shop"),
        node,
    };
    assert_eq!(cluster.health_state(&above), HealthState::Warning);
    let events = cluster.health_store().events(&package);
    assert!(events.iter().any(|event| {
        event.report.source == "System.Hosting"
            && event
                .report
                .property
                .starts_with("CodePackageActivation:Code")
    }));
}
