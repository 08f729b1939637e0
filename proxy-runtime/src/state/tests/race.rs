//! Concurrent picks, reloads and changes of health.

use super::*;

/// Many threads pick while generations and health change.
#[test]
fn picks_race_with_reloads_and_health_and_lose_nothing() {
    let shared = Arc::new(arc_swap::ArcSwap::from_pointee(first(snapshot(
        &TIERS.replace("POLICY", "HealthyOrPanic"),
    ))));
    let configs = [
        snapshot(&TIERS.replace("POLICY", "HealthyOrPanic")),
        snapshot(ONE),
        snapshot(
            &TIERS
                .replace("POLICY", "HealthyAndUnknown")
                .replace("http://h1/", "http://moved/"),
        ),
    ];
    let stop = AtomicBool::new(false);
    let mut seen = vec![shared.load_full()];
    std::thread::scope(|scope| {
        for is_worker in [true, true, false] {
            let (shared, stop) = (&shared, &stop);
            scope.spawn(move || {
                #[cfg(feature = "server")]
                let _place = is_worker.then(crate::observe::WorkerPlace::take);
                #[cfg(not(feature = "server"))]
                let _ = is_worker;
                let mut held = std::collections::VecDeque::new();
                while !stop.load(Ordering::Relaxed) {
                    let generation = shared.load();
                    if let Some(picked) = pick(&generation) {
                        let cluster = generation.cluster(ClusterIndex(0));
                        assert!(cluster.destination(picked.index).in_flight() > 0);
                        held.push_back(picked);
                    }
                    // Requests outlive several generations.
                    if held.len() > 50 {
                        held.pop_front();
                    }
                }
            });
        }
        for round in 0..600 {
            let before = shared.load_full();
            if round % 3 == 0 {
                let after = Arc::new(next(
                    &before,
                    Arc::clone(&configs[round / 3 % configs.len()]),
                ));
                seen.push(Arc::clone(&after));
                shared.store(after);
            } else {
                let health = if round % 2 == 0 { Healthy } else { Unhealthy };
                set_health(&before, &[health, Healthy, health, Healthy]);
            }
            std::thread::yield_now();
        }
        stop.store(true, Ordering::Relaxed);
    });
    for generation in seen {
        for (_, cluster) in generation.clusters() {
            assert!(cluster.destinations().iter().all(|d| d.in_flight() == 0));
        }
    }
}
