//! Properties that hold under any failures and any order of responses.

use std::time::Duration;

use proptest::prelude::*;

use super::*;
use crate::calls::CallErrorKind;

/// Every call that a cycle of [`cluster`] makes.
const CALLS: [&str; 15] = [
    "application_types",
    "applications",
    "service_types T 1",
    "services A",
    "services B",
    "replica_ids",
    "partitions A~S1",
    "partitions A~S2",
    "partitions B~S1",
    "partitions B~S2",
    "replicas a1",
    "replicas a2",
    "replicas b1",
    "replicas b2",
    "properties",
];

const KINDS: [CallErrorKind; 7] = [
    CallErrorKind::Unreachable,
    CallErrorKind::TimedOut,
    CallErrorKind::Busy,
    CallErrorKind::Denied,
    CallErrorKind::Rejected,
    CallErrorKind::Failed,
    CallErrorKind::Malformed,
];

/// Returns true if the result keeps each existing service in the configuration: the service is listed, or
/// reported as unreadable.
fn loses_nothing(cluster: &FakeCluster, answer: &Result<Discovery, discovery_core::DiscoverError>) {
    let Ok(discovery) = answer else { return };
    let found = addresses(discovery);
    cluster.edit(|contents| {
        for services in contents.services.values() {
            for service in services {
                let application = &service.name[..service.name.rfind('/').unwrap()];
                let excused = discovery
                    .failed_groups
                    .iter()
                    .any(|failed| &*failed.group == application);
                let whole = match found.get(&service.name) {
                    Some(addresses) => addresses.as_ref().is_none_or(|list| list.len() == 1),
                    None => excused,
                };
                assert!(whole, "{} in {discovery:?}", service.name);
            }
        }
    });
}

fn block_on<T>(future: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .start_paused(true)
        .build()
        .expect("a runtime")
        .block_on(future)
}

#[tokio::test(start_paused = true)]
async fn no_single_failing_call_loses_a_service() {
    for call in CALLS {
        for kind in KINDS {
            for cache in [Duration::ZERO, Duration::from_secs(1800)] {
                for warm in [false, true] {
                    let cluster = cluster();
                    let options = ServiceFabricOptions::default().with_cache_duration(cache);
                    let discoverer = with_options(&cluster, options);
                    if warm {
                        cycle(&discoverer).await;
                        // Everything is due.
                        tokio::time::advance(Duration::from_secs(400)).await;
                    }
                    cluster.fail(call, kind);
                    for _ in 0..3 {
                        loses_nothing(&cluster, &discoverer.discover().await);
                        tokio::time::advance(Duration::from_secs(31)).await;
                    }
                    cluster.heal();
                    tokio::time::advance(Duration::from_secs(31)).await;
                    let healed = cycle(&discoverer).await;
                    assert_eq!(healed.services.len(), 4, "{call} {kind:?}");
                    assert!(addresses(&healed).values().all(Option::is_some));
                }
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(128))]

    #[test]
    fn the_answer_does_not_depend_on_the_order_of_lists(seed in any::<u64>(), replicas in 1..6_i64) {
        let built = || {
            let cluster = cluster();
            cluster.edit(|contents| {
                let addresses: Vec<_> = (0..replicas).map(|i| format!("https://r{i}:1")).collect();
                let list: Vec<_> = (0..).zip(&addresses).map(|(i, address)| (i, address.as_str())).collect();
                contents.stateful("fabric:/B/Db", "S", [("d1", list.clone()), ("d2", list)]);
            });
            cluster
        };
        let (ordered, shuffled) = (built(), built());
        shuffled.shuffle(seed);
        let answers = block_on(async {
            let (one, other) = (discoverer(&ordered), discoverer(&shuffled));
            let first = (cycle(&one).await, cycle(&other).await);
            shuffled.shuffle(seed.wrapping_add(1));
            (first, next(&other).await)
        });
        let ((ordered, shuffled), again) = answers;
        prop_assert_eq!(&ordered, &shuffled);
        prop_assert_eq!(ordered, again);
    }

    /// No sequence of failures and recoveries makes a result lose a service. Without failures, all
    /// services are listed.
    #[test]
    fn no_sequence_of_failures_loses_a_service(
        steps in proptest::collection::vec(
            (proptest::sample::select(&CALLS[..]), proptest::sample::select(&KINDS[..]), 1..60_u64, any::<bool>()),
            1..12,
        )
    ) {
        block_on(async {
            let cluster = cluster();
            let options = ServiceFabricOptions::default().with_cache_duration(Duration::from_secs(90));
            let full_refresh = options.full_refresh_period;
            let discoverer = with_options(&cluster, options);
            cycle(&discoverer).await;
            for (call, kind, seconds, heals) in steps {
                if heals {
                    cluster.heal();
                }
                cluster.fail(call, kind);
                tokio::time::advance(Duration::from_secs(seconds)).await;
                loses_nothing(&cluster, &discoverer.discover().await);
            }
            cluster.heal();
            // What was slow many times in a row is left alone for as long as this.
            tokio::time::advance(full_refresh).await;
            next(&discoverer).await;
            let healed = next(&discoverer).await;
            assert_eq!(healed.services.len(), 4);
            assert!(addresses(&healed).values().all(|found| found.as_ref().is_some_and(|list| list.len() == 1)));
            assert!(healed.problems.is_empty(), "{}", healed.problems);
        });
    }
}
