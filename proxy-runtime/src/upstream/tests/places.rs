//! Tests of the order in which requests get a limited connection.

use std::mem;
use std::pin::pin;
use std::sync::Arc;

use futures_util::FutureExt;
use proxy_model::Snapshot;
use proxy_model::compiled::ClusterIndex;
use testkit::raw::RawOrigin;
use testkit::time::guarded;
use tokio::time::Instant;

use super::super::{ConnectionRequest, Protocols};
use crate::fixtures::snapshot;
use crate::state::Generation;
use crate::{Proxy, ProxyService};

/// A proxy for one destination, to which there may be one connection.
struct Narrow {
    proxy: Proxy,
    service: ProxyService,
    generation: Arc<Generation>,
    origin: RawOrigin,
}

impl Narrow {
    fn start() -> Self {
        let origin = RawOrigin::script(|mut connection| async move { connection.hold().await });
        let snapshot = for_limit(1, &origin);
        let (proxy, _) = Proxy::builder().snapshot(snapshot).build().unwrap();
        let service = proxy.service();
        let generation = service.shared().load_full();
        Self {
            proxy,
            service,
            generation,
            origin,
        }
    }

    /// Goes on with another limit. Returns what requests that are under way still have.
    fn reload(&mut self, limit: u32) -> Arc<Generation> {
        self.proxy.publish(for_limit(limit, &self.origin)).unwrap();
        mem::replace(&mut self.generation, self.service.shared().load_full())
    }

    /// Connections that were opened so far.
    fn connects(&self) -> u64 {
        self.wanted(false).destination.metrics().connects.get()
    }

    fn wanted(&self, fresh: bool) -> ConnectionRequest<'_> {
        wanted_of(&self.generation, fresh)
    }
}

fn for_limit(limit: u32, origin: &RawOrigin) -> Arc<Snapshot> {
    snapshot(&format!(
        r#"{{"Routes":{{"r":{{"ClusterId":"c","Match":{{"Path":"/{{**rest}}"}}}}}},
            "Clusters":{{"c":{{"HttpClient":{{"MaxConnectionsPerServer":{limit}}},
                "Destinations":{{"d":{{"Address":"{}"}}}}}}}}}}"#,
        origin.url()
    ))
}

fn wanted_of(generation: &Generation, fresh: bool) -> ConnectionRequest<'_> {
    let state = generation.cluster(ClusterIndex(0));
    ConnectionRequest {
        destination: &state.destinations()[0],
        upstream: generation.snapshot().clusters()[0].upstream(),
        client: state.client(),
        protocols: Protocols::Http1,
        announced: None,
        fresh,
        careful: false,
    }
}

#[tokio::test]
async fn a_connection_that_failed_is_replaced_in_its_place() {
    let narrow = Narrow::start();
    let pool = narrow.service.pool();
    let failed = pool.acquire(narrow.wanted(false), None).await.unwrap();
    let mut waiting = pin!(pool.acquire(narrow.wanted(false), None));
    assert!(waiting.as_mut().now_or_never().is_none());
    let replaced = pool.replace(failed, Instant::now(), narrow.wanted(true), None);
    let mut replaced = guarded("the second try", replaced).await.unwrap();
    assert!(!replaced.raw().unwrap().is_reused());
    assert!(
        waiting.as_mut().now_or_never().is_none(),
        "it is not its turn"
    );
    replaced.release(Instant::now());
    let mut granted = guarded("its turn", waiting).await.unwrap();
    assert!(granted.raw().unwrap().is_reused());
    assert_eq!(narrow.connects(), 2);
}

#[tokio::test]
async fn a_second_try_has_the_next_turn_and_a_connection_of_its_own() {
    let narrow = Narrow::start();
    let pool = narrow.service.pool();
    let failed = pool.acquire(narrow.wanted(false), None).await.unwrap();
    let mut waiting = [
        Box::pin(pool.acquire(narrow.wanted(false), None)),
        Box::pin(pool.acquire(narrow.wanted(false), None)),
    ];
    for waiting in &mut waiting {
        assert!(waiting.now_or_never().is_none());
    }
    drop(failed);
    let [first, mut second] = waiting;
    let mut again = pin!(pool.acquire(narrow.wanted(true), None));
    assert!(again.as_mut().now_or_never().is_none());
    let granted = guarded("who waited before", first).await.unwrap();
    granted.release(Instant::now());
    let mut again = guarded("the second try", again).await.unwrap();
    assert!(!again.raw().unwrap().is_reused());
    assert!((&mut second).now_or_never().is_none());
    again.release(Instant::now());
    let mut granted = guarded("its turn", second).await.unwrap();
    assert!(granted.raw().unwrap().is_reused());
    assert_eq!(narrow.connects(), 3);
}

#[tokio::test]
async fn a_request_that_a_reload_has_overtaken_disturbs_no_other() {
    let mut narrow = Narrow::start();
    let pool = narrow.service.pool().clone();
    let before = pool.acquire(narrow.wanted(false), None).await.unwrap();
    let old = narrow.reload(2);
    let now = pool.acquire(narrow.wanted(false), None).await.unwrap();
    now.release(Instant::now());
    // It may have a connection, which is not used after it.
    drop(before);
    let overtaken = pool.acquire(wanted_of(&old, false), None).await.unwrap();
    overtaken.release(Instant::now());
    let mut kept = pool.acquire(narrow.wanted(false), None).await.unwrap();
    assert!(kept.raw().unwrap().is_reused());
    assert_eq!(narrow.connects(), 3);
}
