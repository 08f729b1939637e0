//! Measures rates.

use super::Traffic;
use crate::observe::BUSY;
use crate::state::Generation;

/// Destinations and routes that are sampled before other tasks get their turn.
const BATCH: usize = 1_000;

/// Takes note of what every route and destination did since the last call, and has workers count apart where there is much to
/// count. To be called once a second.
///
/// Cancel-safe: what was not reached is sampled with the next call.
pub(crate) async fn sample(generation: &Generation) {
    let mut sampled = 0;
    for route in generation.routes() {
        let metrics = route.metrics();
        metrics.traffic().sample(metrics.requests(), || None);
        if is_busy(metrics.traffic()) {
            metrics.split();
        }
        pause(&mut sampled).await;
    }
    for (_, cluster) in generation.clusters() {
        for destination in cluster.destinations() {
            let metrics = destination.metrics();
            let latency = || metrics.latency();
            destination.traffic().sample(metrics.requests(), latency);
            if is_busy(destination.traffic()) {
                metrics.split();
                cluster.live().metrics().requests.split();
            }
            pause(&mut sampled).await;
        }
    }
}

/// Whether cores meet at its counters so often that each should have its own.
fn is_busy(traffic: &Traffic) -> bool {
    u64::from(traffic.last_second()) >= BUSY
}

async fn pause(sampled: &mut usize) {
    *sampled += 1;
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
