//! Several applications, packages, code packages, types and replicas on one node.

use servicefabric_emulator::hosting::{
    Behaviour, CodePackageDescription, DeploymentStatus, Event, HealthEntity, HealthState,
    HostingConfig, Node, NodeError, PackageDescription, PackageKey, Placement, SlotStatus,
    Timestamp, TypeStatus,
};

use crate::hosting::scenario::{moment, outcome, replica, seconds};

const APP: &str = "fabric:/App";

fn placement(name: &str, package: &PackageKey, service_type: &str) -> Placement {
    Placement::new(replica(name), package.clone(), service_type)
}

/// A package with two hosts of two types each, and a helper.
fn large() -> PackageDescription {
    PackageDescription::new(APP, "Large", "1.0", &["A", "B"])
        .with(CodePackageDescription::hosting("Other", "1.0", &["C", "D"]))
        .with(CodePackageDescription::helper("Agent", "1.0"))
}

fn types(node: &Node, application: &str) -> Vec<(String, TypeStatus)> {
    let types = node.service_types(application).into_iter();
    types
        .map(|known| (known.service_type.to_string(), known.status))
        .collect()
}

#[test]
fn a_crash_hits_the_types_of_its_code_package_alone() {
    let package = PackageKey::shared(APP, "Large");
    let mut node = Node::new("N1", HostingConfig::default());
    node.declare(large());
    for (name, service_type) in [("a", "A"), ("b", "B"), ("c", "C"), ("c2", "C")] {
        node.place(placement(name, &package, service_type)).unwrap();
    }
    assert_eq!(node.packages(APP)[0].usage, 4);
    node.advance(Timestamp::from_secs(10));
    node.take_events();
    node.exit(&package.process("Other"), 3).unwrap();
    assert_eq!(node.packages(APP)[0].usage, 2);
    assert_eq!(
        types(&node, APP),
        [
            ("A".to_owned(), TypeStatus::Registered),
            ("B".to_owned(), TypeStatus::Registered),
            ("C".to_owned(), TypeStatus::DisableScheduled),
            ("D".to_owned(), TypeStatus::DisableScheduled),
        ]
    );
    let down: Vec<_> = outcome(&node.take_events())
        .into_iter()
        .map(|(_, word)| word)
        .collect();
    let expected = [
        "exit",
        "unregistered",
        "ServiceTypeRegistration:warning",
        "unregistered",
        "ServiceTypeRegistration:warning",
        "down:c",
        "down:c2",
        "CodePackageActivation:warning",
        "scheduled",
        "scheduled",
    ];
    assert_eq!(down, expected);
    node.advance(Timestamp::from_secs(25));
    assert_eq!(node.packages(APP)[0].usage, 4);
}

#[test]
fn a_crash_of_a_helper_harms_no_type() {
    let package = PackageKey::shared(APP, "Large");
    let mut node = Node::new("N1", HostingConfig::default());
    node.declare(large());
    node.place(placement("a", &package, "A")).unwrap();
    node.take_events();
    for _ in 0..5 {
        node.exit(&package.process("Agent"), 3).unwrap();
        let restart = node.next_due().unwrap();
        node.advance(restart);
    }
    assert!(
        types(&node, APP)
            .iter()
            .all(|(_, status)| *status == TypeStatus::Registered)
    );
    let words: Vec<String> = outcome(&node.take_events())
        .into_iter()
        .map(|(_, word)| word)
        .collect();
    assert!(
        !words
            .iter()
            .any(|word| word == "scheduled" || word.starts_with("down")),
        "{words:?}"
    );
    assert_eq!(
        words
            .iter()
            .filter(|word| *word == "CodePackageActivation:error")
            .count(),
        1,
        "{words:?}"
    );
}

#[test]
fn exclusive_instances_live_for_themselves() {
    let mut node = Node::new("N1", HostingConfig::default());
    node.declare(PackageDescription::new(APP, "P", "1.0", &["T"]));
    let (first, second) = (
        PackageKey::exclusive(APP, "P", "1"),
        PackageKey::exclusive(APP, "P", "2"),
    );
    node.place(placement("a", &first, "T")).unwrap();
    node.place(placement("b", &second, "T")).unwrap();
    assert_eq!(node.packages(APP).len(), 2);
    let ids: Vec<_> = node
        .code_packages(APP)
        .iter()
        .map(|code| code.main.process_id.unwrap())
        .collect();
    assert_ne!(ids[0], ids[1]);
    node.exit(&first.process("Code"), 1).unwrap();
    let usage: Vec<u32> = node
        .packages(APP)
        .iter()
        .map(|package| package.usage)
        .collect();
    assert_eq!(usage, [0, 1]);
    // One second without a replica is enough for an exclusive package: the back-off of 15 s does not come to
    // its end.
    node.advance(Timestamp::from_secs(1));
    assert_eq!(node.packages(APP).len(), 1);
    assert_eq!(node.applications()[0].usage, 1);
    node.advance(Timestamp::from_secs(15));
    assert_eq!(
        node.packages(APP).len(),
        2,
        "the replica that waits brings it back"
    );
}

#[test]
fn an_application_stays_while_one_of_its_packages_is_used() {
    let mut node = Node::new("N1", HostingConfig::default());
    for (application, manifest) in [(APP, "P"), (APP, "Q"), ("fabric:/Other", "P")] {
        node.declare(PackageDescription::new(
            application,
            manifest,
            "1.0",
            &["T"],
        ));
    }
    let (p, q, other) = (
        PackageKey::shared(APP, "P"),
        PackageKey::shared(APP, "Q"),
        PackageKey::shared("fabric:/Other", "P"),
    );
    node.place(placement("p", &p, "T")).unwrap();
    node.activate(&q).unwrap();
    node.activate(&other).unwrap();
    node.take_events();
    node.advance(Timestamp::from_secs(2000));
    // The unused package of the used application is deactivated alone, the unused application as a whole.
    let gone: Vec<String> = node
        .take_events()
        .iter()
        .filter(|logged| {
            matches!(
                logged.event,
                Event::DeactivationScheduled { .. } | Event::Deactivated { .. }
            )
        })
        .map(ToString::to_string)
        .collect();
    assert_eq!(
        gone,
        [
            "      600s  package fabric:/App/Q will be deactivated at 660s",
            "      600s  application fabric:/Other will be deactivated at 660s",
            "      660s  package fabric:/App/Q deactivated",
            "      660s  package fabric:/Other/P deactivated",
            "      660s  application fabric:/Other deactivated",
        ]
    );
    assert_eq!(node.applications().len(), 1);
    assert_eq!(node.packages(APP).len(), 1);
}

#[test]
fn what_was_said_about_a_package_is_taken_back_with_it() {
    let package = PackageKey::shared(APP, "P");
    let mut node = Node::new("N1", HostingConfig::default());
    node.declare(PackageDescription::new(APP, "P", "1.0", &["T"]));
    node.place(placement("r", &package, "T")).unwrap();
    let said: Vec<String> = node
        .health()
        .iter()
        .map(|report| format!("{} {}", report.entity, report.property))
        .collect();
    assert_eq!(
        said,
        [
            "fabric:/App Activation",
            "fabric:/App/P Activation",
            "fabric:/App/P ServiceTypeRegistration:T",
        ]
    );
    assert!(
        node.health()
            .iter()
            .all(|report| report.state == HealthState::Ok)
    );
    node.close(&replica("r")).unwrap();
    node.advance(Timestamp::from_secs(60));
    let left = node.health();
    assert_eq!(left.len(), 1);
    assert_eq!(
        left[0].entity,
        HealthEntity::DeployedApplication(APP.into())
    );
    node.advance(Timestamp::from_secs(120));
    assert!(node.health().is_empty());
    assert!(node.applications().is_empty());
}

#[test]
fn wrong_instructions_change_nothing() {
    let package = PackageKey::shared(APP, "P");
    let mut node = Node::new("N1", HostingConfig::default());
    let error = node.place(placement("r", &package, "T")).unwrap_err();
    assert_eq!(error.to_string(), "package fabric:/App/P was not declared");
    node.declare(PackageDescription::new(APP, "P", "1.0", &["T"]));
    let error = node.place(placement("r", &package, "U")).unwrap_err();
    assert_eq!(
        error.to_string(),
        "no code package of fabric:/App/P hosts the service type U"
    );
    node.place(placement("r", &package, "T")).unwrap();
    node.take_events();
    let error = node.place(placement("r", &package, "T")).unwrap_err();
    assert_eq!(
        error,
        NodeError::ReplicaExists {
            replica: replica("r")
        }
    );
    assert_eq!(
        node.close(&replica("s")),
        Err(NodeError::UnknownReplica {
            replica: replica("s")
        })
    );
    let unknown = package.process("Nobody");
    assert_eq!(
        node.exit(&unknown, 1),
        Err(NodeError::NotRunning { process: unknown })
    );
    assert!(node.take_events().is_empty());
    node.stop();
    assert!(matches!(
        node.place(placement("s", &package, "T")),
        Err(NodeError::NodeDown { .. })
    ));
    assert!(matches!(
        node.activate(&package),
        Err(NodeError::NodeDown { .. })
    ));
}

#[test]
fn a_stopped_node_is_silent_until_it_starts() {
    let package = PackageKey::shared(APP, "P");
    let mut node = Node::new("N1", HostingConfig::default());
    node.declare(PackageDescription::new(APP, "P", "1.0", &["T"]));
    node.place(placement("volatile", &package, "T")).unwrap();
    node.place(placement("persisted", &package, "T").persisted())
        .unwrap();
    node.advance(Timestamp::from_secs(100));
    node.stop();
    assert_eq!(node.next_due(), None);
    assert!(node.applications().is_empty());
    node.take_events();
    node.advance(Timestamp::from_secs(5000));
    assert!(node.take_events().is_empty());
    node.start();
    let replicas = node.replicas();
    assert_eq!(replicas.len(), 1);
    assert_eq!(replicas[0].status, SlotStatus::Open);
    let opened: Vec<_> = outcome(&node.take_events())
        .into_iter()
        .filter(|(_, word)| word.starts_with("open"))
        .collect();
    assert_eq!(opened, [(moment("5000"), "open:persisted".to_owned())]);
}

#[test]
fn a_forgotten_application_leaves_in_its_time() {
    let package = PackageKey::shared(APP, "P");
    let mut node = Node::new("N1", HostingConfig::default());
    node.declare(PackageDescription::new(APP, "P", "1.0", &["T"]));
    node.script(&package, Behaviour::default());
    node.place(placement("r", &package, "T")).unwrap();
    node.forget(APP);
    assert!(node.replicas().is_empty());
    assert_eq!(node.packages(APP)[0].status, DeploymentStatus::Active);
    assert!(matches!(
        node.activate(&package),
        Err(NodeError::UnknownPackage { .. })
    ));
    node.advance(Timestamp::from_secs(200));
    assert!(node.applications().is_empty());
    assert_eq!(node.next_due(), None);
}

#[test]
fn the_log_is_bounded_and_counts_what_it_lost() {
    let package = PackageKey::shared(APP, "P");
    let mut node = Node::new("N1", HostingConfig::default());
    node.declare(PackageDescription::new(APP, "P", "1.0", &["T"]));
    node.activate(&package).unwrap();
    for _ in 0..20_000 {
        node.place(placement("r", &package, "T")).unwrap();
        node.close(&replica("r")).unwrap();
    }
    assert!(node.lost_events() > 0);
    let kept = node.take_events();
    assert_eq!(kept.len(), 65_536);
    assert!(matches!(
        kept[kept.len() - 1].event,
        Event::DeactivationScheduled { .. }
    ));
    assert_eq!(seconds(kept[0].at), "0");
}
