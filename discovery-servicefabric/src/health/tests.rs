//! Tests of the content, time and frequency of reports.

mod order;

use std::collections::{HashMap, HashSet};
use std::time::Duration;

use discovery_core::{ConfigProvider, Discoverer, DiscoveryProvider};
use proptest::prelude::*;
use proxy_model::Problem;

use super::*;
use crate::calls::CallErrorKind;
use crate::discoverer::{ServiceFabric, ServiceFabricDiscoverer};
use crate::model::{HealthState, ServiceKind};
use crate::options::ServiceFabricOptions;
use crate::testing::FakeCluster;

fn cluster(services: usize) -> FakeCluster {
    let cluster = FakeCluster::new();
    cluster.edit(|contents| {
        contents
            .application_type("T", "1", [])
            .service_type(
                "T",
                "1",
                "S",
                [("YARP.Enable", "true"), ("YARP.Routes.r.Path", "/{**x}")],
            )
            .application("fabric:/A", "T", "1", []);
        for i in 0..services {
            let (name, id) = (format!("fabric:/A/S{i}"), format!("p{i}"));
            contents.stateless(&name, "S", [(id.as_str(), vec![(1, "https://a:1")])]);
        }
    });
    cluster
}

fn start(
    cluster: &FakeCluster,
    options: ServiceFabricOptions,
) -> (ServiceFabricDiscoverer, DiscoveryProvider) {
    let discoverer = ServiceFabric::new(cluster.clone())
        .options(options)
        .discoverer();
    let provider = discoverer.runner().start();
    (discoverer, provider)
}

async fn seconds(seconds: u64) {
    tokio::time::sleep(Duration::from_secs(seconds)).await;
}

#[tokio::test(start_paused = true)]
async fn reports_are_renewed_before_they_vanish_and_no_more_often_than_they_must() {
    for (period, at_least, at_most) in [(1, 45, 66), (5, 40, 64), (30, 20, 48), (60, 9, 24)] {
        let cluster = cluster(1);
        let period = Duration::from_secs(period);
        let options = ServiceFabricOptions::default().with_discovery_period(period);
        let _running = start(&cluster, options);
        // A report that is not immediate arrives up to 30 s after it was sent, and holds from then.
        let mut vanishes = Duration::MAX;
        let mut reports = 0;
        for second in 0..1200 {
            seconds(1).await;
            let now = Duration::from_secs(second);
            for (_, information, immediate) in cluster.take_reports() {
                assert_eq!(information.health_state, HealthState::Ok);
                assert!(!immediate);
                assert!(now + GATEWAY_BATCH <= vanishes, "{period:?}");
                vanishes = now + information.time_to_live.unwrap();
                reports += 1;
            }
        }
        assert!(
            (at_least..=at_most).contains(&reports),
            "{period:?}: {reports}"
        );
    }
}

#[tokio::test(start_paused = true)]
async fn news_is_told_in_the_cycle_that_brings_it() {
    let cluster = cluster(2);
    let options = ServiceFabricOptions::default().with_discovery_period(Duration::from_secs(5));
    let _running = start(&cluster, options);
    seconds(1).await;
    assert_eq!(cluster.take_reports().len(), 2);
    // Nothing changes, nothing is reported.
    seconds(6).await;
    assert_eq!(cluster.take_reports(), []);
    cluster.edit(|contents| {
        contents.instances("p0", &[(2, "http://insecure:1")]);
    });
    seconds(6).await;
    let told = cluster.take_reports();
    assert_eq!(told.len(), 1);
    let (entity, information, immediate) = &told[0];
    assert_eq!(entity.to_string(), "service A~S0");
    assert_eq!(information.health_state, HealthState::Warning);
    assert!(*immediate);
    let text = &information.description;
    assert!(
        text.contains("no destination") && text.contains("p0/2"),
        "{text}"
    );
    cluster.edit(|contents| {
        contents.instances("p0", &[(3, "https://secure:1")]);
    });
    seconds(6).await;
    let told = cluster.take_reports();
    assert_eq!(told[0].1.health_state, HealthState::Ok);
}

#[tokio::test(start_paused = true)]
async fn a_report_that_was_not_taken_is_made_again() {
    let cluster = cluster(3);
    cluster.fail_times("report_health service A~S1", CallErrorKind::Busy, 1);
    let options = ServiceFabricOptions::default().with_discovery_period(Duration::from_secs(5));
    let _running = start(&cluster, options);
    seconds(1).await;
    assert_eq!(cluster.take_reports().len(), 2);
    seconds(6).await;
    let told = cluster.take_reports();
    assert_eq!(told.len(), 1);
    assert_eq!(told[0].0.to_string(), "service A~S1");
}

#[tokio::test(start_paused = true)]
async fn a_cluster_that_takes_no_reports_is_left_alone() {
    let cluster = cluster(200);
    cluster.fail("report_health", CallErrorKind::Denied);
    let options = ServiceFabricOptions::default().with_discovery_period(Duration::from_secs(5));
    let _running = start(&cluster, options);
    seconds(60).await;
    let tried = cluster.calls("report_health");
    assert!((1..=8).contains(&tried), "{tried}");
    seconds(300).await;
    assert!(cluster.calls("report_health") > tried);

    cluster.heal();
    cluster.fail("report_health", CallErrorKind::Unreachable);
    cluster.forget_calls();
    seconds(300).await;
    let cycles = cluster.calls("applications");
    let tried = cluster.calls("report_health");
    assert!(tried <= cycles * 32, "{tried} in {cycles}");
    cluster.heal();
    seconds(60).await;
    let told = cluster.take_reports();
    let entities: HashSet<_> = told.into_iter().map(|(entity, ..)| entity).collect();
    assert_eq!(entities.len(), 200);
}

#[tokio::test(start_paused = true)]
async fn reports_that_hang_hold_nothing_up_for_long() {
    let cluster = cluster(4);
    let options = ServiceFabricOptions::default()
        .with_discovery_period(Duration::from_secs(5))
        .with_max_concurrent_calls(2);
    let (discoverer, provider) = start(&cluster, options);
    seconds(1).await;
    cluster.delay(Duration::from_secs(20));
    let cycles = provider.subscribe().borrow().status.cycles;
    seconds(600).await;
    assert!(provider.subscribe().borrow().status.cycles > cycles + 2);
    drop(discoverer);
}

#[tokio::test(start_paused = true)]
async fn what_could_not_be_read_is_told_only_while_something_old_serves() {
    let cluster = cluster(3);
    cluster.fail("replicas p1", CallErrorKind::Busy);
    let options = ServiceFabricOptions::default().with_cache_duration(Duration::ZERO);
    let (_discoverer, _provider) = start(&cluster, options);
    seconds(1).await;
    let told = cluster.take_reports();
    let told: Vec<_> = told.iter().map(|(entity, ..)| entity.to_string()).collect();
    assert_eq!(
        told,
        ["service A~S0", "service A~S2"],
        "nothing is known of the other one"
    );

    cluster.edit(|contents| {
        contents.instances("p0", &[(2, "https://b:1")]);
    });
    cluster.fail("replicas p0", CallErrorKind::Busy);
    seconds(40).await;
    let mut told = cluster.take_reports();
    told.retain(|(entity, ..)| entity.to_string() == "service A~S0");
    let (_, information, immediate) = told.last().expect("it is told");
    assert_eq!(information.health_state, HealthState::Warning);
    assert!(*immediate);
    let text = &information.description;
    assert!(text.contains("could not be read"), "{text}");
    assert!(text.starts_with("What serves is "), "{text}");
}

#[tokio::test(start_paused = true)]
async fn what_is_made_of_old_answers_is_told_as_old() {
    let cluster = cluster(1);
    let (_discoverer, _provider) = start(&cluster, ServiceFabricOptions::default());
    seconds(1).await;
    cluster.take_reports();
    cluster.edit(|contents| {
        contents.instances("p0", &[(2, "https://b:1")]);
    });
    cluster.fail("replicas p0", CallErrorKind::Busy);
    seconds(40).await;
    let told = cluster.take_reports();
    let text = &told.last().expect("it is told").1.description;
    assert!(text.contains("since calls fail"), "{text}");
    // Its age grows; that alone is no change.
    seconds(300).await;
    let told = cluster.take_reports().len();
    assert!(told <= 12, "{told}");
}

#[tokio::test(start_paused = true)]
async fn a_service_that_is_served_without_something_is_reported_with_a_warning() {
    let cluster = cluster(0);
    cluster.edit(|contents| {
        let labels = [
            ("YARP.Enable", "true"),
            ("YARP.Routes.r.Path", "/{**x}"),
            ("YARP.Backend.SessionAffinity.Enabled", "true"),
        ];
        contents.service_type("T", "1", "Sticky", labels);
        contents.stateless("fabric:/A/S", "Sticky", [("p", vec![(1, "https://a:1")])]);
    });
    for (unsupported, expected) in [(false, HealthState::Ok), (true, HealthState::Warning)] {
        let mut builder = ServiceFabric::new(cluster.clone());
        if unsupported {
            builder = builder.unsupported(|snapshot| {
                let pointer = "/Clusters/x/SessionAffinity";
                let warning = Problem::warning(pointer, "unsupported", "any destination");
                snapshot
                    .clusters()
                    .iter()
                    .map(|_| warning.clone())
                    .collect()
            });
        }
        let discoverer = builder.discoverer();
        let once = discoverer.runner().run_once().await;
        let reports = discoverer.health_reports(&once.report.expect("an answer"));
        let information = &reports[0].information;
        assert_eq!(information.health_state, expected);
        let text = &information.description;
        assert!(text.starts_with("The service is served."), "{text}");
        let label = "/YARP.Backend.SessionAffinity.Enabled: any destination";
        assert_eq!(text.contains(label), unsupported, "{text}");
    }
}

#[tokio::test(start_paused = true)]
async fn reports_that_the_cluster_rejects_are_a_problem_until_it_takes_them() {
    let cluster = cluster(1);
    cluster.fail("report_health", CallErrorKind::Denied);
    let options = ServiceFabricOptions::default().with_discovery_period(Duration::from_secs(5));
    let (_discoverer, provider) = start(&cluster, options);
    let codes = || {
        let problems = provider.state().problems.clone();
        problems
            .into_iter()
            .map(|p| p.code.to_string())
            .collect::<Vec<_>>()
    };
    seconds(1).await;
    assert_eq!(codes(), [""; 0], "it is reported after the first cycle");
    seconds(6).await;
    assert_eq!(codes(), ["health_reports_refused"]);
    let problems = provider.state().problems.clone();
    let text = problems.to_string();
    assert!(
        text.contains("the test says so") && text.contains("ReportServicesHealth"),
        "{text}"
    );
    cluster.heal();
    // It is left alone for five minutes.
    seconds(310).await;
    assert_eq!(codes(), [""; 0]);
}

#[tokio::test(start_paused = true)]
async fn descriptions_name_all_problems_as_far_as_they_fit() {
    let cluster = cluster(1);
    let labels: Vec<_> = (0..300)
        .map(|i| (format!("YARP.Routes.r{i}.Order"), format!("ünü{i}")))
        .collect();
    cluster.edit(|contents| {
        let labels = labels.iter().map(|(k, v)| (k.as_str(), v.as_str()));
        contents.service_type("T", "1", "Bad", labels.chain([("YARP.Enable", "true")]));
        contents.stateless("fabric:/A/Bad", "Bad", [("bad", vec![(1, "https://a:1")])]);
    });
    let discoverer = ServiceFabric::new(cluster).discoverer();
    let once = discoverer.runner().run_once().await;
    let reports = discoverer.health_reports(&once.report.expect("an answer"));
    let text = &reports[0].information.description;
    assert!(text.len() <= 4096 && text.len() > 4080, "{}", text.len());
    assert!(text.ends_with(" …"));
    assert!(text.contains("r0") && text.contains("r9"), "{text}");
}

#[tokio::test(start_paused = true)]
async fn asking_once_reports_nothing() {
    let cluster = cluster(1);
    let discoverer = ServiceFabric::new(cluster.clone()).discoverer();
    assert_eq!(discoverer.name(), "servicefabric");
    let once = discoverer.runner().run_once().await;
    assert!(once.report.is_some());
    assert_eq!(cluster.calls("report_health"), 0);
}

#[tokio::test(start_paused = true)]
async fn a_quiet_cycle_renews_a_part_of_the_reports_only() {
    let cluster = cluster(200);
    let options = ServiceFabricOptions::default().with_discovery_period(Duration::from_secs(5));
    let _running = start(&cluster, options);
    seconds(1).await;
    assert_eq!(cluster.take_reports().len(), 200);
    let mut vanishes = HashMap::new();
    let mut total = 0;
    for second in 1..=600 {
        seconds(1).await;
        let now = Duration::from_secs(second);
        let told = cluster.take_reports();
        // All were sent at once in the beginning, which takes a while to even out.
        let most = if second < 150 { 200 } else { 80 };
        assert!(told.len() <= most, "{} after {second} s", told.len());
        total += told.len();
        for (entity, information, _) in told {
            let held = information.time_to_live.unwrap();
            assert_eq!(
                held,
                Duration::from_secs(65),
                "the rule of the longer of both"
            );
            let before = vanishes.insert(entity, now + held);
            assert!(before.is_none_or(|at| now + GATEWAY_BATCH <= at));
        }
    }
    assert_eq!(vanishes.len(), 200, "each is renewed");
    // 120 cycles: a report of each service in each of them would be 24,000.
    assert!((4000..=8_000).contains(&total), "{total}");
}

#[tokio::test(start_paused = true)]
async fn reports_that_are_always_rejected_keep_no_other_from_being_sent() {
    for kind in [CallErrorKind::Rejected, CallErrorKind::TimedOut] {
        let cluster = cluster(60);
        for i in 0..24 {
            cluster.fail(&format!("report_health service A~S{i}"), kind);
        }
        let _running = start(&cluster, ServiceFabricOptions::default());
        seconds(100).await;
        let told = cluster.take_reports();
        let told: HashSet<_> = told.into_iter().map(|(entity, ..)| entity).collect();
        assert_eq!(told.len(), 36, "{kind:?}");
        seconds(1800).await;
        // And they are tried ever more seldom.
        cluster.forget_calls();
        seconds(3600).await;
        let tried = cluster.calls("report_health service A~S0");
        assert!((4..=8).contains(&tried), "{kind:?}: {tried}");
        cluster.heal();
        seconds(700).await;
        let told = cluster.take_reports();
        let told: HashSet<_> = told.into_iter().map(|(entity, ..)| entity).collect();
        assert_eq!(told.len(), 60, "{kind:?}");
    }
}

/// Calls of 3 s, and every service is read in every cycle: cycles take minutes.
#[tokio::test(start_paused = true)]
async fn reports_outlive_cycles_that_are_slow() {
    let cluster = cluster(100);
    cluster.delay(Duration::from_secs(3));
    let options = ServiceFabricOptions::default().with_change_probe(false);
    let _running = start(&cluster, options);
    let (mut vanishes, mut gaps) = (HashMap::new(), 0);
    for second in 0..7200 {
        seconds(1).await;
        let now = Duration::from_secs(second);
        for (entity, information, _) in cluster.take_reports() {
            let held = information.time_to_live.unwrap();
            let before = vanishes.insert(entity, now + held);
            // The first ones were sent when nothing had been measured.
            let late = before.is_some_and(|at| now + GATEWAY_BATCH > at);
            gaps += usize::from(late && second > 1800);
        }
    }
    assert_eq!(vanishes.len(), 100);
    assert_eq!(gaps, 0);
    let now = Duration::from_secs(7200);
    assert!(vanishes.values().all(|at| *at > now), "none has vanished");
}

#[tokio::test(start_paused = true)]
async fn reports_that_are_slow_delay_cycles_by_a_few_seconds_only_and_all_have_their_turn() {
    let cluster = cluster(500);
    let (_discoverer, provider) = start(&cluster, ServiceFabricOptions::default());
    cluster.delay(Duration::from_millis(520));
    seconds(600).await;
    let cycles = provider.subscribe().borrow().status.cycles;
    cluster.forget_calls();
    let mut told = HashSet::new();
    seconds(1200).await;
    for (entity, information, _) in cluster.take_reports() {
        assert!(information.time_to_live.unwrap() >= Duration::from_secs(90));
        told.insert(entity);
    }
    let cycles = provider.subscribe().borrow().status.cycles - cycles;
    // 33 s at most between cycles, 10 s of reports, and what a cycle itself reads.
    assert!(cycles >= 20, "{cycles}");
    assert_eq!(told.len(), 500);
}

#[tokio::test(start_paused = true)]
async fn what_was_not_sent_in_time_goes_first_the_next_time() {
    let cluster = cluster(30);
    let options = ServiceFabricOptions::default()
        .with_discovery_period(Duration::from_secs(5))
        .with_max_concurrent_calls(10);
    let reporter = Reporter::new(Arc::new(cluster.clone()), &options);
    let discoverer = ServiceFabric::new(cluster.clone()).discoverer();
    let once = discoverer.runner().run_once().await;
    let reports = discoverer.health_reports(&once.report.expect("an answer"));
    assert_eq!(reports.len(), 30);
    cluster.delay(Duration::from_millis(1900));
    reporter.send(reports.clone()).await;
    let first: HashSet<_> = cluster
        .take_reports()
        .into_iter()
        .map(|told| told.0)
        .collect();
    assert_eq!(first.len(), 20, "two seconds are enough for two in a row");
    let mut news = reports;
    for report in news.iter_mut().filter(|of| first.contains(&of.entity)) {
        report.news += 1;
        report.information.health_state = HealthState::Warning;
    }
    reporter.send(news).await;
    let second = cluster.take_reports();
    assert_eq!(second.len(), 20);
    let waited = second[..10].iter().all(|told| !first.contains(&told.0));
    assert!(waited, "those that waited are before news");
}

/// Another service may list the same replica; and a cluster that lies is no reason for reports to race.
#[tokio::test(start_paused = true)]
async fn no_two_reports_about_one_thing_are_under_way() {
    let cluster = cluster(3);
    let options = ServiceFabricOptions::default().with_discovery_period(Duration::from_secs(5));
    let reporter = Reporter::new(Arc::new(cluster.clone()), &options);
    let discoverer = ServiceFabric::new(cluster.clone()).discoverer();
    let once = discoverer.runner().run_once().await;
    let reports = discoverer.health_reports(&once.report.expect("an answer"));
    let mut twice = reports.clone();
    twice.extend(reports.iter().cloned().map(|mut report| {
        report.news += 1;
        report.information.health_state = HealthState::Warning;
        report
    }));
    reporter.send(twice).await;
    let told = cluster.take_reports();
    assert_eq!(told.len(), 3);
    let well = told
        .iter()
        .all(|(_, said, _)| said.health_state == HealthState::Ok);
    assert!(well, "the first one counts");
}

#[tokio::test(start_paused = true)]
async fn replicas_of_which_nobody_knows_whether_they_keep_state_are_not_reported() {
    let cluster = cluster(2);
    let options = ServiceFabricOptions::default().with_report_replicas_health(true);
    let discoverer = ServiceFabric::new(cluster)
        .options(options.clone())
        .discoverer();
    let once = discoverer.runner().run_once().await;
    let report = once.report.expect("an answer");
    assert_eq!(discoverer.health_reports(&report).len(), 4);
    let service = &report.services[0];
    let mut parsed = ParsedService::default();
    for kind in [ServiceKind::Stateful, ServiceKind::Invalid] {
        parsed.replicas.push(crate::labels::ReplicaOutcome {
            partition_id: "p".to_owned(),
            replica_id: 1,
            kind,
            result: Ok(Vec::new()),
        });
    }
    let subject = Subject {
        parsed: Some(Arc::new(parsed)),
        ..Subject::default()
    };
    let subjects = Subjects::from([(Arc::clone(&service.name), subject)]);
    let made = reports_of(&report, &subjects, &options);
    let replicas = made
        .iter()
        .filter(|report| matches!(report.entity, HealthEntity::Replica { .. }));
    assert_eq!(replicas.count(), 1);
}

/// Prose about calls names gateways and times, which change although nothing has happened.
#[tokio::test(start_paused = true)]
async fn other_words_for_the_same_failure_are_no_news() {
    let cluster = cluster(1);
    let options = ServiceFabricOptions::default();
    let discoverer = ServiceFabric::new(cluster).discoverer();
    let once = discoverer.runner().run_once().await;
    let report = once.report.expect("an answer");
    let name = Arc::clone(&report.services[0].name);
    let news = |subject: Subject, report: &discovery_core::CycleReport| {
        let subjects = Subjects::from([(Arc::clone(&name), subject)]);
        let made = reports_of(report, &subjects, &options);
        assert_eq!(made[0].information.health_state, HealthState::Warning);
        made[0].news
    };
    let stale = |error: &str| {
        let error = crate::calls::CallError::new(CallErrorKind::TimedOut, "GET /x", error);
        Subject {
            stale: Some(StaleAnswer::new(tokio::time::Instant::now(), &error)),
            ..Subject::default()
        }
    };
    let (one, other) = (
        news(stale("http://a: no answer within 4.9s"), &report),
        news(stale("http://b: no answer within 5.0s"), &report),
    );
    assert_eq!(one, other);

    let unread = |message: &str| {
        let mut report = (*report).clone();
        let service = &mut report.services[0];
        service.outcome = discovery_core::ServiceOutcome::Quarantined {
            last_known_good_age: Some(Duration::from_secs(5)),
            destinations_age: Some(Duration::from_secs(5)),
        };
        service.problems = Problem::error("", "not_read", message).into();
        report
    };
    let subject = || Subject {
        is_unread: true,
        ..Subject::default()
    };
    let one = news(subject(), &unread("http://a: no answer within 4.9s"));
    let other = news(subject(), &unread("http://b: no answer within 5.0s"));
    assert_eq!(one, other);
    // A mistake of the service itself counts as a change.
    let one = news(Subject::default(), &unread("`a` is no number"));
    let other = news(Subject::default(), &unread("`b` is no number"));
    assert_ne!(one, other);
}

#[tokio::test(start_paused = true)]
async fn reports_come_from_the_source_that_options_name() {
    for (name, expected) in [("Blue", "Blue"), ("", "YARP"), ("system.Me", "YARP")] {
        let options = ServiceFabricOptions::default().with_health_report_source(name.to_owned());
        let cluster = cluster(1);
        let _running = start(&cluster, options);
        seconds(1).await;
        let told = cluster.take_reports();
        assert_eq!(told[0].1.source_id, expected);
    }
}

proptest! {
    #[test]
    fn reports_hold_three_cycles_and_two_batches(millis in 0..1_000_000_u64) {
        let period = Duration::from_millis(millis);
        let held = time_to_live(period);
        prop_assert!(held >= period * 3 && held >= period + GATEWAY_BATCH * 2);
        prop_assert!(held == period * 3 || held == period + GATEWAY_BATCH * 2);
    }
}
