//! Tests of the number of calls in a cycle, and of the detection of changes.
//!
//! With `T` type versions, `A` applications of types with labels, `S` services with `P` partitions that ask
//! to be served:
//!
//! | cycle | calls |
//! |---|---|
//! | the first | `2 + T + A + 1 + S + P` |
//! | nothing changed, all stateless | `2 + A + 1` |
//! | the same, for each stateful service | `+ 1 + its partitions` |
//! | for each stateless service with another instance | `+ 1 + its partitions` |
//! | for each service with dynamic overrides | `+ 1` |
//! | in a hurry, for each service that is likely to change | `1` for its application `+ 1 + its partitions` |

use std::time::Duration;

use super::*;
use crate::calls::CallErrorKind;
use crate::model::{PartitionStatus, ReplicaStatus, ServiceStatus};
use crate::options::EndpointSource;

/// The calls that were made since the last look, in the order of their names.
fn calls(cluster: &FakeCluster) -> Vec<String> {
    let mut calls = cluster.all_calls();
    cluster.forget_calls();
    calls.sort();
    calls
}

const QUIET: [&str; 5] = [
    "application_types",
    "applications",
    "replica_ids",
    "services A",
    "services B",
];

const FIRST: [&str; 14] = [
    "application_types",
    "applications",
    "partitions A~S1",
    "partitions A~S2",
    "partitions B~S1",
    "partitions B~S2",
    "replica_ids",
    "replicas a1",
    "replicas a2",
    "replicas b1",
    "replicas b2",
    "service_types T 1",
    "services A",
    "services B",
];

#[tokio::test(start_paused = true)]
async fn the_first_cycle_reads_everything_and_a_quiet_one_only_the_lists() {
    let cluster = cluster();
    let discoverer = discoverer(&cluster);
    let first = cycle(&discoverer).await;
    assert_eq!(calls(&cluster), FIRST);
    assert_eq!(first.services.len(), 4);
    for _ in 0..3 {
        assert_eq!(next(&discoverer).await, first);
        assert_eq!(calls(&cluster), QUIET);
    }
}

#[tokio::test(start_paused = true)]
async fn another_instance_is_noticed_and_read_for_its_service_alone() {
    let cluster = cluster();
    let discoverer = discoverer(&cluster);
    cycle(&discoverer).await;
    calls(&cluster);
    cluster.edit(|contents| {
        contents.instances("a1", &[(77, "https://moved:443")]);
    });
    let after = next(&discoverer).await;
    let mut expected = QUIET.to_vec();
    expected.extend(["partitions A~S1", "replicas a1"]);
    expected.sort_unstable();
    assert_eq!(calls(&cluster), expected);
    assert_eq!(
        addresses(&after)["fabric:/A/S1"],
        Some(vec!["https://moved/".to_owned()])
    );

    // What has just changed is read again after a moment, and then no more.
    tokio::time::advance(Duration::from_secs(5)).await;
    assert_eq!(cycle(&discoverer).await, after);
    assert_eq!(
        calls(&cluster),
        ["partitions A~S1", "replicas a1", "services A"]
    );
    tokio::time::advance(Duration::from_secs(5)).await;
    assert_eq!(cycle(&discoverer).await, after);
    assert_eq!(calls(&cluster), [""; 0]);
}

#[tokio::test(start_paused = true)]
async fn stateful_services_are_read_in_every_cycle() {
    let cluster = cluster();
    cluster.edit(|contents| {
        contents.stateful(
            "fabric:/B/Db",
            "S",
            [
                ("d1", vec![(1, "https://d:1")]),
                ("d2", vec![(1, "https://d:2")]),
            ],
        );
    });
    let discoverer = discoverer(&cluster);
    cycle(&discoverer).await;
    calls(&cluster);
    for _ in 0..2 {
        next(&discoverer).await;
        let mut expected = QUIET.to_vec();
        expected.extend(["partitions B~Db", "replicas d1", "replicas d2"]);
        expected.sort_unstable();
        assert_eq!(calls(&cluster), expected);
    }
    // A replica that comes back with its id in another role or place is seen.
    cluster.edit(|contents| {
        contents.replicas.get_mut("d1").unwrap()[0].address =
            crate::testing::listener("web", "https://other:1");
    });
    let after = next(&discoverer).await;
    let found = addresses(&after)["fabric:/B/Db"].clone().unwrap();
    assert!(found.contains(&"https://other:1/".to_owned()), "{found:?}");
}

#[tokio::test(start_paused = true)]
async fn without_the_probe_every_service_is_read() {
    for (off, kind) in [
        (true, None),
        (false, Some(CallErrorKind::Denied)),
        (false, Some(CallErrorKind::Gone)),
        (false, Some(CallErrorKind::Malformed)),
        (false, Some(CallErrorKind::TimedOut)),
    ] {
        let cluster = cluster();
        let discoverer = with_options(
            &cluster,
            ServiceFabricOptions::default().with_change_probe(!off),
        );
        if let Some(kind) = kind {
            cluster.fail("replica_ids", kind);
        }
        let first = cycle(&discoverer).await;
        calls(&cluster);
        assert_eq!(next(&discoverer).await, first);
        // A rejection is remembered, so that not every cycle makes a useless call.
        let expected: Vec<_> = FIRST
            .into_iter()
            .filter(|call| !["replica_ids", "service_types T 1"].contains(call))
            .collect();
        assert_eq!(calls(&cluster), expected, "{kind:?}");
        if kind.is_some() {
            cluster.heal();
            for _ in 0..20 {
                next(&discoverer).await;
            }
            calls(&cluster);
            next(&discoverer).await;
            assert!(calls(&cluster).len() < expected.len(), "it is asked again");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_probe_that_fails_for_a_moment_is_asked_again_in_the_next_cycle() {
    let cluster = cluster();
    let discoverer = discoverer(&cluster);
    cycle(&discoverer).await;
    cluster.fail_times("replica_ids", CallErrorKind::Busy, 1);
    next(&discoverer).await;
    assert_eq!(cluster.calls("replicas"), 8);
    // It was read without a baseline, so it is read once more.
    next(&discoverer).await;
    assert_eq!(cluster.calls("replicas"), 12);
    next(&discoverer).await;
    assert_eq!(cluster.calls("replicas"), 12);
    assert_eq!(cluster.calls("replica_ids"), 4);
}

#[tokio::test(start_paused = true)]
async fn a_probe_that_sees_nothing_is_not_believed() {
    let cluster = cluster();
    let discoverer = discoverer(&cluster);
    cluster.blind();
    cycle(&discoverer).await;
    calls(&cluster);
    next(&discoverer).await;
    assert_eq!(cluster.calls("replicas"), 4);
}

#[tokio::test(start_paused = true)]
async fn everything_is_read_again_within_the_full_refresh_period_and_not_all_at_once() {
    let cluster = FakeCluster::new();
    cluster.edit(|contents| {
        contents
            .application_type("T", "1", [])
            .service_type("T", "1", "S", LABELS)
            .application("fabric:/A", "T", "1", []);
        for i in 0..100 {
            let (name, id) = (format!("fabric:/A/S{i}"), format!("p{i}"));
            contents.stateless(&name, "S", [(id.as_str(), vec![(i, "https://a:1")])]);
        }
    });
    let discoverer = discoverer(&cluster);
    cycle(&discoverer).await;
    calls(&cluster);
    let mut read = std::collections::BTreeSet::new();
    let mut most = 0;
    for _ in 0..10 {
        next(&discoverer).await;
        let replicas: Vec<_> = calls(&cluster)
            .into_iter()
            .filter(|call| call.starts_with("replicas "))
            .collect();
        most = most.max(replicas.len());
        read.extend(replicas);
    }
    assert_eq!(read.len(), 100, "300 s have passed");
    assert!(most < 50, "{most} in one cycle");
}

#[tokio::test(start_paused = true)]
async fn types_are_read_again_within_the_full_refresh_period() {
    let cluster = cluster();
    let discoverer = discoverer(&cluster);
    let first = cycle(&discoverer).await;
    for _ in 0..10 {
        assert_eq!(next(&discoverer).await, first);
    }
    let calls = cluster.calls("service_types");
    assert!((2..=3).contains(&calls), "{calls}");
    cluster.edit(|contents| {
        contents.service_types.clear();
        contents.service_type("T", "1", "S", [("YARP.Enable", "false")]);
    });
    for _ in 0..10 {
        next(&discoverer).await;
    }
    let after = next(&discoverer).await;
    assert_eq!(after.services.len(), 4);
    assert!(
        after
            .services
            .iter()
            .all(|of| of.content == ServiceContent::NotEnabled)
    );
}

#[tokio::test(start_paused = true)]
async fn services_that_are_likely_to_change_are_read_in_a_hurry() {
    type Edit = fn(&mut crate::testing::Contents);
    let edits: [(&str, Edit); 4] = [
        ("a replica is not ready", |contents| {
            let replica = &mut contents.replicas.get_mut("a1").unwrap()[0];
            replica.replica_status = ReplicaStatus::InBuild;
        }),
        ("a partition is not ready", |contents| {
            let partition = &mut contents.partitions.get_mut("A~S1").unwrap()[0];
            partition.partition_status = PartitionStatus::NotReady;
        }),
        ("the service is not active", |contents| {
            let service = &mut contents.services.get_mut("A").unwrap()[0];
            service.service_status = ServiceStatus::Upgrading;
        }),
        ("it is new", |contents| {
            contents.remove_service("fabric:/A/S1");
            contents.stateless("fabric:/A/S1", "S", [("a1", vec![(7, "https://x:1")])]);
        }),
    ];
    for (why, edit) in edits {
        let cluster = cluster();
        let discoverer = discoverer(&cluster);
        if why == "it is new" {
            cluster.edit(|contents| {
                contents.remove_service("fabric:/A/S1");
            });
            cycle(&discoverer).await;
            cluster.edit(edit);
            next(&discoverer).await;
        } else {
            cluster.edit(edit);
            cycle(&discoverer).await;
        }
        calls(&cluster);
        tokio::time::advance(Duration::from_secs(5)).await;
        cycle(&discoverer).await;
        assert_eq!(
            calls(&cluster),
            ["partitions A~S1", "replicas a1", "services A"],
            "{why}"
        );
    }
}

#[tokio::test(start_paused = true)]
async fn properties_are_read_in_every_cycle_and_not_in_a_hurry() {
    let cluster = cluster();
    cluster.edit(|contents| {
        contents
            .service_type(
                "T",
                "1",
                "D",
                [
                    ("YARP.EnableDynamicOverrides", "true"),
                    ("YARP.Enable", "true"),
                ],
            )
            .stateless("fabric:/A/D", "D", [("d", vec![(1, "https://d:1")])])
            .property("fabric:/A/D", "YARP.Routes.x.Path", "/one");
    });
    let discoverer = discoverer(&cluster);
    cycle(&discoverer).await;
    cluster.edit(|contents| {
        contents.property("fabric:/A/D", "YARP.Routes.x.Path", "/two");
        contents.instances("a1", &[(9, "https://y:1")]);
    });
    calls(&cluster);
    let after = next(&discoverer).await;
    let service = after
        .services
        .iter()
        .find(|service| &*service.name == "fabric:/A/D")
        .unwrap();
    let ServiceContent::Config(config) = &service.content else {
        panic!("it is served: {service:?}");
    };
    assert_eq!(config.routes[0].r#match.path.as_deref(), Some("/two"));
    assert_eq!(cluster.calls("properties"), 1);
    assert_eq!(cluster.calls("replicas d"), 0);
    tokio::time::advance(Duration::from_secs(5)).await;
    assert_eq!(cycle(&discoverer).await, after);
    assert_eq!(cluster.calls("properties"), 1);
}

/// 65
#[tokio::test(start_paused = true)]
async fn an_instance_that_is_about_to_close_is_left_out_on_request() {
    for (source, expected) in [
        (EndpointSource::Replicas, vec!["https://x/", "https://y/"]),
        (EndpointSource::ReplicasAndResolve, vec!["https://y/"]),
    ] {
        let cluster = cluster();
        cluster.edit(|contents| {
            contents.instances("a1", &[(11, "https://x:443"), (12, "https://y:443")]);
        });
        let options = ServiceFabricOptions::default().with_endpoint_source(source);
        let discoverer = with_options(&cluster, options);
        let both = Some(vec!["https://x/".to_owned(), "https://y/".to_owned()]);
        let before = cycle(&discoverer).await;
        assert_eq!(addresses(&before)["fabric:/A/S1"], both);
        cluster.edit(|contents| contents.draining.push(11));
        cluster.forget_calls();
        let found = addresses(&next(&discoverer).await)["fabric:/A/S1"].clone();
        assert_eq!(found.unwrap(), expected, "{source:?}");
        let resolved = cluster.calls("resolve");
        if source == EndpointSource::Replicas {
            assert_eq!(resolved, 0);
            continue;
        }
        // Each partition with its last known version, once more for the one that is read again, and once
        // more to be sure that the instance is not listed.
        assert_eq!(resolved, 6);
        assert_eq!(cluster.calls("resolve a1 v2"), 2);
        assert_eq!(cluster.calls("replicas"), 1);

        // While the naming service does not respond, instances that were about to close still are.
        cluster.fail("resolve", CallErrorKind::Busy);
        let blind = next(&discoverer).await;
        assert_eq!(addresses(&blind)["fabric:/A/S1"].clone().unwrap(), expected);
        assert_eq!(blind.problems.iter().next().unwrap().code, "stale_answer");
        cluster.heal();
        cluster.edit(|contents| {
            contents.draining.clear();
            contents.instances("a1", &[(12, "https://y:443"), (13, "https://z:443")]);
        });
        let found = addresses(&next(&discoverer).await)["fabric:/A/S1"].clone();
        assert_eq!(found.unwrap(), ["https://y/", "https://z/"]);
        for _ in 0..2 {
            next(&discoverer).await;
        }
        cluster.forget_calls();
        next(&discoverer).await;
        assert_eq!(
            (cluster.calls("resolve"), cluster.calls("replicas")),
            (4, 0)
        );
    }
}

#[tokio::test(start_paused = true)]
async fn no_more_calls_are_under_way_than_may_be() {
    for most in [1, 3] {
        let cluster = cluster();
        cluster.delay(Duration::from_secs(1));
        let options = ServiceFabricOptions::default().with_max_concurrent_calls(most);
        let discoverer = with_options(&cluster, options);
        let start = tokio::time::Instant::now();
        cycle(&discoverer).await;
        let took = start.elapsed().as_secs();
        match most {
            1 => assert_eq!(took, 14),
            // One after the other: applications, types, service types, services, probe; then eight calls,
            // three at a time.
            _ => assert!((8..=9).contains(&took), "{took}"),
        }
    }
}
