//! Destinations whose probe settings change.

use super::*;
use crate::health::Health;

/// The cluster's own path and settings of the check, and each destination with its `HealthPath`, if it has one.
fn with_paths(cluster: &str, destinations: &[(&str, Option<&str>)]) -> Arc<Snapshot> {
    let ids: Vec<_> = destinations.iter().map(|(id, _)| *id).collect();
    let mut json = checked(&format!(r#"{TEN},"Path":"{cluster}""#), &ids);
    for (id, path) in destinations {
        if let Some(path) = path {
            let address = format!(r#""http://{id}.example/""#);
            json = json.replace(&address, &format!(r#"{address},"HealthPath":"{path}""#));
        }
    }
    snapshot(&json)
}

async fn a_moment() {
    sleep(Duration::from_millis(1)).await;
}

#[tokio::test(start_paused = true)]
async fn each_destination_is_asked_for_its_own_path() {
    let script = Script::new();
    script.answer_at("a", "/cluster", Answer::Status(404));
    script.answer_at("b", "/own", Answer::Status(404));
    let paths = [("a", Some("/own")), ("b", Some("/own")), ("c", None)];
    let proxy = start_with(Proxy::builder(), &script, with_paths("/cluster", &paths));
    a_round().await;
    assert_eq!(script.paths("a"), ["/own", "/own"]);
    assert_eq!(script.paths("c"), ["/cluster", "/cluster"]);
    assert_eq!(
        ["a", "b", "c"].map(|id| health(&proxy, id)),
        [Health::Healthy, Health::Unhealthy, Health::Healthy],
        "one path fails, at one of the destinations that have it"
    );
}

#[tokio::test(start_paused = true)]
async fn a_corrected_path_is_asked_at_once_and_nothing_else_is() {
    let script = Script::new();
    script.answer_at("d", "/wrong", Answer::Status(404));
    let before = with_paths("/ok", &[("d", Some("/wrong")), ("e", None)]);
    let proxy = start_with(Proxy::builder(), &script, before);
    a_round().await;
    assert_eq!(health(&proxy, "d"), Health::Unhealthy);

    let after = with_paths("/ok", &[("d", Some("/right")), ("e", None)]);
    proxy.publish(after).unwrap();
    assert_eq!(
        health(&proxy, "d"),
        Health::Unhealthy,
        "the verdict stays until it has answered"
    );
    a_moment().await;
    assert_eq!(health(&proxy, "d"), Health::Healthy);
    assert_eq!(
        status(&proxy, "d").probes,
        3,
        "it is still the same destination"
    );
    assert_eq!(script.paths("d"), ["/wrong", "/wrong", "/right"]);
    assert_eq!(script.count("e"), 2, "the other keeps its rhythm");
    a_round().await;
    assert_eq!((script.count("d"), script.count("e")), (4, 3));
}

#[tokio::test(start_paused = true)]
async fn failures_at_another_path_do_not_count() {
    let script = Script::new();
    let proxy = start_with(
        Proxy::builder(),
        &script,
        with_paths("", &[("d", Some("/first"))]),
    );
    a_moment().await;
    script.answer("d", Answer::Status(500));
    a_round().await;
    assert_eq!(health(&proxy, "d"), Health::Healthy, "one failure");
    let second = with_paths("", &[("d", Some("/second"))]);
    proxy.publish(Arc::clone(&second)).unwrap();
    a_moment().await;
    assert_eq!(
        health(&proxy, "d"),
        Health::Healthy,
        "the first failure at this path, and the second in all"
    );
    // Publishing the same settings changes nothing: the second consecutive failure at the same
    // path.
    proxy.publish(second).unwrap();
    a_round().await;
    assert_eq!(health(&proxy, "d"), Health::Unhealthy);
    assert_eq!(
        script.paths("d"),
        ["/first", "/first", "/second", "/second"]
    );
}

#[tokio::test(start_paused = true)]
async fn what_a_probe_of_the_path_before_finds_is_not_looked_at() {
    let script = Script::new();
    // `/slow` would respond well, but only after the path has changed to `/ill`, which fails.
    script.answer_at("d", "/slow", Answer::After(Duration::from_secs(4)));
    script.answer_at("d", "/ill", Answer::Status(500));
    let slow = with_paths("", &[("d", Some("/slow")), ("e", None)]);
    let proxy = start_with(Proxy::builder(), &script, slow);
    sleep(Duration::from_secs(1)).await;
    let ill = with_paths("", &[("d", Some("/ill")), ("e", None)]);
    proxy.publish(ill).unwrap();
    a_moment().await;
    assert_eq!(script.under_way(), 0, "it was given up");
    assert_eq!(health(&proxy, "e"), Health::Healthy, "so its round is over");
    sleep(Duration::from_secs(5)).await;
    let status = status(&proxy, "d");
    assert_eq!((status.health, status.probes), (Health::Unknown, 1));
    a_round().await;
    assert_eq!(health(&proxy, "d"), Health::Unhealthy);
}

#[tokio::test(start_paused = true)]
async fn another_path_of_the_cluster_is_asked_where_there_is_no_own() {
    let script = Script::new();
    let destinations = [("a", None), ("b", Some("/own"))];
    let proxy = start_with(
        Proxy::builder(),
        &script,
        with_paths("/first", &destinations),
    );
    a_moment().await;
    proxy.publish(with_paths("/second", &destinations)).unwrap();
    a_moment().await;
    assert_eq!(script.paths("a"), ["/first", "/second"]);
    assert_eq!(script.paths("b"), ["/own"]);
    // Writing a value that is already the default changes nothing.
    let written = [("a", Some("/second")), ("b", Some("/own"))];
    proxy.publish(with_paths("/second", &written)).unwrap();
    a_moment().await;
    assert_eq!((script.count("a"), script.count("b")), (2, 1));
}

#[tokio::test(start_paused = true)]
async fn another_health_address_is_asked_at_once() {
    let script = Script::new();
    let at = |port: u16| {
        snapshot(&checked(TEN, &["d"]).replace(
            r#""http://d.example/""#,
            &format!(r#""http://d.example/","Health":"http://d.example:{port}/""#),
        ))
    };
    let proxy = start_with(Proxy::builder(), &script, at(1));
    a_moment().await;
    proxy.publish(at(2)).unwrap();
    a_moment().await;
    assert_eq!(script.count("d"), 2);
    assert_eq!(
        status(&proxy, "d").probes,
        2,
        "it is still the same destination"
    );
}

#[tokio::test(start_paused = true)]
async fn paths_that_change_all_the_time_leave_no_probes_behind() {
    let script = Script::new();
    script.answer("d", Answer::Never);
    let path = |i: usize| with_paths("", &[("d", Some(&*format!("/{i}"))), ("e", None)]);
    let proxy = start_with(Proxy::builder(), &script, path(0));
    for i in 1..50 {
        a_moment().await;
        proxy.publish(path(i)).unwrap();
    }
    a_moment().await;
    assert_eq!(script.count("d"), 50);
    assert_eq!(script.under_way(), 1);
    script.answer("d", Answer::Status(200));
    a_round().await;
    a_round().await;
    assert_eq!(health(&proxy, "d"), Health::Healthy);
    assert_eq!(script.paths("d").last().unwrap(), "/49");
}
