//! The order in which reports are sent.

use super::*;

/// Returns the reports of the next cycle: the entity, and true if it is well.
fn told(cluster: &FakeCluster) -> Vec<(String, bool)> {
    let reports = cluster.take_reports().into_iter();
    let told =
        reports.map(|(entity, said, _)| (entity.to_string(), said.health_state == HealthState::Ok));
    told.collect()
}

/// A service is reported after its replicas, and bad news before good ones, so that no reader of the cluster sees a
/// healthy service whose replica is about to be reported.
#[tokio::test(start_paused = true)]
async fn replicas_are_reported_before_their_service_and_bad_news_first() {
    let cluster = cluster(2);
    cluster.edit(|contents| {
        contents.instances("p0", &[(1, "https://a:1"), (2, "https://b:2")]);
        contents.instances("p1", &[(3, "https://c:3"), (4, "https://+:4")]);
    });
    let mut options = ServiceFabricOptions::default()
        .with_discovery_period(Duration::from_secs(5))
        .with_report_replicas_health(true);
    // One after the other, so that the order of the reports is that of their arrival.
    options.max_concurrent_calls = 1;
    let _running = start(&cluster, options);
    seconds(4).await;
    let expected = [
        ("replica p1/4", false),
        ("replica p0/1", true),
        ("replica p0/2", true),
        ("service A~S0", true),
        ("replica p1/3", true),
        ("service A~S1", true),
    ];
    let expected = expected.map(|(entity, is_well)| (entity.to_owned(), is_well));
    assert_eq!(told(&cluster), expected);

    // A service without any usable replica is bad news itself: its replicas are still before it.
    cluster.edit(|contents| {
        contents.instances("p1", &[(5, "https://+:5"), (6, "https://+:6")]);
    });
    seconds(6).await;
    let told: Vec<_> = told(&cluster).into_iter().take(3).collect();
    let expected = ["replica p1/5", "replica p1/6", "service A~S1"];
    assert_eq!(told, expected.map(|entity| (entity.to_owned(), false)));
}
