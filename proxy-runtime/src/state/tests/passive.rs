//! Passive health checks, as YARP's cases have them.

use std::time::Duration;

use http::StatusCode;
use tokio::time::{Instant, advance};

use super::*;
use crate::error::ForwardErrorKind;
use crate::fixtures::{Log, Logged};
use crate::health::{Forwarded, PassiveHealthPolicy, PassivePolicies};
use crate::progress::{End, Stage};

const FAILED: Option<ForwardErrorKind> = Some(ForwardErrorKind::Request);

/// A cluster of two with a passive check that has these settings and metadata.
fn checked(passive: &str, health: &str, metadata: &str) -> Arc<Snapshot> {
    snapshot(&format!(
        r#"{{"Clusters":{{"c":{{"HealthCheck":{{"Passive":{{"Enabled":true{passive}}}{health}}},
            "Metadata":{{{metadata}}},
            "Destinations":{{"a":{{"Address":"http://a/"}},"b":{{"Address":"http://b/"}}}}}}}}}}"#
    ))
}

/// Reports a request to the destination `a`, and returns its health.
fn report(generation: &Generation, error: Option<ForwardErrorKind>) -> Health {
    let state = generation.cluster(ClusterIndex(0));
    let destination = &state.destinations()[0];
    let status = error.is_none().then_some(StatusCode::INTERNAL_SERVER_ERROR);
    let rule = state.passive().unwrap();
    rule.report(destination, error, status, Instant::now());
    destination.health().passive()
}

fn report_times(times: usize, generation: &Generation, error: Option<ForwardErrorKind>) {
    for _ in 0..times {
        report(generation, error);
    }
}

fn limit(limit: &str) -> String {
    format!(r#""TransportFailureRateHealthPolicy.RateLimit":"{limit}""#)
}

#[tokio::test(start_paused = true)]
async fn the_rate_is_that_of_the_window() {
    let few = r#","TransportFailureRateHealthPolicy.MinimalTotalCountThreshold":"1""#;
    // K19
    let generation = first(checked("", "", &(limit("0.61") + few)));
    for error in [None, None, None, FAILED, FAILED, FAILED, FAILED] {
        assert_eq!(report(&generation, error), Healthy);
    }
    advance(Duration::from_secs(6)).await;
    assert_eq!(report(&generation, FAILED), Unhealthy, "5 of 8");
    // K23
    let generation = first(checked("", "", &(limit("0.5") + few)));
    assert_eq!(report(&generation, None), Healthy);
    assert_eq!(report(&generation, None), Healthy);
    assert_eq!(report(&generation, FAILED), Healthy);
    assert_eq!(
        report(&generation, FAILED),
        Unhealthy,
        "the limit is part of it"
    );
    // K24
    let generation = first(checked("", "", ""));
    for _ in 0..9 {
        assert_eq!(report(&generation, FAILED), Healthy);
    }
    assert_eq!(report(&generation, FAILED), Unhealthy);
    // Successes can be what makes enough of it.
    let generation = first(checked("", "", ""));
    for _ in 0..3 {
        report(&generation, FAILED);
    }
    for _ in 0..6 {
        assert_eq!(report(&generation, None), Healthy);
    }
    assert_eq!(report(&generation, None), Unhealthy, "3 of 10");
}

#[tokio::test(start_paused = true)]
async fn clients_and_statuses_are_no_failures() {
    let generation = first(checked("", "", ""));
    // K26, K27
    for kind in [
        ForwardErrorKind::RequestCanceled,
        ForwardErrorKind::RequestBodyClient,
        ForwardErrorKind::RequestBodyCanceled,
        ForwardErrorKind::ResponseBodyCanceled,
        ForwardErrorKind::ResponseBodyClient,
        ForwardErrorKind::UpgradeRequestClient,
        ForwardErrorKind::NoAvailableDestinations,
        ForwardErrorKind::Extension,
    ] {
        for _ in 0..10 {
            assert_eq!(report(&generation, Some(kind)), Healthy, "{kind:?}");
            assert_eq!(report(&generation, None), Healthy);
        }
    }
    for kind in [
        ForwardErrorKind::Request,
        ForwardErrorKind::RequestTimedOut,
        ForwardErrorKind::RequestBodyDestination,
        ForwardErrorKind::ResponseBodyDestination,
        ForwardErrorKind::UpgradeRequestDestination,
        ForwardErrorKind::UpgradeResponseDestination,
    ] {
        let generation = first(checked("", "", ""));
        report_times(9, &generation, Some(kind));
        assert_eq!(report(&generation, Some(kind)), Unhealthy, "{kind:?}");
    }
}

/// Makes the destination `a` unhealthy.
fn fail(generation: &Generation) {
    report_times(10, generation, FAILED);
    assert_eq!(available(generation), ["b"]);
}

#[tokio::test(start_paused = true)]
async fn a_destination_comes_back_after_its_time_out() {
    for (settings, window, seconds) in [
        ("", "", 60),
        (r#","ReactivationPeriod":"00:02:00""#, "", 120),
        // K21: at least the window.
        (r#","ReactivationPeriod":"00:00:10""#, "00:00:30", 30),
    ] {
        let window = match window {
            "" => String::new(),
            window => {
                format!(r#""TransportFailureRateHealthPolicy.DetectionWindowSize":"{window}""#)
            }
        };
        let generation = first(checked(settings, "", &window));
        fail(&generation);
        advance(Duration::from_secs(seconds - 1)).await;
        if seconds <= 60 {
            // K28: once, however often it fails meanwhile.
            assert_eq!(report(&generation, FAILED), Unhealthy);
        }
        assert_eq!(available(&generation), ["b"]);
        advance(Duration::from_secs(1)).await;
        assert_eq!(available(&generation), ["a", "b"], "{settings}");
        assert_eq!(destination(&generation, 0).health().passive(), Unknown);
    }
}

#[tokio::test(start_paused = true)]
async fn both_checks_count_while_they_are_enabled() {
    let active = r#","Active":{"Enabled":true}"#;
    let strict = r#","AvailableDestinationsPolicy":"HealthyAndUnknown""#;
    let generation = first(checked("", &format!("{active}{strict}"), ""));
    fail(&generation);
    // K30
    set_health(&generation, &[Healthy, Unhealthy]);
    assert_eq!(available(&generation), [""; 0]);
    // K32, and the health is kept meanwhile.
    let off = r#"{"Clusters":{"c":{"HealthCheck":{"Active":{"Enabled":true}},"Destinations":{
        "a":{"Address":"http://a/"},"b":{"Address":"http://b/"}}}}}"#;
    let off = next(&generation, snapshot(off));
    assert_eq!(available(&off), ["a"]);
    let on = next(&off, checked("", "", ""));
    assert_eq!(available(&on), ["b"]);
    // All are unhealthy.
    destination(&on, 1).health().assign(Unhealthy);
    on.cluster(ClusterIndex(0)).live().health_changed();
    assert_eq!(available(&on), ["a", "b"]);
    // A request in the panic tells that it is well again.
    advance(Duration::from_secs(59)).await;
    report_times(40, &on, None);
    assert_eq!(available(&on), ["a"]);
}

/// The word of the program counts whichever checks are on.
#[test]
fn the_program_may_say_that_a_destination_is_unhealthy() {
    let generation = first(snapshot(ONE));
    let say = |health| {
        assert!(destination(&generation, 0).health().assign(health));
        generation.cluster(ClusterIndex(0)).live().health_changed();
    };
    say(Unhealthy);
    assert_eq!(available(&generation), ["d2"]);
    say(Healthy);
    assert_eq!(available(&generation), ["D1", "d2"]);
}

struct FirstError;

impl PassiveHealthPolicy for FirstError {
    fn evaluate(&self, request: &Forwarded<'_>) -> Health {
        assert_ne!(request.requests, 3, "as the test wants");
        match request.error {
            Some(_) => Unhealthy,
            None => request.health,
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_policy_of_the_program_judges_alone() {
    let mut policies = PassivePolicies::default();
    policies.register("FirstError".into(), Arc::new(FirstError));
    let options =
        proxy_model::CompileOptions::default().with_passive_health_policies(["FirstError"]);
    let config = crate::fixtures::config(
        r#"{"Clusters":{"c":{"HealthCheck":{"Passive":{"Enabled":true,"Policy":"firsterror",
            "ReactivationPeriod":"00:00:05"}},
            "Destinations":{"a":{"Address":"http://a/"},"b":{"Address":"http://b/"}}}}}"#,
    );
    let (snapshot, _) = Snapshot::compile(config, &options).unwrap();
    let registered = Registered {
        passive_policies: policies,
        ..Registered::default()
    };
    let snapshot = Arc::new(snapshot);
    let unknown = Generation::first(
        Arc::clone(&snapshot),
        &Registered::default(),
        &context(None),
    );
    assert!(unknown.is_err());
    let generation = Generation::first(snapshot, &registered, &context(None)).unwrap();
    assert_eq!(report(&generation, None), Unknown);
    assert_eq!(report(&generation, FAILED), Unhealthy);
    assert_eq!(
        report(&generation, None),
        Unhealthy,
        "a panic changes nothing"
    );
    advance(Duration::from_secs(5)).await;
    assert_eq!(available(&generation), ["a", "b"]);
}

/// Reports `times` requests to the first destination of the cluster at a position.
fn report_to(
    generation: &Generation,
    position: u32,
    times: usize,
    error: Option<ForwardErrorKind>,
) {
    let state = generation.cluster(ClusterIndex(position));
    for _ in 0..times {
        let rule = state.passive().unwrap();
        rule.report(&state.destinations()[0], error, None, Instant::now());
    }
}

/// Level and destination of each line.
fn lines(log: &Log) -> Vec<(tracing::Level, String)> {
    let events = log.take(crate::observe::targets::HEALTH).into_iter();
    let field = |fields: &str, name: &str| {
        let mut fields = fields.split(' ');
        let found = fields.find_map(|field| field.strip_prefix(name)).unwrap();
        found.to_owned()
    };
    let line = |event: Logged| {
        let cluster = field(&event.fields, "cluster=");
        let destination = field(&event.fields, "destination=");
        (event.level, format!("{cluster}/{destination}"))
    };
    events.map(line).collect()
}

#[tokio::test(start_paused = true)]
async fn each_cluster_has_its_own_lines_and_a_recovery_has_one() {
    let quick = r#"{"HealthCheck":{"Passive":{"Enabled":true,"ReactivationPeriod":"00:00:01"}},"Metadata":{
        "TransportFailureRateHealthPolicy.DetectionWindowSize":"00:00:01"},
        "Destinations":{"a":{"Address":"http://a/"},"b":{"Address":"http://b/"}}}"#;
    let both = || {
        snapshot(&format!(
            r#"{{"Clusters":{{"noisy":{quick},"other":{quick}}}}}"#
        ))
    };
    let (log, _guard) = Log::start();
    let generation = first(both());
    let (warn, info) = (tracing::Level::WARN, tracing::Level::INFO);
    let said = |level: tracing::Level, place: &str| (level, place.to_owned());
    report_to(&generation, 0, 10, FAILED);
    report_to(&generation, 1, 10, FAILED);
    assert_eq!(lines(&log), [said(warn, "noisy/a"), said(warn, "other/a")]);
    // Round and round, within the pause of the log, also over a reload.
    let generation = next(&generation, both());
    for round in 0..5 {
        advance(Duration::from_secs(3)).await;
        report_to(&generation, 0, 10, None);
        let recovered = lines(&log);
        match round {
            0 => assert_eq!(recovered, [said(info, "noisy/a")]),
            _ => assert_eq!(recovered, [], "its failure was not logged"),
        }
        advance(Duration::from_secs(3)).await;
        report_to(&generation, 0, 10, FAILED);
        assert_eq!(lines(&log), [], "one line in a while");
    }
    report_to(&generation, 1, 10, None);
    assert_eq!(lines(&log), [said(info, "other/a")]);
}

/// A time out ends while the destination is unhealthy by another check, or while no passive check is enabled.
#[tokio::test(start_paused = true)]
async fn a_time_out_ends_whatever_else_keeps_a_destination_out() {
    let active = r#","Active":{"Enabled":true}"#;
    let generation = first(checked("", active, ""));
    fail(&generation);
    set_health(&generation, &[Unhealthy, Healthy]);
    advance(Duration::from_secs(60)).await;
    assert_eq!(available(&generation), ["b"], "its probes fail");
    set_health(&generation, &[Healthy, Healthy]);
    assert_eq!(
        available(&generation),
        ["a", "b"],
        "and the time out is over"
    );

    fail(&generation);
    let without = r#"{"Clusters":{"c":{"Destinations":{"a":{"Address":"http://a/"},"b":{"Address":"http://b/"}}}}}"#;
    let off = next(&generation, snapshot(without));
    assert_eq!(available(&off), ["a", "b"]);
    advance(Duration::from_secs(30)).await;
    let on = next(&off, checked("", active, ""));
    assert_eq!(available(&on), ["b"], "half of the time out is left");
    let off = next(&on, snapshot(without));
    advance(Duration::from_secs(30)).await;
    assert_eq!(available(&next(&off, checked("", active, ""))), ["a", "b"]);
}

/// A reload keeps the time out that has begun, also with another `ReactivationPeriod`, and that of the destination
/// alone: with another address it is a new one.
#[tokio::test(start_paused = true)]
async fn a_reload_keeps_a_time_out_that_has_begun() {
    let long = || checked(r#","ReactivationPeriod":"00:10:00""#, "", "");
    let generation = first(long());
    fail(&generation);
    advance(Duration::from_secs(60)).await;
    let short = next(
        &generation,
        checked(r#","ReactivationPeriod":"00:01:00""#, "", ""),
    );
    assert_eq!(available(&short), ["b"]);
    advance(Duration::from_secs(539)).await;
    assert_eq!(available(&short), ["b"]);
    advance(Duration::from_secs(1)).await;
    assert_eq!(available(&short), ["a", "b"]);
    // The next one is of the new length.
    fail(&short);
    let again = next(&short, long());
    advance(Duration::from_secs(60)).await;
    assert_eq!(available(&again), ["a", "b"]);

    fail(&again);
    let moved = snapshot(
        r#"{"Clusters":{"c":{"HealthCheck":{"Passive":{"Enabled":true}},"Destinations":{
            "a":{"Address":"http://other/"},"b":{"Address":"http://b/"}}}}}"#,
    );
    let moved = next(&again, moved);
    assert_eq!(available(&moved), ["a", "b"]);
    assert_eq!(destination(&moved, 0).health().passive(), Unknown);
}

/// In a panic a request may say that a destination is well, and its time out is over with that.
#[tokio::test(start_paused = true)]
async fn a_recovery_in_a_panic_ends_the_time_out() {
    let generation = first(checked(r#","ReactivationPeriod":"00:10:00""#, "", ""));
    fail(&generation);
    destination(&generation, 1).health().assign(Unhealthy);
    generation.cluster(ClusterIndex(0)).live().health_changed();
    assert_eq!(available(&generation), ["a", "b"], "all are unhealthy");
    advance(Duration::from_secs(62)).await;
    assert_eq!(
        report(&generation, None),
        Healthy,
        "the failures are out of the window"
    );
    assert_eq!(available(&generation), ["a"]);
    // The old time out does not end a new one.
    advance(Duration::from_secs(500)).await;
    report_times(20, &generation, FAILED);
    advance(Duration::from_secs(60)).await;
    assert_eq!(available(&generation), ["a", "b"]);
    assert_eq!(destination(&generation, 0).health().passive(), Unhealthy);
}

/// Clients that withhold their bodies until the `Timeout` cannot eject a destination.
#[tokio::test(start_paused = true)]
async fn clients_that_withhold_their_bodies_eject_no_destination() {
    for (stage, left) in [
        (Stage::Client, &["a", "b"][..]),
        (Stage::Destination, &["b"]),
    ] {
        let generation = first(checked("", "", ""));
        let (timed_out, _) = End::Deadline.verdict(stage, true);
        report_times(20, &generation, Some(timed_out));
        assert_eq!(available(&generation), left, "{stage:?}");
    }
}
