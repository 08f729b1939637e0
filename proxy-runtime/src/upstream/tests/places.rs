//! Who gets a connection where there may be but one.

use std::pin::pin;
use std::sync::Arc;

use futures_util::FutureExt;
use proxy_model::compiled::ClusterIndex;
use testkit::raw::RawOrigin;
use testkit::time::guarded;
use tokio::time::Instant;

use super::super::{Protocols, Wanted};
use crate::fixtures::snapshot;
use crate::state::Generation;
use crate::{Proxy, ProxyService};

/// A proxy for one destination, to which there may be one connection.
struct Narrow {
    service: ProxyService,
    generation: Arc<Generation>,
    _origin: RawOrigin,
}

impl Narrow {
    fn start() -> Self {
        let origin = RawOrigin::script(|mut connection| async move { connection.hold().await });
        let snapshot = snapshot(&format!(
            r#"{{"Routes":{{"r":{{"ClusterId":"c","Match":{{"Path":"/{{**rest}}"}}}}}},
                "Clusters":{{"c":{{"HttpClient":{{"MaxConnectionsPerServer":1}},
                    "Destinations":{{"d":{{"Address":"{}"}}}}}}}}}}"#,
            origin.url()
        ));
        let (proxy, _) = Proxy::builder().snapshot(snapshot).build().unwrap();
        let service = proxy.service();
        let generation = service.shared().load_full();
        Self {
            service,
            generation,
            _origin: origin,
        }
    }

    /// Connections that were opened so far.
    fn connects(&self) -> u64 {
        self.wanted(false).destination.metrics().connects.get()
    }

    fn wanted(&self, fresh: bool) -> Wanted<'_> {
        let state = self.generation.cluster(ClusterIndex(0));
        Wanted {
            destination: &state.destinations()[0],
            upstream: self.generation.snapshot().clusters()[0].upstream(),
            client: state.client(),
            protocols: Protocols::Http1,
            fresh,
        }
    }
}

#[tokio::test]
async fn a_connection_that_failed_is_replaced_in_its_place() {
    let narrow = Narrow::start();
    let pool = narrow.service.pool();
    let failed = pool.acquire(narrow.wanted(false)).await.unwrap();
    let mut waiting = pin!(pool.acquire(narrow.wanted(false)));
    assert!(waiting.as_mut().now_or_never().is_none());
    let replaced = pool.replace(failed, Instant::now(), narrow.wanted(true));
    let mut replaced = guarded("the second try", replaced).await.unwrap();
    assert!(!replaced.raw().unwrap().is_reused());
    assert!(
        waiting.as_mut().now_or_never().is_none(),
        "it is not its turn"
    );
    replaced.give_back(Instant::now());
    let mut granted = guarded("its turn", waiting).await.unwrap();
    assert!(granted.raw().unwrap().is_reused());
    assert_eq!(narrow.connects(), 2);
}

#[tokio::test]
async fn a_second_try_has_the_next_turn_and_a_connection_of_its_own() {
    let narrow = Narrow::start();
    let pool = narrow.service.pool();
    let failed = pool.acquire(narrow.wanted(false)).await.unwrap();
    let mut waiting = [
        Box::pin(pool.acquire(narrow.wanted(false))),
        Box::pin(pool.acquire(narrow.wanted(false))),
    ];
    for waiting in &mut waiting {
        assert!(waiting.now_or_never().is_none());
    }
    drop(failed);
    let [first, mut second] = waiting;
    let mut again = pin!(pool.acquire(narrow.wanted(true)));
    assert!(again.as_mut().now_or_never().is_none());
    let granted = guarded("who waited before", first).await.unwrap();
    granted.give_back(Instant::now());
    let mut again = guarded("the second try", again).await.unwrap();
    assert!(!again.raw().unwrap().is_reused());
    assert!((&mut second).now_or_never().is_none());
    again.give_back(Instant::now());
    let mut granted = guarded("its turn", second).await.unwrap();
    assert!(granted.raw().unwrap().is_reused());
    assert_eq!(narrow.connects(), 3);
}
