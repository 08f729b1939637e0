//! Load balancing policies of the program.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

use proxy_runtime::Proxy;
use proxy_runtime::balance::{Candidates, LoadBalancer};
use proxy_runtime::filter::{Filter, FilterContext, Flow, RequestEdit};
use proxy_runtime::proxy_model::config::ProxyConfig;
use proxy_runtime::proxy_model::{RequestHead, Snapshot};
use serde_json::json;
use testkit::raw::{RawClient, RawOrigin};
use testkit::time::{eventually, guarded};

use crate::ways::{OK, as_bytes, over_types};

/// Does what the path says.
struct Panics;

impl LoadBalancer for Panics {
    fn pick(&self, _: &Candidates<'_>, head: &dyn RequestHead) -> Option<usize> {
        assert_ne!(head.path(), "/panic", "as the path says");
        Some(0)
    }
}

/// Counts the requests that it sees.
#[derive(Clone, Default)]
struct Count(Arc<AtomicUsize>);

impl Filter for Count {
    fn on_request(&self, _: &mut RequestEdit<'_>, _: &FilterContext<'_>) -> Flow {
        self.0.fetch_add(1, Relaxed);
        Flow::Continue
    }
}

#[tokio::test]
async fn a_panic_is_one_requests_500() {
    for serve in [as_bytes, over_types] {
        let origin = RawOrigin::answering(OK);
        let config = json!({
            "Routes": { "r": { "ClusterId": "c", "Match": { "Path": "/{**rest}" }, "Filters": ["count"] } },
            "Clusters": { "c": { "LoadBalancingPolicy": "panics", "Destinations": {
                "d1": { "Address": origin.url() }, "d2": { "Address": origin.url() },
            } } },
        });
        let count = Count::default();
        let builder = Proxy::builder()
            .balancer("panics", Arc::new(Panics))
            .filter("count", count.clone());
        let config = ProxyConfig::from_json(&config.to_string()).unwrap();
        let (snapshot, _) = Snapshot::compile(config, &builder.compile_options()).unwrap();
        let (proxy, driver) = builder.snapshot(Arc::new(snapshot)).build().unwrap();
        tokio::spawn(driver);
        let server = serve(&proxy);
        let mut client = RawClient::connect(server.local_addrs()[0]).await.unwrap();
        for (path, status) in [("/", 200), ("/panic", 500), ("/", 200), ("/panic", 500)] {
            let request = format!("GET {path} HTTP/1.1\r\nHost: h\r\n\r\n");
            client.write_all(request).await.unwrap();
            let response = guarded(path, client.read_response()).await.unwrap();
            assert_eq!(response.status(), status, "{path}");
        }
        assert_eq!(count.0.load(Relaxed), 4, "each is asked about once");
        eventually("all is counted, and once", || async {
            let cluster = &proxy.clusters()[0];
            let in_flight: u32 = cluster.destinations.iter().map(|d| d.in_flight).sum();
            let errors = cluster.errors.get("Extension").copied();
            let canceled = cluster.errors.get("RequestCanceled").copied();
            in_flight == 0
                && errors == Some(2)
                && canceled.unwrap_or(0) == 0
                && proxy.routes()[0].requests == 4
                && proxy.overview().active_requests == 0
        })
        .await;
    }
}
