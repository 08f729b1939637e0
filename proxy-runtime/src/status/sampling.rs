//! Measures rates.

use crate::state::Generation;

/// Destinations and routes that are sampled before other tasks get their turn.
const BATCH: usize = 1_000;

/// Takes note of what every route and destination did since the last call. To be called once a second.
///
/// Cancel-safe: what was not reached is sampled with the next call.
pub(crate) async fn sample(generation: &Generation) {
    let mut sampled = 0;
    for route in generation.routes() {
        let metrics = route.metrics();
        metrics.traffic().sample(metrics.requests(), || None);
        pause(&mut sampled).await;
    }
    for (_, cluster) in generation.clusters() {
        for destination in cluster.destinations() {
            let metrics = destination.metrics();
            let latency = || metrics.latency();
            destination.traffic().sample(metrics.requests(), latency);
            pause(&mut sampled).await;
        }
    }
}

async fn pause(sampled: &mut usize) {
    *sampled += 1;
    if sampled.is_multiple_of(BATCH) {
        tokio::task::yield_now().await;
    }
}
