//! Destinations that fail under load, and the number of requests that fail with them.

use std::sync::Arc;
use std::time::{Duration, Instant};

use http::Response;
use proxy_runtime::Proxy;
use proxy_runtime::proxy_model::config::ProxyConfig;
use proxy_runtime::proxy_model::{CompileOptions, Snapshot};
use proxy_runtime::upstream::UpstreamOptions;
use serde_json::{Value, json};
use testkit::body;
use testkit::client::Load;
use testkit::faults::{self, UnansweredPort};
use testkit::origin::Origin;
use testkit::time::eventually;

use crate::changed;
use crate::server::ways::as_bytes;

/// A proxy that distributes requests over these destinations in turn.
fn proxy(addresses: &[String]) -> Proxy {
    proxy_with(addresses, json!({}), UpstreamOptions::default())
}

/// Like [`proxy`], with settings of the cluster.
fn proxy_with(addresses: &[String], mut cluster: Value, options: UpstreamOptions) -> Proxy {
    let destinations: serde_json::Map<String, Value> = addresses
        .iter()
        .enumerate()
        .map(|(i, address)| (format!("d{i}"), json!({ "Address": address })))
        .collect();
    cluster["LoadBalancingPolicy"] = json!("RoundRobin");
    cluster["Destinations"] = Value::Object(destinations);
    let config = json!({
        "Routes": { "r": { "ClusterId": "c", "Match": { "Path": "/{**rest}" } } },
        "Clusters": { "c": cluster },
    });
    let config = ProxyConfig::from_json(&config.to_string()).unwrap();
    let (snapshot, _) = Snapshot::compile(config, &CompileOptions::default()).unwrap();
    let (proxy, driver) = Proxy::builder()
        .upstream(options)
        .snapshot(Arc::new(snapshot))
        .build()
        .unwrap();
    tokio::spawn(driver);
    proxy
}

/// A destination that takes 20 ms per request.
fn slow() -> Origin {
    Origin::start(|_| async {
        tokio::time::sleep(Duration::from_millis(20)).await;
        Response::new(body::full("slow"))
    })
}

/// The destination has half of all requests in flight, and stays in the configuration.
#[tokio::test]
async fn a_destination_that_is_killed_fails_no_request() {
    for is_http2 in [false, true] {
        if is_http2 && cfg!(not(feature = "http2")) {
            continue;
        }
        let (killed, other) = (slow(), slow());
        let proxy = proxy(&[killed.url(), other.url()]);
        let server = as_bytes(&proxy);
        let load = Load::new(server.local_addrs()[0]).connections(16);
        let load = match is_http2 {
            true => load.http2(),
            false => load,
        };
        let load = load.start();
        load.wait_for_finished(200).await;
        assert!(killed.traffic().requests() > 50);
        drop(killed);
        load.wait_for_finished(600).await;
        load.stop().await.assert_no_failure();
    }
}

/// Every second request is sent there first.
#[tokio::test]
async fn a_destination_that_resets_every_connection_fails_no_request() {
    for resetting in [
        faults::resets_on_accept(),
        faults::resets_before_answer(),
        faults::closes_before_answer(),
    ] {
        let other = Origin::named("other");
        let proxy = proxy(&[resetting.url(), other.url()]);
        let server = as_bytes(&proxy);
        let load = Load::new(server.local_addrs()[0]).start();
        load.wait_for_finished(300).await;
        load.stop().await.assert_no_failure();
        assert!(resetting.traffic().counts().accepted > 50);
    }
}

/// Requests that wait for it fail until its probes have failed; afterwards none does.
#[tokio::test]
async fn a_destination_that_is_black_holed_fails_requests_until_it_is_unhealthy() {
    /// The wait for a connection.
    const WAIT: Duration = Duration::from_secs(1);

    let hole = UnansweredPort::new();
    let other = Origin::named("other");
    let probes = json!({ "HealthCheck": { "Active": {
        "Enabled": true,
        "Interval": "00:00:01",
        "Timeout": "00:00:02",
        "Policy": "ConsecutiveFailures",
    } } });
    let options = changed(|options: &mut UpstreamOptions| options.connect_timeout = WAIT);
    let proxy = proxy_with(&[hole.url(), other.url()], probes, options);
    let server = as_bytes(&proxy);
    let address = server.local_addrs()[0];
    let connections = 4;
    let begun = Instant::now();
    let load = Load::new(address).connections(connections).start();
    eventually("the probes have failed", async || {
        proxy.clusters()[0].available == 1
    })
    .await;
    let report = load.stop().await;
    // Each connection waits for a second at a time.
    let most = connections as u64 * (begun.elapsed().as_secs() + 1);
    assert!(report.failures() <= most, "{report}");
    assert!(report.succeeded > 0, "{report}");

    let load = Load::new(address).connections(connections).start();
    load.wait_for_finished(200).await;
    load.stop().await.assert_no_failure();
}
