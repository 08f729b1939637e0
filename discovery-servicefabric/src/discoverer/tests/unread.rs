//! Partitions that cannot be read while others of their service can.

use std::time::Duration;

use discovery_core::{ServiceOutcome, SourceState};

use super::*;
use crate::calls::CallErrorKind;
use crate::labels::{LabelOptions, PartitionMode};
use crate::model::HealthState;

/// A stateful service with a partition for each id.
fn divided(ids: &[&str]) -> FakeCluster {
    divided_with(ids, &LABELS)
}

fn divided_with(ids: &[&str], labels: &[(&str, &str)]) -> FakeCluster {
    let cluster = FakeCluster::new();
    cluster.edit(|contents| {
        contents
            .application_type("T", "1", [])
            .service_type("T", "1", "S", labels.iter().copied())
            .application("fabric:/A", "T", "1", []);
        let addresses: Vec<_> = ids.iter().map(|id| format!("https://{id}:1")).collect();
        let partitions = ids.iter().zip(&addresses);
        let partitions = partitions.map(|(id, address)| (*id, vec![(1, address.as_str())]));
        contents.stateful("fabric:/A/Db", "S", partitions);
    });
    cluster
}

/// Options that keep partitions apart, without a cache.
fn apart() -> ServiceFabricOptions {
    let labels = LabelOptions::default().with_partition_mode(PartitionMode::PerPartition);
    let options = ServiceFabricOptions::default().with_cache_duration(Duration::ZERO);
    options.with_labels(labels)
}

fn db(running: &Running) -> BTreeMap<String, Vec<String>> {
    let config = running.config();
    let of = |(id, cluster): (&proxy_model::ClusterId, &proxy_model::config::ClusterConfig)| {
        let addresses = cluster.destinations.values().map(|of| of.address.clone());
        let partition = id.as_str().rsplit('/').next().unwrap_or_default();
        (partition.to_owned(), addresses.collect())
    };
    config.clusters.iter().map(of).collect()
}

fn map(entries: &[(&str, &[&str])]) -> BTreeMap<String, Vec<String>> {
    let owned = |(id, addresses): &(&str, &[&str])| {
        let addresses = addresses.iter().map(|of| (*of).to_owned()).collect();
        ((*id).to_owned(), addresses)
    };
    entries.iter().map(owned).collect()
}

#[tokio::test(start_paused = true)]
async fn one_partition_that_cannot_be_read_at_the_start_takes_no_other_away() {
    let cluster = divided(&["p1", "p2", "p3"]);
    cluster.fail("replicas p2", CallErrorKind::Busy);
    let discoverer = with_options(&cluster, apart());
    let running = Running::start(&discoverer);
    let report = running.report(1).await;
    assert_eq!(
        db(&running),
        map(&[
            ("p1", &["https://p1:1/"]),
            ("p2", &[]),
            ("p3", &["https://p3:1/"]),
        ])
    );
    let service = &report.services[0];
    assert!(matches!(service.outcome, ServiceOutcome::Accepted { .. }));
    let problem = service.problems.iter().next().expect("it is said");
    assert_eq!(problem.code, "partition_not_read");
    assert!(problem.message.contains("p2"), "{problem}");
    let reports = discoverer.health_reports(&report);
    assert_eq!(reports[0].information.health_state, HealthState::Warning);
    let decisions = discoverer.decisions().decisions;
    let reasons = decisions[0].reasons.join("\n");
    assert!(reasons.contains("partition p2"), "{reasons}");

    // It is read again soon.
    cluster.heal();
    tokio::time::sleep(Duration::from_secs(6)).await;
    assert_eq!(db(&running)["p2"], ["https://p2:1/"]);
    let state = running.provider.state();
    assert!(state.problems.is_empty(), "{}", state.problems);
}

/// Configuration restored from disk is older than a response, and better than none.
#[tokio::test(start_paused = true)]
async fn a_partition_that_cannot_be_read_at_the_start_serves_at_the_addresses_that_were_kept() {
    let directory = tempfile::tempdir().unwrap();
    for mode in [PartitionMode::PerPartition, PartitionMode::Merge] {
        let labels = LabelOptions::default().with_partition_mode(mode);
        let mut options = apart().with_labels(labels);
        options.persist = Some(directory.path().join(format!("{mode:?}")));
        let cluster = divided(&["p1", "p2", "p3"]);
        let discoverer = with_options(&cluster, options.clone());
        let running = Running::start(&discoverer);
        running.report(1).await;
        tokio::time::sleep(Duration::from_secs(1)).await;
        drop(running);

        // Another process. Meanwhile a partition has moved, and another unreadable one may have been
        // removed.
        let moved = divided(&["p1", "p2", "p3"]);
        moved.edit(|contents| {
            contents.instances("p1", &[(2, "https://moved:1")]);
        });
        moved.fail("replicas p2", CallErrorKind::Busy);
        let discoverer = with_options(&moved, options.clone());
        let running = Running::start(&discoverer);
        let report = running.report(1).await;
        let mut addresses: Vec<_> = db(&running).into_values().flatten().collect();
        addresses.sort();
        let expected = ["https://moved:1/", "https://p2:1/", "https://p3:1/"];
        assert_eq!(addresses, expected, "{mode:?}");
        let codes: Vec<_> = report.services[0]
            .problems
            .iter()
            .map(|of| &*of.code)
            .collect();
        assert_eq!(codes, ["partition_not_read", "destinations_not_read"]);
        let reports = discoverer.health_reports(&report);
        assert_eq!(reports[0].information.health_state, HealthState::Warning);

        // They stay, and report their age; once the partition is read the cluster's data counts.
        tokio::time::sleep(Duration::from_secs(600)).await;
        let problems = running.provider.state().problems.to_string();
        assert!(problems.contains("minutes ago"), "{problems}");
        moved.edit(|contents| {
            contents.instances("p2", &[]);
        });
        moved.heal();
        tokio::time::sleep(Duration::from_secs(1200)).await;
        let state = running.provider.state();
        assert!(state.problems.is_empty(), "{}", state.problems);
        let mut addresses: Vec<_> = db(&running).into_values().flatten().collect();
        addresses.sort();
        assert_eq!(addresses, ["https://moved:1/", "https://p3:1/"]);
    }
}

/// Labels of which nothing is right and a partition of which nothing is known, after a restart.
#[tokio::test(start_paused = true)]
async fn last_known_good_rules_have_the_addresses_that_were_kept_of_an_unread_partition() {
    let directory = tempfile::tempdir().unwrap();
    let mut options = apart();
    options.persist = Some(directory.path().join("kept"));
    let cluster = divided(&["p1", "p2"]);
    let running = Running::start(&with_options(&cluster, options.clone()));
    running.report(1).await;
    tokio::time::sleep(Duration::from_secs(1)).await;
    drop(running);

    let wrong = [("YARP.Enable", "true"), ("YARP.Routes.all.Order", "abc")];
    let cluster = divided_with(&["p1", "p2"], &wrong);
    cluster.edit(|contents| {
        contents.instances("p1", &[(2, "https://moved:1")]);
    });
    cluster.fail("replicas p2", CallErrorKind::Busy);
    let running = Running::start(&with_options(&cluster, options));
    let report = running.report(1).await;
    let outcome = &report.services[0].outcome;
    assert!(matches!(
        outcome,
        ServiceOutcome::Quarantined {
            last_known_good_age: Some(_),
            ..
        }
    ));
    let expected = map(&[("p1", &["https://moved:1/"]), ("p2", &["https://p2:1/"])]);
    assert_eq!(db(&running), expected);
}

/// Returns the codes of the only service's problems.
fn codes(report: &CycleReport) -> Vec<&str> {
    let problems = report.services[0].problems.iter();
    problems.map(|problem| &*problem.code).collect()
}

async fn minutes(minutes: u64) {
    tokio::time::sleep(Duration::from_secs(60 * minutes)).await;
}

/// Returns the last report of a runner.
async fn latest(running: &Running) -> Arc<CycleReport> {
    running.report(running.provider.state().status.cycles).await
}

#[tokio::test(start_paused = true)]
async fn a_partition_that_was_read_before_freezes_no_other() {
    for kind in [
        CallErrorKind::Busy,
        CallErrorKind::Rejected,
        CallErrorKind::Gone,
        CallErrorKind::TimedOut,
    ] {
        for mode in [PartitionMode::PerPartition, PartitionMode::Merge] {
            let cluster = divided(&["p1", "p2"]);
            let labels = LabelOptions::default().with_partition_mode(mode);
            let discoverer = with_options(&cluster, apart().with_labels(labels));
            let running = Running::start(&discoverer);
            running.report(1).await;
            cluster.fail("replicas p2", kind);
            cluster.edit(|contents| {
                contents.instances("p1", &[(2, "https://moved:1")]);
            });
            minutes(5).await;
            let addresses = addresses_in(&running.config());
            assert_eq!(addresses, ["https://moved:1/", "https://p2:1/"], "{kind:?}");
            let report = latest(&running).await;
            assert_eq!(
                codes(&report),
                ["partition_not_read", "destinations_not_read"]
            );
            assert_eq!(running.state(), SourceState::Partial);
            let status = running.provider.state().status.clone();
            let error = status.last_error.expect("it is said");
            assert!(error.message.contains("partition p2"), "{error:?}");
            let reports = discoverer.health_reports(&report);
            assert_eq!(reports[0].information.health_state, HealthState::Warning);

            // An address that was not confirmed for a long time may belong to another service by now.
            minutes(27).await;
            assert_eq!(addresses_in(&running.config()), ["https://moved:1/"]);
            assert_eq!(
                codes(latest(&running).await.as_ref()),
                ["partition_not_read", "destinations_too_old"]
            );

            cluster.heal();
            minutes(6).await;
            let addresses = addresses_in(&running.config());
            assert_eq!(addresses, ["https://moved:1/", "https://p2:1/"], "{kind:?}");
            assert_eq!(running.state(), SourceState::Live);
            assert!(codes(latest(&running).await.as_ref()).is_empty());
        }
    }
}

/// The cache returns old results at first, and the partition is as old as those.
#[tokio::test(start_paused = true)]
async fn a_partition_that_fails_for_longer_than_the_cache_holds_freezes_no_other() {
    let cluster = divided(&["p1", "p2"]);
    let options = apart().with_cache_duration(Duration::from_secs(600));
    let running = Running::start(&with_options(&cluster, options));
    running.report(1).await;
    cluster.fail("replicas p2", CallErrorKind::Busy);
    cluster.edit(|contents| {
        contents.instances("p1", &[(2, "https://moved:1")]);
    });
    minutes(20).await;
    let both = map(&[("p1", &["https://moved:1/"]), ("p2", &["https://p2:1/"])]);
    assert_eq!(db(&running), both);
    let oldest = running.provider.state().status.last_ok;
    let age = oldest.expect("it is said since when").age();
    assert!(age >= Duration::from_secs(60 * 19), "{age:?}");
    minutes(25).await;
    let none = map(&[("p1", &["https://moved:1/"]), ("p2", &[])]);
    assert_eq!(db(&running), none, "it answers 503, the other goes on");
}

#[tokio::test(start_paused = true)]
async fn a_partition_is_as_old_as_when_it_was_read_whatever_else_fails_or_comes_back() {
    let cluster = divided(&["p1", "p2", "p3"]);
    let running = Running::start(&with_options(&cluster, apart()));
    running.report(1).await;
    cluster.fail("replicas p2", CallErrorKind::Busy);
    minutes(20).await;
    cluster.fail("replicas p3", CallErrorKind::Busy);
    minutes(15).await;
    let found = db(&running);
    assert_eq!((found["p2"].len(), found["p3"].len()), (0, 1));
    // Nothing of it can be read for a while: it serves as it was, and what was too old does not come back.
    cluster.fail("replicas", CallErrorKind::Busy);
    minutes(5).await;
    let found = db(&running);
    assert_eq!(
        (found["p1"].len(), found["p2"].len(), found["p3"].len()),
        (1, 0, 1)
    );
    cluster.heal();
    minutes(6).await;
    assert!(db(&running).values().all(|addresses| addresses.len() == 1));
}

#[tokio::test(start_paused = true)]
async fn labels_that_are_wrong_keep_no_partition_longer_than_its_time() {
    let cluster = divided(&["p1", "p2"]);
    let options = apart().with_full_refresh_period(Duration::from_secs(30));
    let discoverer = with_options(&cluster, options);
    let running = Running::start(&discoverer);
    running.report(1).await;
    cluster.fail("replicas p2", CallErrorKind::Busy);
    cluster.edit(|contents| {
        contents.instances("p1", &[(2, "https://moved:1")]);
        contents.service_types.clear();
        let wrong = [("YARP.Enable", "true"), ("YARP.Routes.all.Order", "abc")];
        contents.service_type("T", "1", "S", wrong);
    });
    minutes(5).await;
    let both = map(&[("p1", &["https://moved:1/"]), ("p2", &["https://p2:1/"])]);
    assert_eq!(db(&running), both);
    let report = latest(&running).await;
    let ServiceOutcome::Quarantined {
        destinations_age: Some(age),
        ..
    } = report.services[0].outcome
    else {
        panic!("{report:?}");
    };
    assert!(age >= Duration::from_secs(240), "{age:?}");
    let news: Vec<_> = discoverer.health_reports(&report);
    assert!(news[0].information.description.contains("partition p2"));
    minutes(30).await;
    let none = map(&[("p1", &["https://moved:1/"]), ("p2", &[])]);
    assert_eq!(db(&running), none);
    let report = latest(&running).await;
    assert!(codes(&report).contains(&"destinations_too_old"));
    // The age is that of what serves, and not of what does not any more.
    let ServiceOutcome::Quarantined {
        destinations_age: Some(age),
        ..
    } = report.services[0].outcome
    else {
        panic!("{report:?}");
    };
    assert!(age < Duration::from_secs(60), "{age:?}");
}

/// A gateway that lies about one partition.
#[tokio::test(start_paused = true)]
async fn a_partition_with_more_replicas_than_there_can_be_is_not_read() {
    let cluster = divided(&["p1", "p2"]);
    let running = Running::start(&with_options(&cluster, apart()));
    running.report(1).await;
    cluster.edit(|contents| {
        let many: Vec<_> = (0..10_001).map(|id| (id, "https://liar:1")).collect();
        contents.instances("p2", &many);
        contents.instances("p1", &[(2, "https://moved:1")]);
    });
    minutes(2).await;
    let both = map(&[("p1", &["https://moved:1/"]), ("p2", &["https://p2:1/"])]);
    assert_eq!(db(&running), both);
    let problems = running.provider.state().problems.to_string();
    assert!(
        problems.contains("10001 replicas, more than 10000"),
        "{problems}"
    );
}

/// The hanging partitions were read before: all others are updated within one wait.
#[tokio::test(start_paused = true)]
async fn partitions_that_begin_to_hang_cost_the_others_one_wait() {
    let ids: Vec<_> = (0..100).map(|at| format!("p{at:02}")).collect();
    let ids: Vec<_> = ids.iter().map(String::as_str).collect();
    let cluster = divided(&ids);
    let discoverer = with_options(&cluster, apart());
    let running = Running::start(&discoverer);
    running.report(1).await;
    for id in &ids[..50] {
        cluster.slow(&format!("replicas {id}"), Duration::from_secs(60));
    }
    cluster.edit(|contents| {
        contents.instances("p99", &[(2, "https://moved:1")]);
    });
    let begun = tokio::time::Instant::now();
    let cycle = running.provider.state().status.cycles + 1;
    running.report(cycle).await;
    let took = begun.elapsed();
    assert!(took <= Duration::from_secs(33 + 31), "{took:?}");
    let found = db(&running);
    assert_eq!(found["p99"], ["https://moved:1/"]);
    assert_eq!(found["p07"], ["https://p07:1/"]);
    // Hanging partitions are polled less and less often, and delay no other meanwhile.
    minutes(20).await;
    cluster.forget_calls();
    minutes(20).await;
    let asked = cluster.calls("replicas p07");
    assert!((2..=6).contains(&asked), "{asked} times in 20 minutes");
}

/// Partitions that are merely slow are read whenever the one that hangs is left alone, however long it hangs.
#[tokio::test(start_paused = true)]
async fn slow_partitions_do_not_back_off_with_one_that_hangs() {
    let ids: Vec<_> = (0..20).map(|at| format!("p{at:02}")).collect();
    let ids: Vec<_> = ids.iter().map(String::as_str).collect();
    let cluster = divided(&ids);
    cluster.delay(Duration::from_secs(2));
    cluster.slow("replicas p00", Duration::from_secs(60));
    let options = apart().with_max_concurrent_calls(2);
    let running = Running::start(&with_options(&cluster, options));
    minutes(34).await;
    assert_eq!(db(&running)["p15"], ["https://p15:1/"]);
    cluster.forget_calls();
    minutes(20).await;
    let (hanging, slow) = (cluster.calls("replicas p00"), cluster.calls("replicas p15"));
    assert!((2..=6).contains(&hanging), "{hanging} times in 20 minutes");
    assert!(slow >= 10, "{slow} times in 20 minutes");
}

/// A partition that is gone makes the service be read once more. What answers in time is read then, although the time
/// for reads behind a slow one had passed in the first attempt.
#[tokio::test(start_paused = true)]
async fn a_second_attempt_has_a_time_of_its_own_for_what_is_not_slow() {
    let ids: Vec<_> = (0..20).map(|at| format!("p{at:02}")).collect();
    let ids: Vec<_> = ids.iter().map(String::as_str).collect();
    let cluster = divided(&ids);
    cluster.slow("replicas p00", Duration::from_secs(60));
    for id in &ids[1..] {
        cluster.slow(&format!("replicas {id}"), Duration::from_millis(900));
    }
    cluster.fail("replicas p05", CallErrorKind::Gone);
    let discoverer = with_options(&cluster, apart().with_max_concurrent_calls(1));
    let begun = tokio::time::Instant::now();
    let discovery = cycle(&discoverer).await;
    let took = begun.elapsed();
    let found = addresses(&discovery).remove("fabric:/A/Db").flatten();
    let found = found.unwrap_or_default();
    assert!(found.contains(&"https://p01:1/".to_owned()), "{found:?}");
    // One wait, and twice the little time after it: the second attempt waits for no more than the first.
    assert!(took <= Duration::from_secs(20 + 2 * 11), "{took:?}");
}

/// At the start partitions that hang take all places, and the others are slower than what is left of the time. They
/// are read as soon as those that hang are left alone.
#[tokio::test(start_paused = true)]
async fn partitions_that_hang_at_the_start_leave_no_service_out() {
    const HANGING: usize = 8;
    let ids: Vec<_> = (0..12).map(|at| format!("p{at:02}")).collect();
    let ids: Vec<_> = ids.iter().map(String::as_str).collect();
    let cluster = divided(&ids);
    let (hanging, slow) = ids.split_at(HANGING);
    for id in hanging {
        cluster.slow(&format!("replicas {id}"), Duration::from_secs(60));
    }
    for id in slow {
        cluster.slow(&format!("replicas {id}"), Duration::from_secs(2));
    }
    // Those of another service, so that the cycle is an answer.
    cluster.edit(|contents| {
        contents.stateful("fabric:/A/Other", "S", [("o", vec![(1, "https://o:1")])]);
    });
    let options = apart().with_max_concurrent_calls(HANGING);
    let running = Running::start(&with_options(&cluster, options));
    minutes(6).await;
    let found = db(&running);
    for id in slow {
        assert_eq!(found.get(*id).map(Vec::len), Some(1), "{id}: {found:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_service_of_which_no_partition_can_be_read_is_not_read() {
    let cluster = divided(&["p1", "p2"]);
    cluster.fail("replicas", CallErrorKind::Busy);
    let discoverer = with_options(&cluster, apart());
    let error = discoverer.discover().await.expect_err("nothing is known");
    assert!(error.to_string().contains("replicas"), "{error}");
}

#[tokio::test(start_paused = true)]
async fn slow_partitions_at_the_start_cost_the_others_one_wait() {
    let ids: Vec<_> = (0..100).map(|at| format!("p{at}")).collect();
    let ids: Vec<_> = ids.iter().map(String::as_str).collect();
    let cluster = divided(&ids);
    for id in &ids[50..] {
        cluster.slow(&format!("replicas {id}"), Duration::from_secs(60));
    }
    let discoverer = with_options(&cluster, apart());
    let begun = tokio::time::Instant::now();
    cycle(&discoverer).await;
    assert!(
        begun.elapsed() <= Duration::from_secs(31),
        "{:?}",
        begun.elapsed()
    );
    let running = Running::start(&discoverer);
    // Working ones are found although others hang, and hanging ones are polled less and less often.
    tokio::time::sleep(Duration::from_secs(1200)).await;
    let found = db(&running);
    let read = found.values().filter(|addresses| !addresses.is_empty());
    assert_eq!(read.count(), 50);
    cluster.forget_calls();
    tokio::time::sleep(Duration::from_secs(1200)).await;
    let asked = cluster.calls("replicas p70");
    assert!((2..=6).contains(&asked), "{asked} times in 20 minutes");
    cluster.heal();
    tokio::time::sleep(Duration::from_secs(700)).await;
    assert!(db(&running).values().all(|addresses| !addresses.is_empty()));
}
