mod paths;
mod script;

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use http::StatusCode;
use proxy_model::compiled::{Cluster, Destination};
use proxy_model::{CompileOptions, Snapshot};
use tokio::time::sleep;
use tracing::Level;

use self::script::{Answer, Script, a_round, checked, health, start, start_with, status};
use crate::Proxy;
use crate::fixtures::{Log, config, snapshot};
use crate::health::ActiveHealthPolicy;
use crate::health::Health;
use crate::health::Probe;
use crate::health::ProbeError;
use crate::health::Probed;
use crate::observe::targets;

/// Intervals of 10 s, so that a cycle begins 9 to 11 s after the previous one.
const TEN: &str = r#","Interval":"10s","Timeout":"5s""#;

#[tokio::test(start_paused = true)]
async fn k01_two_failures_in_a_row_make_unhealthy() {
    let script = Script::new();
    script.answer("d", Answer::Status(500));
    let proxy = start(&script, &checked(TEN, &["d"]));
    sleep(Duration::from_secs(1)).await;
    assert_eq!(
        (health(&proxy, "d"), script.count("d")),
        (Health::Unknown, 1)
    );
    a_round().await;
    assert_eq!(
        (health(&proxy, "d"), script.count("d")),
        (Health::Unhealthy, 2)
    );
    let status = status(&proxy, "d");
    let reason = status.reason.unwrap();
    assert!(
        reason.contains("2 probes in a row") && reason.contains("500"),
        "{reason}"
    );
    assert!(status.since.is_some());
}

#[tokio::test(start_paused = true)]
async fn k02_the_threshold_comes_from_the_metadata() {
    let script = Script::new();
    script.answer("d", Answer::Rejected);
    let json = checked(TEN, &["d"]).replace(
        r#""HealthCheck""#,
        r#""Metadata":{"ConsecutiveFailuresHealthPolicy.Threshold":"3"},"HealthCheck""#,
    );
    let proxy = start(&script, &json);
    sleep(Duration::from_secs(1)).await;
    for expected in [Health::Unknown, Health::Unknown, Health::Unhealthy] {
        assert_eq!(health(&proxy, "d"), expected);
        a_round().await;
    }
    let reason = status(&proxy, "d").reason.unwrap();
    assert!(reason.contains("connection refused"), "{reason}");
}

#[tokio::test(start_paused = true)]
async fn k03_k05_one_success_heals_and_one_failure_does_not_hurt() {
    let script = Script::new();
    script.answer("d", Answer::Status(503));
    let proxy = start(&script, &checked(TEN, &["d"]));
    a_round().await;
    assert_eq!(health(&proxy, "d"), Health::Unhealthy);
    script.answer("d", Answer::Status(204));
    a_round().await;
    assert_eq!(health(&proxy, "d"), Health::Healthy);
    script.answer("d", Answer::Status(302));
    a_round().await;
    assert_eq!(health(&proxy, "d"), Health::Healthy);
    a_round().await;
    assert_eq!(
        health(&proxy, "d"),
        Health::Unhealthy,
        "any status but 2xx is a failure"
    );
}

#[tokio::test(start_paused = true)]
async fn k04_a_cluster_without_destinations_is_no_problem() {
    let script = Script::new();
    let proxy = start(&script, &checked(TEN, &[]));
    a_round().await;
    assert!(proxy.cluster(&"c".into()).unwrap().destinations.is_empty());
    // A destination that is added later is probed.
    proxy.publish(snapshot(&checked(TEN, &["d"]))).unwrap();
    sleep(Duration::from_millis(1)).await;
    assert_eq!(health(&proxy, "d"), Health::Healthy);
}

#[tokio::test(start_paused = true)]
async fn a_probe_that_never_ends_is_given_up_at_its_timeout() {
    let script = Script::new();
    script.answer("slow", Answer::Never);
    let proxy = start(&script, &checked(TEN, &["slow", "fine"]));
    sleep(Duration::from_millis(4_900)).await;
    // The results of a cycle are applied together.
    assert_eq!(health(&proxy, "fine"), Health::Unknown);
    sleep(Duration::from_millis(200)).await;
    assert_eq!(health(&proxy, "fine"), Health::Healthy);
    assert_eq!(
        status(&proxy, "slow").last_probe.unwrap(),
        "no answer within 5s"
    );
    sleep(Duration::from_secs(17)).await;
    assert_eq!(health(&proxy, "slow"), Health::Unhealthy);
}

#[tokio::test(start_paused = true)]
async fn rounds_are_counted_from_the_end_of_the_last_one_with_jitter() {
    let script = Script::new();
    script.answer("d", Answer::After(Duration::from_secs(3)));
    let _proxy = start(&script, &checked(TEN, &["d"]));
    sleep(Duration::from_secs(600)).await;
    let times = script.times("d");
    let gaps: Vec<_> = times.windows(2).map(|pair| pair[1] - pair[0]).collect();
    assert!(gaps.len() > 40);
    for gap in &gaps {
        assert!((12.0..=14.01).contains(&gap.as_secs_f64()), "{gap:?}");
    }
    let spread = *gaps.iter().max().unwrap() - *gaps.iter().min().unwrap();
    assert!(spread > Duration::from_secs(1), "no jitter: {gaps:?}");
}

/// Differs from YARP, where a new cluster waits for one interval.
#[tokio::test(start_paused = true)]
async fn k17_what_is_new_is_probed_at_once() {
    let script = Script::new();
    let proxy = start(&script, r#"{"Clusters":{}}"#);
    sleep(Duration::from_secs(100)).await;
    proxy.publish(snapshot(&checked(TEN, &["a"]))).unwrap();
    sleep(Duration::from_millis(1)).await;
    assert_eq!(health(&proxy, "a"), Health::Healthy, "a new cluster");

    proxy.publish(snapshot(&checked(TEN, &["a", "b"]))).unwrap();
    sleep(Duration::from_millis(1)).await;
    assert_eq!(health(&proxy, "b"), Health::Healthy, "a new destination");
    assert_eq!(
        (script.count("a"), script.count("b")),
        (1, 1),
        "the others keep their rhythm"
    );

    a_round().await;
    assert_eq!((script.count("a"), script.count("b")), (2, 2));
    let moved = checked(TEN, &["a", "b"]).replace("http://b.example", "http://moved.example");
    proxy.publish(snapshot(&moved)).unwrap();
    assert_eq!(
        health(&proxy, "b"),
        Health::Unknown,
        "another address is another destination"
    );
    sleep(Duration::from_millis(1)).await;
    assert_eq!((script.count("a"), script.count("b")), (2, 3));
}

#[tokio::test(start_paused = true)]
async fn a_newcomer_does_not_wait_for_a_round_that_hangs() {
    let script = Script::new();
    script.answer("slow", Answer::Never);
    let proxy = start(&script, &checked(TEN, &["slow"]));
    sleep(Duration::from_secs(1)).await;
    proxy
        .publish(snapshot(&checked(TEN, &["slow", "new"])))
        .unwrap();
    sleep(Duration::from_millis(1)).await;
    assert_eq!(health(&proxy, "new"), Health::Healthy);
    assert_eq!(script.count("slow"), 1);
}

#[tokio::test(start_paused = true)]
async fn probing_ends_with_the_check_and_begins_again_with_it() {
    let script = Script::new();
    script.answer("d", Answer::Status(500));
    let on = checked(TEN, &["d"]);
    let off = on.replace(r#""Enabled":true"#, r#""Enabled":false"#);
    let proxy = start(&script, &on);
    a_round().await;
    assert_eq!(health(&proxy, "d"), Health::Unhealthy);
    proxy.publish(snapshot(&off)).unwrap();
    // Results count only while the check is enabled.
    assert_eq!(health(&proxy, "d"), Health::Unknown);
    assert!(status(&proxy, "d").eligible);
    sleep(Duration::from_secs(100)).await;
    assert_eq!(script.count("d"), 2);
    proxy.publish(snapshot(&on)).unwrap();
    sleep(Duration::from_millis(1)).await;
    assert_eq!(script.count("d"), 3);
}

#[tokio::test(start_paused = true)]
async fn a_check_that_was_off_counts_from_nothing() {
    let script = Script::new();
    let on = checked(TEN, &["d"]);
    let off = on.replace(r#""Enabled":true"#, r#""Enabled":false"#);
    let proxy = start(&script, &on);
    sleep(Duration::from_secs(1)).await;
    script.answer("d", Answer::Status(500));
    a_round().await;
    assert_eq!(script.count("d"), 2, "one success, one failure");
    proxy.publish(snapshot(&off)).unwrap();
    sleep(Duration::from_secs(100)).await;
    proxy.publish(snapshot(&on)).unwrap();
    sleep(Duration::from_millis(1)).await;
    assert_eq!(
        (script.count("d"), health(&proxy, "d")),
        (3, Health::Healthy)
    );
    a_round().await;
    assert_eq!(health(&proxy, "d"), Health::Unhealthy);
}

#[tokio::test(start_paused = true)]
async fn a_shorter_interval_takes_effect_at_once() {
    let script = Script::new();
    let hour = r#","Interval":"1.00:00:00""#;
    let proxy = start(&script, &checked(hour, &["d"]));
    sleep(Duration::from_secs(60)).await;
    assert_eq!(script.count("d"), 1);
    proxy.publish(snapshot(&checked(TEN, &["d"]))).unwrap();
    sleep(Duration::from_millis(1)).await;
    assert_eq!(script.count("d"), 2, "the new interval is over already");
    a_round().await;
    assert_eq!(script.count("d"), 3);
}

#[tokio::test(start_paused = true)]
async fn probes_of_a_removed_cluster_end() {
    let script = Script::new();
    script.answer("d", Answer::Never);
    let json = checked(r#","Interval":"10s","Timeout":"1.00:00:00""#, &["d"]);
    let proxy = start(&script, &json);
    sleep(Duration::from_secs(1)).await;
    proxy.publish(snapshot("{}")).unwrap();
    sleep(Duration::from_secs(1)).await;
    script.answer("d", Answer::Status(200));
    // The outdated probe, which would take a day, does not block the new one.
    proxy.publish(snapshot(&json)).unwrap();
    sleep(Duration::from_millis(1)).await;
    assert_eq!(health(&proxy, "d"), Health::Healthy);
}

#[tokio::test(start_paused = true)]
async fn a_large_round_is_bounded_and_complete() {
    struct Crowd {
        now: std::sync::atomic::AtomicUsize,
        most: std::sync::atomic::AtomicUsize,
    }
    #[async_trait]
    impl Probe for Crowd {
        async fn probe(&self, _: &Cluster, _: &Destination) -> Result<StatusCode, ProbeError> {
            use std::sync::atomic::Ordering::SeqCst;
            let now = self.now.fetch_add(1, SeqCst) + 1;
            self.most.fetch_max(now, SeqCst);
            sleep(Duration::from_secs(1)).await;
            self.now.fetch_sub(1, SeqCst);
            Ok(StatusCode::OK)
        }
    }
    let crowd = Arc::new(Crowd {
        now: 0.into(),
        most: 0.into(),
    });
    let ids: Vec<_> = (0..200).map(|i| format!("d{i}")).collect();
    let ids: Vec<_> = ids.iter().map(String::as_str).collect();
    let builder = Proxy::builder().probe(Arc::<Crowd>::clone(&crowd));
    let (proxy, driver) = builder
        .snapshot(snapshot(&checked(TEN, &ids)))
        .build()
        .unwrap();
    tokio::spawn(driver);
    sleep(Duration::from_secs(5)).await;
    let cluster = proxy.cluster(&"c".into()).unwrap();
    assert!(
        cluster
            .destinations
            .iter()
            .all(|d| d.health == Health::Healthy)
    );
    assert_eq!(crowd.most.load(std::sync::atomic::Ordering::SeqCst), 64);
}

#[tokio::test(start_paused = true)]
async fn a_policy_of_the_program_judges() {
    /// Accepts any response.
    struct AnyAnswer;
    impl ActiveHealthPolicy for AnyAnswer {
        fn evaluate(&self, probed: &Probed<'_>) -> Health {
            match probed.result {
                Ok(_) => Health::Healthy,
                Err(_) => Health::Unhealthy,
            }
        }
    }
    let script = Script::new();
    script.answer("a", Answer::Status(500));
    script.answer("b", Answer::Rejected);
    let builder = Proxy::builder().health_policy("AnyAnswer", Arc::new(AnyAnswer));
    let json = checked(&format!(r#"{TEN},"Policy":"anyanswer""#), &["a", "b"]);
    let (compiled, _) = Snapshot::compile(config(&json), &builder.compile_options()).unwrap();
    let compiled = Arc::new(compiled);
    let proxy = start_with(builder, &script, Arc::clone(&compiled));
    sleep(Duration::from_secs(1)).await;
    assert_eq!(
        (health(&proxy, "a"), health(&proxy, "b")),
        (Health::Healthy, Health::Unhealthy)
    );

    // A proxy without the policy rejects the configuration.
    assert!(Snapshot::compile(config(&json), &CompileOptions::default()).is_err());
    let problems = Proxy::builder().snapshot(compiled).build().unwrap_err();
    let problem = problems.iter().next().unwrap();
    assert_eq!(problem.pointer, "/Clusters/c/HealthCheck/Active/Policy");
}

#[tokio::test(start_paused = true)]
async fn a_probe_that_panics_has_failed_and_the_others_go_on() {
    let script = Script::new();
    script.answer("d", Answer::Panics);
    let proxy = start(&script, &checked(TEN, &["d", "e"]));
    sleep(Duration::from_secs(1)).await;
    a_round().await;
    assert_eq!(health(&proxy, "d"), Health::Unhealthy);
    assert_eq!(health(&proxy, "e"), Health::Healthy);
    let reason = status(&proxy, "d").reason.unwrap();
    assert!(reason.contains("the script says so"), "{reason}");
    script.answer("d", Answer::Status(200));
    a_round().await;
    assert_eq!(health(&proxy, "d"), Health::Healthy);
}

#[tokio::test(start_paused = true)]
async fn a_policy_that_panics_changes_nothing_and_the_driver_goes_on() {
    /// Panics on failures.
    struct Fragile;
    impl ActiveHealthPolicy for Fragile {
        fn evaluate(&self, probed: &Probed<'_>) -> Health {
            assert!(probed.result.is_ok(), "a probe failed");
            Health::Healthy
        }
    }
    let script = Script::new();
    let builder = Proxy::builder().health_policy("Fragile", Arc::new(Fragile));
    let json = checked(&format!(r#"{TEN},"Policy":"Fragile""#), &["d"]);
    let (compiled, _) = Snapshot::compile(config(&json), &builder.compile_options()).unwrap();
    let proxy = start_with(builder, &script, Arc::new(compiled));
    sleep(Duration::from_secs(1)).await;
    script.answer("d", Answer::Rejected);
    let asked = script.count("d");
    a_round().await;
    a_round().await;
    assert_eq!(script.count("d"), asked + 2, "the driver goes on");
    assert_eq!(health(&proxy, "d"), Health::Healthy);
}

#[tokio::test(start_paused = true)]
async fn without_its_driver_the_proxy_goes_on_with_what_it_knew() {
    let script = Script::new();
    script.answer("d", Answer::Status(500));
    let builder = Proxy::builder().probe(Arc::<Script>::clone(&script));
    let (proxy, driver) = builder
        .snapshot(snapshot(&checked(TEN, &["d", "e"])))
        .build()
        .unwrap();
    let driver = tokio::spawn(driver);
    a_round().await;
    assert_eq!(health(&proxy, "d"), Health::Unhealthy);
    driver.abort();
    assert!(driver.await.unwrap_err().is_cancelled());
    sleep(Duration::from_secs(100)).await;
    assert_eq!(
        (script.count("d"), health(&proxy, "d")),
        (2, Health::Unhealthy)
    );
    assert_eq!(proxy.cluster(&"c".into()).unwrap().available, 1);
}

#[tokio::test(start_paused = true)]
async fn there_is_one_event_per_change_and_none_per_probe() {
    let (log, _guard) = Log::start();
    let script = Script::new();
    script.answer("d", Answer::Status(500));
    let _proxy = start(&script, &checked(TEN, &["d", "e"]));
    sleep(Duration::from_secs(100)).await;
    script.answer("d", Answer::Status(200));
    sleep(Duration::from_secs(100)).await;
    let events = log.take(targets::HEALTH);
    let told: Vec<_> = events
        .iter()
        .map(|event| (event.level, event.fields.as_str()))
        .collect();
    let [(_, e), (fell, ill), (rose, well)] = told[..] else {
        panic!("{told:#?}");
    };
    assert!(
        e.contains("destination=e") && e.contains("health=Healthy"),
        "{e}"
    );
    assert_eq!((fell, rose), (Level::WARN, Level::INFO));
    assert!(
        ill.contains("health=Unhealthy") && ill.contains("500"),
        "{ill}"
    );
    assert!(
        well.contains("before=Unhealthy") && well.contains("health=Healthy"),
        "{well}"
    );
}

#[tokio::test(start_paused = true)]
async fn an_unhealthy_destination_rises_after_so_many_successes() {
    let script = Script::new();
    let settings = format!(r#"{TEN},"Rise":3"#);
    let proxy = start(&script, &checked(&settings, &["d"]));
    sleep(Duration::from_secs(1)).await;
    // What nothing is known of needs one.
    assert_eq!(health(&proxy, "d"), Health::Healthy);
    let round = |status| {
        script.answer("d", Answer::Status(status));
        let (script, before) = (&script, script.count("d"));
        async move {
            while script.count("d") == before {
                sleep(Duration::from_millis(100)).await;
            }
        }
    };
    round(500).await;
    round(500).await;
    assert_eq!(health(&proxy, "d"), Health::Unhealthy);
    // A failure in between begins it again.
    for status in [200, 200, 500, 200, 200] {
        round(status).await;
        assert_eq!(health(&proxy, "d"), Health::Unhealthy, "{status}");
    }
    round(200).await;
    assert_eq!(health(&proxy, "d"), Health::Healthy);
}

#[tokio::test(start_paused = true)]
async fn a_destination_in_doubt_is_probed_faster() {
    let script = Script::new();
    let settings = format!(r#"{TEN},"FastInterval":"1s","Rise":2"#);
    let proxy = start(&script, &checked(&settings, &["a", "b"]));
    sleep(Duration::from_secs(1)).await;
    assert_eq!((script.count("a"), script.count("b")), (1, 1));
    script.answer("a", Answer::Status(500));
    // The next round is at 9 to 11 s, and the next probe of what failed in it 1 s later.
    sleep(Duration::from_millis(12_200)).await;
    assert_eq!(health(&proxy, "a"), Health::Unhealthy);
    assert_eq!((script.count("a"), script.count("b")), (3, 2));
    // It is known to be unhealthy, so probes come at the usual interval again.
    sleep(Duration::from_secs(4)).await;
    assert_eq!(script.count("a"), 3);
    script.answer("a", Answer::Status(200));
    sleep(Duration::from_secs(9)).await;
    assert_eq!(health(&proxy, "a"), Health::Healthy);
    assert_eq!((script.count("a"), script.count("b")), (5, 3));
}
