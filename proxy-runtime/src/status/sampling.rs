//! Periodic sampling of rates and failures.

use proxy_model::{ClusterId, DestinationId};
use tracing::{info, warn};

use crate::error::Cause;
use crate::observe::Traffic;
use crate::observe::{BUSY, RecentFailures, Turn, targets};
use crate::state::Generation;

/// Number of destinations and routes between two yields to other tasks.
const BATCH: usize = 1_000;
/// Maximum of log lines per call; one line reports the number of the others.
const MOST_LINES: usize = 20;

/// Samples the traffic of every route and destination, logs which destinations begin to fail or
/// work again, and gives workers their own counters at busy ones. To be called once a second.
///
/// Cancel safe: routes and destinations that were not reached are sampled by the next call.
pub(crate) async fn sample(generation: &Generation) {
    let mut sampled = 0;
    let mut turns = 0;
    for route in generation.routes() {
        let metrics = route.metrics();
        metrics.traffic().sample(metrics.requests(), || None);
        if is_busy(metrics.traffic()) {
            metrics.split();
        }
        pause(&mut sampled).await;
    }
    for (configured, cluster) in generation.clusters() {
        let metrics = cluster.live().metrics();
        let answers = || metrics.requests.recorded();
        // Failures before the pick of a destination belong to the cluster.
        report(
            &metrics.failures,
            answers,
            &mut turns,
            &Whose {
                cluster: configured.id(),
                destination: None,
            },
        );
        for destination in cluster.destinations() {
            let metrics = destination.metrics();
            let answers = || metrics.responses().iter().sum();
            report(
                &metrics.failures,
                answers,
                &mut turns,
                &Whose {
                    cluster: configured.id(),
                    destination: Some(destination.id()),
                },
            );
            let latency = || metrics.latency();
            destination.traffic().sample(metrics.requests(), latency);
            if is_busy(destination.traffic()) {
                metrics.split();
                // The cluster is at least as busy as its destination.
                cluster.live().metrics().requests.split();
            }
            pause(&mut sampled).await;
        }
    }
    if turns > MOST_LINES {
        let left_out = turns - MOST_LINES;
        warn!(target: targets::UPSTREAM, left_out, "more destinations fail or work again");
    }
}

/// The cluster, and the destination if the failures belong to one.
struct Whose<'a> {
    cluster: &'a ClusterId,
    destination: Option<&'a DestinationId>,
}

/// Logs a change between failing and working.
fn report(
    failures: &RecentFailures,
    answers: impl Fn() -> u64,
    turns: &mut usize,
    Whose {
        cluster,
        destination,
    }: &Whose<'_>,
) {
    let Some(turn) = failures.look(answers) else {
        return;
    };
    *turns += 1;
    // A failure of many destinations must not flood the log.
    if *turns > MOST_LINES {
        return;
    }
    let cluster = cluster.as_str();
    let destination = destination.map(DestinationId::as_str);
    match turn {
        Turn::Fails => warn!(
            target: targets::UPSTREAM,
            cluster,
            destination,
            cause = failures.cause().map(Cause::as_str),
            detail = failures.detail().as_deref(),
            failed = failures.recent(),
            "requests fail",
        ),
        Turn::Works { after, failed } => info!(
            target: targets::UPSTREAM,
            cluster,
            destination,
            cause = failures.cause().map(Cause::as_str),
            after_s = after.as_secs(),
            failed,
            "requests work again",
        ),
    }
}

/// True if a counter for each worker pays off.
fn is_busy(traffic: &Traffic) -> bool {
    u64::from(traffic.last_second()) >= BUSY
}

async fn pause(sampled: &mut usize) {
    *sampled += 1;
    // Lets other tasks run between two batches.
    if sampled.is_multiple_of(BATCH) {
        tokio::task::yield_now().await;
    }
}

#[cfg(all(test, feature = "server"))]
mod tests {
    use proxy_model::compiled::ClusterIndex;

    use super::*;
    use crate::Proxy;
    use crate::fixtures::snapshot;
    use crate::observe::WorkerPlace;

    #[tokio::test]
    async fn workers_count_apart_what_is_busy() {
        let config = r#"{"Clusters":{"c":{"Destinations":{
            "busy":{"Address":"http://h1/"},"quiet":{"Address":"http://h2/"}}}}}"#;
        let (proxy, _driver) = Proxy::builder().snapshot(snapshot(config)).build().unwrap();
        let generation = proxy.shared().load_full();
        let [busy, quiet] = generation.cluster(ClusterIndex(0)).destinations() else {
            panic!("there are two");
        };
        sample(&generation).await;
        (0..BUSY).for_each(|_| busy.metrics().requested());
        (0..BUSY - 1).for_each(|_| quiet.metrics().requested());
        let _in_flight = [busy.enter(), quiet.enter()];
        sample(&generation).await;
        let seen_elsewhere = std::thread::scope(|scope| {
            let worker = scope.spawn(|| {
                let _place = WorkerPlace::take();
                [busy, quiet].map(|destination| destination.metrics().in_flight_here())
            });
            worker.join().unwrap()
        });
        assert_eq!(seen_elsewhere, [0, 1]);
        assert_eq!([busy.in_flight(), quiet.in_flight()], [1, 1]);
    }
}

#[cfg(test)]
mod reports {
    use std::time::Duration;

    use http::StatusCode;
    use proxy_model::compiled::ClusterIndex;
    use tokio::time::advance;
    use tracing::Level;

    use super::*;
    use crate::Proxy;
    use crate::error::ForwardErrorKind;
    use crate::fixtures::{Log, snapshot};

    #[tokio::test(start_paused = true)]
    async fn a_destination_that_fails_or_works_again_is_one_line() {
        let config = r#"{"Clusters":{"c":{"Destinations":{"d":{"Address":"http://h1/"}}}}}"#;
        let (proxy, _driver) = Proxy::builder().snapshot(snapshot(config)).build().unwrap();
        let generation = proxy.shared().load_full();
        let destination = &generation.cluster(ClusterIndex(0)).destinations()[0];
        let failures = &destination.metrics().failures;
        let (log, _guard) = Log::start();
        for _ in 0..3 {
            failures.connect_failed("refused");
            failures.count(ForwardErrorKind::Request.because(Cause::ConnectionRefused));
            sample(&generation).await;
            advance(Duration::from_secs(1)).await;
        }
        let lines = log.take(targets::UPSTREAM);
        assert_eq!(lines.len(), 1, "{lines:?}");
        assert_eq!(lines[0].level, Level::WARN);
        for told in ["c", "d", "refused", "connection_refused"] {
            assert!(
                lines[0].fields.contains(&format!("={told}"))
                    || lines[0].fields.contains(&format!("=\"{told}\"")),
                "{lines:?}"
            );
        }
        destination
            .metrics()
            .responded(StatusCode::OK, Duration::ZERO);
        advance(Duration::from_secs(10)).await;
        sample(&generation).await;
        sample(&generation).await;
        let lines = log.take(targets::UPSTREAM);
        assert_eq!(lines.len(), 1, "{lines:?}");
        assert_eq!(lines[0].level, Level::INFO);
    }

    #[tokio::test(start_paused = true)]
    async fn many_that_fail_at_once_are_few_lines() {
        let destination = |i| format!(r#""{i}":{{"Address":"http://h{i}/"}}"#);
        let many: Vec<_> = (0..3 * MOST_LINES).map(destination).collect();
        let config = format!(
            r#"{{"Clusters":{{"c":{{"Destinations":{{{}}}}}}}}}"#,
            many.join(",")
        );
        let (proxy, _driver) = Proxy::builder()
            .snapshot(snapshot(&config))
            .build()
            .unwrap();
        let generation = proxy.shared().load_full();
        for destination in generation.cluster(ClusterIndex(0)).destinations() {
            destination
                .metrics()
                .failures
                .count(ForwardErrorKind::Request);
        }
        let (log, _guard) = Log::start();
        sample(&generation).await;
        let lines = log.take(targets::UPSTREAM);
        assert_eq!(lines.len(), MOST_LINES + 1);
        assert!(
            lines[MOST_LINES].fields.contains("left_out=40"),
            "{lines:?}"
        );
    }
}
