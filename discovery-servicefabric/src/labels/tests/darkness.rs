//! Clusters without a destination, and replicas that are left out of some, in every division of a service.

use super::*;

const BY_METHOD: (&str, &str) = ("YARP.Backend.ServiceFabric.RoleRouting", "Methods");
const PER_PARTITION: (&str, &str) = ("YARP.Backend.ServiceFabric.PartitionMode", "PerPartition");
const DEFAULT: (&str, &str) = ("YARP.Backend.ServiceFabric.ListenerName", "web");
const ADMIN: (&str, &str) = ("YARP.Routes.a.ServiceFabric.ListenerName", "admin");
const ROUTES: [(&str, &str); 2] = [
    ("YARP.Routes.r.Path", "/"),
    ("YARP.Routes.a.Path", "/admin"),
];
const BAD: &str = "https://+:1";

fn at(id: i64, role: ReplicaRole, address: &str) -> Replica {
    Replica {
        replica_role: role,
        ..replica(id, address)
    }
}

/// A primary and a secondary with these addresses.
fn two(primary: &str, secondary: &str) -> Vec<Replica> {
    vec![
        at(1, ReplicaRole::Primary, primary),
        at(2, ReplicaRole::ActiveSecondary, secondary),
    ]
}

fn listening(web: &str, admin: &str) -> String {
    format!(r#"{{"Endpoints":{{"web":"{web}","admin":"{admin}"}}}}"#)
}

fn told(parsed: &ParsedService) -> Vec<(&str, &str)> {
    let problems = parsed.problems.iter();
    problems.map(|p| (&*p.code, &*p.message)).collect()
}

/// Destinations of each cluster.
fn sizes(parsed: &ParsedService) -> Vec<usize> {
    let clusters = parsed.config.as_ref().unwrap().clusters.values();
    clusters.map(|cluster| cluster.destinations.len()).collect()
}

#[test]
fn writes_without_a_destination_are_told_although_reads_have_one() {
    let pairs = [BY_METHOD, ROUTES[0]];
    let of = |replicas| {
        parse(&service(
            ServiceKind::Stateful,
            &pairs,
            vec![singleton(replicas)],
        ))
    };
    let parsed = of(two(BAD, "https://h2"));
    assert_eq!(sizes(&parsed), [0, 1]);
    let [("no_usable_endpoint", message)] = told(&parsed)[..] else {
        panic!("{:?}", told(&parsed));
    };
    assert!(
        message.starts_with(
            "writes have no destination, since the primary has not a usable endpoint: "
        ),
        "{message}"
    );
    // Reads go to the primary: one replica is left out, and no cluster is empty.
    let parsed = of(two("https://h1", BAD));
    assert_eq!(sizes(&parsed), [1, 1]);
    assert_eq!(told(&parsed)[0].0, "replica_not_usable");
    assert_eq!(parsed.problems.len(), 1);
    let parsed = of(two(BAD, BAD));
    assert_eq!(sizes(&parsed), [0, 0]);
    assert!(
        told(&parsed)[0]
            .1
            .starts_with("no replica has a usable endpoint")
    );
    assert_eq!(parsed.problems.len(), 1);
    // The primary is moving: that is no mistake of an address.
    let parsed = of(vec![at(2, ReplicaRole::ActiveSecondary, "https://h2")]);
    assert_eq!(told(&parsed), []);
}

#[test]
fn writes_without_a_destination_are_told_for_each_partition_and_listener() {
    let ok = listening("https://h", "https://h:2");
    let no_web = listening(BAD, "https://h:2");
    let pairs = [
        BY_METHOD,
        PER_PARTITION,
        DEFAULT,
        ADMIN,
        ROUTES[0],
        ROUTES[1],
    ];
    let partitions = vec![
        range("P1", 0, 9, two(&no_web, &ok)),
        range("P2", 10, 19, two(&ok, &ok)),
    ];
    let parsed = parse(&service(ServiceKind::Stateful, &pairs, partitions));
    let problems = problems(&parsed);
    assert_eq!(problems.len(), 1, "{problems:?}");
    assert!(
        problems[0].starts_with(
            "warning at /YARP.Backend.ServiceFabric.ListenerName: in 1 of 2 partitions writes have no destination, \
             since the primary has not a usable endpoint called `web`; in P1, its listener `web`"
        ),
        "{problems:?}"
    );
}

#[test]
fn a_replica_that_is_left_out_of_the_cluster_of_one_listener_is_named() {
    let ok = listening("https://h", "https://h:2");
    let pairs = [DEFAULT, ADMIN, ROUTES[0], ROUTES[1]];
    let of = |second: &str| {
        let replicas = vec![replica(1, &ok), replica(2, second)];
        parse(&service(
            ServiceKind::Stateless,
            &pairs,
            vec![singleton(replicas)],
        ))
    };
    let parsed = of(&listening(BAD, "https://h:2"));
    assert_eq!(sizes(&parsed), [1, 2]);
    let [("replica_not_usable", message)] = told(&parsed)[..] else {
        panic!("{:?}", told(&parsed));
    };
    assert!(
        message.starts_with("1 of 2 replicas cannot be used at every listener: P1/2: its listener `web` is a URL of all"),
        "{message}"
    );
    assert!(message.ends_with("; it is used at `admin`"), "{message}");
    // An asked listener that an instance lacks.
    let parsed = of(r#"{"Endpoints":{"web":"https://h"}}"#);
    assert_eq!(sizes(&parsed), [2, 1]);
    let message = told(&parsed)[0].1;
    assert!(message.contains("it has no listener `admin`"), "{message}");
    // One warning is enough if no replica has it.
    let replicas = vec![replica(1, r#"{"Endpoints":{"web":"https://h"}}"#)];
    let parsed = parse(&service(
        ServiceKind::Stateless,
        &pairs,
        vec![singleton(replicas)],
    ));
    assert_eq!(told(&parsed).len(), 1);
    assert_eq!(told(&parsed)[0].0, "no_usable_endpoint");
}

/// A replica may lack a listener that others have, but each that it has is used or named.
#[test]
fn a_replica_may_lack_a_listener_that_no_label_names() {
    let each = ("YARP.Backend.ServiceFabric.ListenerMode", "PerListener");
    let of = |second: &str| {
        let ok = listening("https://h", "https://h:2");
        let replicas = vec![replica(1, &ok), replica(2, second)];
        parse(&service(
            ServiceKind::Stateless,
            &[each, ROUTES[0]],
            vec![singleton(replicas)],
        ))
    };
    assert_eq!(told(&of(r#"{"Endpoints":{"web":"https://h"}}"#)), []);
    let parsed = of(&listening("https://h", BAD));
    assert_eq!(told(&parsed)[0].0, "replica_not_usable");
    assert!(
        told(&parsed)[0].1.ends_with("; it is used at `web`"),
        "{:?}",
        told(&parsed)
    );
}

/// A listener that no label names has clusters, too, which are empty for writes or in one partition.
#[test]
fn a_cluster_without_a_destination_is_named_also_at_a_listener_that_no_label_names() {
    let each = ("YARP.Backend.ServiceFabric.ListenerMode", "PerListener");
    let ok = listening("https://h", "https://h:2");
    let no_admin = listening("https://h", BAD);
    let writes = parse(&service(
        ServiceKind::Stateful,
        &[each, BY_METHOD, DEFAULT, ROUTES[0]],
        vec![singleton(two(&no_admin, &ok))],
    ));
    assert_eq!(sizes(&writes).iter().filter(|size| **size == 0).count(), 1);
    let [("no_usable_endpoint", message)] = told(&writes)[..] else {
        panic!("{:?}", told(&writes));
    };
    assert!(
        message.starts_with(
            "writes have no destination, since the primary has not a usable endpoint called `admin`: of the first one, \
             its listener `admin` is a URL of all"
        ),
        "{message}"
    );
    let part = parse(&service(
        ServiceKind::Stateless,
        &[each, PER_PARTITION, DEFAULT, ROUTES[0]],
        vec![
            range("P1", 0, 9, vec![replica(1, &ok)]),
            range("P2", 10, 19, vec![replica(2, &no_admin)]),
        ],
    ));
    assert_eq!(sizes(&part).iter().filter(|size| **size == 0).count(), 1);
    let [("no_usable_endpoint", message)] = told(&part)[..] else {
        panic!("{:?}", told(&part));
    };
    assert!(
        message.starts_with(
            "in 1 of 2 partitions no replica has a usable endpoint called `admin`; in P2, its listener `admin`"
        ),
        "{message}"
    );
    // It is normal that a primary or a partition has no listener that no label names.
    let web = r#"{"Endpoints":{"web":"https://h"}}"#;
    let writes = parse(&service(
        ServiceKind::Stateful,
        &[each, BY_METHOD, DEFAULT, ROUTES[0]],
        vec![singleton(two(web, &ok))],
    ));
    assert_eq!(told(&writes), []);
    let part = parse(&service(
        ServiceKind::Stateless,
        &[each, PER_PARTITION, DEFAULT, ROUTES[0]],
        vec![
            range("P1", 0, 9, vec![replica(1, &ok)]),
            range("P2", 10, 19, vec![replica(2, web)]),
        ],
    ));
    assert_eq!(told(&part), []);
}

/// Reliable services listen on the primary alone unless they say otherwise.
#[test]
fn a_secondary_that_does_not_listen_is_normal_unless_labels_ask_for_it() {
    let only = |role| {
        (
            "YARP.Backend.ServiceFabric.StatefulReplicaSelectionMode",
            role,
        )
    };
    for silent in ["", r#"{"Endpoints":{}}"#] {
        let of = |pair: Option<(&str, &str)>, kind: ServiceKind, replicas| {
            let pairs: Vec<_> = pair.into_iter().chain([ROUTES[0]]).collect();
            parse(&service(kind, &pairs, vec![singleton(replicas)]))
        };
        let stateful = ServiceKind::Stateful;
        let mut healthy = two("https://h1", silent);
        healthy.push(at(3, ReplicaRole::IdleSecondary, silent));
        for pair in [None, Some(only("All")), Some(only("PrimaryOnly"))] {
            let parsed = of(pair, stateful.clone(), healthy.clone());
            assert_eq!(told(&parsed), [], "{pair:?}");
            assert_eq!(sizes(&parsed), [1]);
            // No health report warns of them.
            assert_eq!(parsed.replicas.len(), 1);
        }
        let codes = |parsed: ParsedService| -> Vec<String> {
            parsed.problems.iter().map(|p| p.code.to_string()).collect()
        };
        let asked = of(
            Some(only("SecondaryOnly")),
            stateful.clone(),
            healthy.clone(),
        );
        assert_eq!(codes(asked), ["no_usable_endpoint"]);
        let asked = of(Some(BY_METHOD), stateful.clone(), healthy);
        assert_eq!(codes(asked), ["replica_not_usable"]);
        // A primary and an instance have to listen.
        let primary = of(None, stateful.clone(), two(silent, silent));
        assert_eq!(codes(primary), ["no_usable_endpoint"]);
        let primary = of(None, stateful, two(silent, "https://h2"));
        assert_eq!(codes(primary), ["replica_not_usable"]);
        let instances = vec![replica(1, "https://h1"), replica(2, silent)];
        let instance = of(None, ServiceKind::Stateless, instances);
        assert_eq!(codes(instance), ["replica_not_usable"]);
    }
}

/// A listener of the primary alone is as normal.
#[test]
fn a_secondary_may_lack_a_listener_that_the_primary_has() {
    let primary = listening("https://h1", "https://h1:2");
    let pairs = [DEFAULT, ADMIN, ROUTES[0], ROUTES[1]];
    let replicas = two(&primary, r#"{"Endpoints":{"admin":"https://h2:2"}}"#);
    let parsed = parse(&service(
        ServiceKind::Stateful,
        &pairs,
        vec![singleton(replicas)],
    ));
    assert_eq!(told(&parsed), []);
    assert_eq!(sizes(&parsed), [1, 2]);
    let replicas = two(&primary, &listening(BAD, "https://h2:2"));
    let parsed = parse(&service(
        ServiceKind::Stateful,
        &pairs,
        vec![singleton(replicas)],
    ));
    assert_eq!(told(&parsed)[0].0, "replica_not_usable");
}
