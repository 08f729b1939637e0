//! Replacement of a running package by another version.

use servicefabric_emulator::hosting::{
    Attempts, Behaviour, DeploymentStatus, HostingConfig, Node, PackageDescription, PackageKey,
    Placement, ReplicaKind, SlotStatus, Span, Timestamp, TypeStatus,
};

use crate::hosting::scenario::{moment, outcome, replica, seconds};

const APP: &str = "fabric:/App";
const WORDS: [&str; 15] = [
    "download",
    "activation",
    "active",
    "start",
    "exit",
    "unregistered",
    "registered",
    "down:r",
    "open:r",
    "give-up",
    "scheduled",
    "package-scheduled",
    "package-gone",
    "Download:error",
    "Download:removed",
];

fn package() -> PackageKey {
    PackageKey::shared(APP, "P")
}

/// Returns a node at 100 s on which version 1 runs since 0 with an open replica, and version 2 has been
/// declared.
fn running(behaviour: Behaviour) -> Node {
    let mut node = Node::new("N1", HostingConfig::default());
    node.declare(PackageDescription::new(APP, "P", "1.0", &["T"]));
    node.place(Placement::new(replica("r"), package(), "T"))
        .unwrap();
    node.advance(Timestamp::from_secs(100));
    node.take_events();
    node.script(&package(), behaviour);
    node.declare(PackageDescription::new(APP, "P", "2.0", &["T"]));
    node
}

fn happened(node: &mut Node) -> Vec<String> {
    let events = node.take_events();
    let watched = outcome(&events)
        .into_iter()
        .filter(|(_, word)| WORDS.contains(&word.as_str()));
    watched
        .map(|(at, word)| format!("{} {word}", seconds(at)))
        .collect()
}

#[test]
fn the_old_version_serves_while_the_new_one_is_downloaded() {
    let behaviour = Behaviour::default()
        .with_download(Attempts::taking(Span::from_secs(30)))
        .with_deactivation(Attempts::taking(Span::from_secs(5)));
    let mut node = running(behaviour);
    node.upgrade(&package()).unwrap();
    node.advance(Timestamp::from_secs(129));
    let before = &node.packages(APP)[0];
    assert_eq!(
        (before.status, &*before.version, before.usage),
        (DeploymentStatus::Upgrading, "1.0", 1)
    );
    assert_eq!(node.applications()[0].status, DeploymentStatus::Upgrading);
    node.advance(Timestamp::from_secs(1000));
    let expected = [
        "100 download",
        "130 unregistered",
        "130 down:r",
        "135 exit",
        "135 activation",
        "135 active",
        "135 start",
        "135 registered",
        "135 open:r",
    ];
    assert_eq!(happened(&mut node), expected);
    let after = &node.packages(APP)[0];
    assert_eq!(
        (after.status, &*after.version, after.usage),
        (DeploymentStatus::Active, "2.0", 1)
    );
    assert_eq!(&*node.code_packages(APP)[0].version, "2.0");
    assert!(
        node.health()
            .iter()
            .all(|report| !report.property.contains("2.0"))
    );
}

#[test]
fn a_version_that_cannot_be_downloaded_leaves_the_old_one_running() {
    let mut node = running(Behaviour::default().with_download(Attempts::always_failing()));
    node.upgrade(&package()).unwrap();
    node.advance(Timestamp::from_secs(100));
    assert!(
        node.health()
            .iter()
            .any(|report| &*report.property == "Download:2.0")
    );
    node.advance(Timestamp::from_secs(5000));
    let happened = happened(&mut node);
    assert_eq!(
        happened.last().map(String::as_str),
        Some("2000 Download:removed")
    );
    assert!(
        !happened
            .iter()
            .any(|line| line.ends_with("scheduled") || line.ends_with("down:r")),
        "{happened:?}"
    );
    let package = &node.packages(APP)[0];
    assert_eq!(
        (package.status, &*package.version, package.usage),
        (DeploymentStatus::Active, "1.0", 1)
    );
}

#[test]
fn a_version_that_cannot_be_activated_disables_its_types() {
    let mut node = running(Behaviour::default().with_activation(Attempts::always_failing()));
    node.upgrade(&package()).unwrap();
    node.advance(Timestamp::from_secs(131));
    assert_eq!(node.service_types(APP)[0].status, TypeStatus::Disabled);
    assert_eq!(node.packages(APP)[0].status, DeploymentStatus::Upgrading);
    // Back to the version that worked.
    node.script(&package(), Behaviour::default());
    node.declare(PackageDescription::new(APP, "P", "1.0", &["T"]));
    node.upgrade(&package()).unwrap();
    assert_eq!(node.service_types(APP)[0].status, TypeStatus::Registered);
    assert_eq!(&*node.packages(APP)[0].version, "1.0");
}

#[test]
fn the_grace_of_an_exclusive_package_does_not_end_its_upgrade() {
    let package = PackageKey::exclusive(APP, "P", "a1");
    let mut node = Node::new("N1", HostingConfig::default());
    node.declare(PackageDescription::new(APP, "P", "1.0", &["T"]));
    node.script(
        &package,
        Behaviour::default().with_deactivation(Attempts::taking(Span::from_secs(20))),
    );
    node.place(Placement::new(replica("r"), package.clone(), "T"))
        .unwrap();
    node.declare(PackageDescription::new(APP, "P", "2.0", &["T"]));
    node.upgrade(&package).unwrap();
    node.take_events();
    node.advance(Timestamp::from_secs(100));
    assert_eq!(
        happened(&mut node),
        [
            "20 exit",
            "20 activation",
            "20 active",
            "20 start",
            "20 registered",
            "20 open:r"
        ]
    );
}

#[test]
fn upgrades_that_have_nothing_to_do() {
    let mut node = running(Behaviour::default());
    node.declare(PackageDescription::new(APP, "P", "1.0", &["T"]));
    node.upgrade(&package()).unwrap();
    node.upgrade(&PackageKey::exclusive(APP, "P", "elsewhere"))
        .unwrap();
    assert!(node.take_events().is_empty());
    assert!(node.upgrade(&PackageKey::shared(APP, "Q")).is_err());
}

#[test]
fn a_newer_version_overtakes_one_that_is_on_its_way() {
    let slow = Attempts::taking(Span::from_secs(30));
    let mut node = running(
        Behaviour::default()
            .with_download(slow.clone())
            .with_deactivation(slow),
    );
    node.upgrade(&package()).unwrap();
    node.advance(Timestamp::from_secs(110));
    node.declare(PackageDescription::new(APP, "P", "3.0", &["T"]));
    node.upgrade(&package()).unwrap();
    // Version 3 is on the node at 140, and the processes of version 1 are being stopped.
    node.advance(Timestamp::from_secs(150));
    node.declare(PackageDescription::new(APP, "P", "4.0", &["T"]));
    node.upgrade(&package()).unwrap();
    node.advance(Timestamp::from_secs(500));
    let expected = [
        "100 download",
        "110 download",
        "140 unregistered",
        "140 down:r",
        "170 exit",
        "170 download",
        "200 activation",
        "200 active",
        "200 start",
        "200 registered",
        "200 open:r",
    ];
    assert_eq!(happened(&mut node), expected);
    assert_eq!(&*node.packages(APP)[0].version, "4.0");
}

#[test]
fn a_service_type_that_the_new_version_does_not_have_waits() {
    let mut node = running(Behaviour::default());
    node.declare(PackageDescription::new(APP, "P", "2.0", &["Renamed"]));
    node.upgrade(&package()).unwrap();
    node.advance(Timestamp::from_secs(120));
    let replicas = node.replicas();
    assert_eq!(replicas[0].status, SlotStatus::Waiting);
    assert_eq!(replicas[0].next_poll, Some(moment("130")));
}

/// An application is not deactivated while the new version fails, and the upgrade reaches its own end.
#[test]
fn the_scan_does_not_end_an_upgrade() {
    let mut node = Node::new("N1", HostingConfig::default());
    node.declare(PackageDescription::new(APP, "P", "1.0", &["T"]));
    let placement = Placement::new(replica("r"), package(), "T");
    node.place(placement.with_kind(ReplicaKind::Existing))
        .unwrap();
    node.advance(Timestamp::from_secs(100));
    node.script(
        &package(),
        Behaviour::default().with_activation(Attempts::always_failing()),
    );
    node.declare(PackageDescription::new(APP, "P", "2.0", &["T"]));
    node.take_events();
    node.upgrade(&package()).unwrap();
    node.advance(Timestamp::from_secs(2000));
    let events = outcome(&node.take_events());
    let attempts = events.iter().filter(|(_, word)| word == "activation");
    assert_eq!(attempts.count(), 20);
    let ended = events.iter().find(|(_, word)| {
        matches!(
            word.as_str(),
            "give-up" | "application-scheduled" | "package-gone"
        )
    });
    assert_eq!(
        ended,
        Some(&(Timestamp::from_secs(2000), "give-up".to_owned()))
    );
}

/// A deactivation that an upgrade puts off happens when the upgrade is over.
#[test]
fn a_package_that_is_unused_after_its_upgrade_goes() {
    let words = |node: &mut Node| -> Vec<String> {
        let events = outcome(&node.take_events());
        let about = |word: &str| word.starts_with("package-") || word.starts_with("application-");
        let events = events.into_iter().filter(|(_, word)| about(word));
        events
            .map(|(at, word)| format!("{} {word}", seconds(at)))
            .collect()
    };

    // The deactivation was scheduled before.
    let mut node =
        running(Behaviour::default().with_download(Attempts::taking(Span::from_secs(5))));
    node.close(&replica("r")).unwrap();
    node.advance(Timestamp::from_secs(150));
    node.upgrade(&package()).unwrap();
    node.advance(Timestamp::from_secs(1000));
    let expected = [
        "100 package-scheduled",
        "150 package-kept",
        "155 package-scheduled",
        "215 package-closing",
        "215 package-gone",
        "215 application-scheduled",
        "275 application-closing",
        "275 application-gone",
    ];
    assert_eq!(words(&mut node), expected);

    // The same, but the download is abandoned.
    let mut node = running(Behaviour::default().with_download(Attempts::always_failing()));
    node.close(&replica("r")).unwrap();
    node.upgrade(&package()).unwrap();
    node.advance(Timestamp::from_secs(5000));
    assert_eq!(words(&mut node)[2], "2000 package-scheduled");

    // Its replica, which the upgrade took down, is closed meanwhile.
    let mut node =
        running(Behaviour::default().with_activation(Attempts::taking(Span::from_secs(20))));
    node.upgrade(&package()).unwrap();
    node.advance(Timestamp::from_secs(105));
    node.close(&replica("r")).unwrap();
    node.advance(Timestamp::from_secs(190));
    assert_eq!(
        words(&mut node),
        [
            "120 package-scheduled",
            "180 package-closing",
            "180 package-gone",
            "180 application-scheduled"
        ]
    );
}

/// A scheduled deactivation of an application waits for the upgrade of its package, too.
#[test]
fn an_upgrade_puts_off_the_end_of_its_application() {
    let mut node = Node::new("N1", HostingConfig::default());
    node.declare(PackageDescription::new(APP, "P", "1.0", &["T"]));
    node.activate(&package()).unwrap();
    node.advance(Timestamp::from_secs(650));
    assert!(node.applications()[0].deactivation.is_some());
    node.script(
        &package(),
        Behaviour::default().with_download(Attempts::taking(Span::from_secs(30))),
    );
    node.declare(PackageDescription::new(APP, "P", "2.0", &["T"]));
    node.upgrade(&package()).unwrap();
    node.advance(Timestamp::from_secs(681));
    let packages = node.packages(APP);
    assert_eq!(&*packages[0].version, "2.0");
    assert_eq!(packages[0].deactivation, Some(moment("740")));
}
