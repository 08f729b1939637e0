//! Load balancing policies of the program.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

use proxy_runtime::Proxy;
use proxy_runtime::balance::{Candidates, LoadBalancer};
use proxy_runtime::filter::{Filter, FilterContext, Flow, RequestEdit};
use proxy_runtime::proxy_model::config::ProxyConfig;
use proxy_runtime::proxy_model::{RequestHead, Snapshot};
use proxy_runtime::server::ServerHandle;
use serde_json::json;
use testkit::raw::{RawClient, RawOrigin};
use testkit::time::{eventually, guarded};

use crate::server::ways::{OK, as_bytes, over_types};

const PATHS: [&str; 4] = ["/", "/panic", "/", "/panic"];

/// Acts by the path, and counts its calls.
#[derive(Default)]
struct Panics(Arc<AtomicUsize>);

impl LoadBalancer for Panics {
    fn pick(&self, _: &Candidates<'_>, head: &dyn RequestHead) -> Option<usize> {
        self.0.fetch_add(1, Relaxed);
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

/// The statuses of the responses over HTTP/1.1.
async fn over_http1(address: SocketAddr) -> Vec<u16> {
    let mut client = RawClient::connect(address).await.unwrap();
    let mut statuses = Vec::new();
    for path in PATHS {
        let request = format!("GET {path} HTTP/1.1\r\nHost: h\r\n\r\n");
        client.write_all(request).await.unwrap();
        let response = guarded(path, client.read_response()).await.unwrap();
        statuses.push(response.status());
    }
    statuses
}

/// Like [`over_http1`], over HTTP/2.
#[cfg(feature = "http2")]
async fn over_http2(address: SocketAddr) -> Vec<u16> {
    let mut client = crate::server::streams::Client::connect(address).await;
    let mut statuses = Vec::new();
    for path in PATHS {
        let request = http::Request::get(format!("http://h{path}")).body(());
        let answer = client.send(request.unwrap(), None, None);
        statuses.push(guarded(path, answer).await.unwrap().status);
    }
    statuses
}

#[tokio::test]
async fn a_panic_is_one_requests_500() {
    for (serve, filters, is_http2) in [
        (as_bytes as fn(&Proxy) -> ServerHandle, true, false),
        (over_types, true, false),
        (as_bytes, false, false),
        #[cfg(feature = "http2")]
        (as_bytes, false, true),
        #[cfg(feature = "http2")]
        (over_types, true, true),
    ] {
        let origin = RawOrigin::answering(OK);
        let config = json!({
            "Routes": { "r": { "ClusterId": "c", "Match": { "Path": "/{**rest}" },
                "Filters": if filters { json!(["count"]) } else { json!([]) } } },
            "Clusters": { "c": { "LoadBalancingPolicy": "panics", "Destinations": {
                "d1": { "Address": origin.url() }, "d2": { "Address": origin.url() },
            } } },
        });
        let count = Count::default();
        let panics = Panics::default();
        let asked = Arc::clone(&panics.0);
        let builder = Proxy::builder()
            .balancer("panics", Arc::new(panics))
            .filter("count", count.clone());
        let config = ProxyConfig::from_json(&config.to_string()).unwrap();
        let (snapshot, _) = Snapshot::compile(config, &builder.compile_options()).unwrap();
        let (proxy, driver) = builder.snapshot(Arc::new(snapshot)).build().unwrap();
        tokio::spawn(driver);
        let server = serve(&proxy);
        let address = server.local_addrs()[0];
        let statuses = match is_http2 {
            #[cfg(feature = "http2")]
            true => over_http2(address).await,
            _ => over_http1(address).await,
        };
        assert_eq!(statuses, [200, 500, 200, 500]);
        let expected = if filters { 4 } else { 0 };
        assert_eq!(count.0.load(Relaxed), expected, "each is asked about once");
        assert_eq!(asked.load(Relaxed), 4, "and so is the policy");
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
