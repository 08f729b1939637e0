//! A proxy behind a server.

use std::sync::Arc;

use http::{Request, Response};
use proxy_runtime::proxy_model::config::ProxyConfig;
use proxy_runtime::proxy_model::{CompileOptions, Snapshot};
use proxy_runtime::status::DestinationStatus;
use proxy_runtime::{ConnectionInfo, Proxy, ProxyBody, ProxyBuilder};
use serde_json::{Value, json};
use testkit::client::Connection;
use testkit::origin::{self, Incoming, Origin, OriginBuilder};
use testkit::time::eventually;
use tower_service::Service;

/// A proxy behind a server that speaks both versions of HTTP.
pub(crate) struct Front {
    pub(crate) server: Origin,
    pub(crate) proxy: Proxy,
}

/// A configuration with one route for everything, `all`, and one cluster, `c`, with a destination
/// for each address: `d0`, `d1` …
pub(crate) fn config(addresses: &[&str]) -> Value {
    let destinations: serde_json::Map<String, Value> = addresses
        .iter()
        .enumerate()
        .map(|(i, address)| (format!("d{i}"), json!({ "Address": address })))
        .collect();
    json!({
        "Routes": { "all": { "ClusterId": "c", "Match": { "Path": "/{**all}" } } },
        "Clusters": { "c": { "Destinations": destinations } },
    })
}

/// Like [`config`], with settings of the cluster.
pub(crate) fn config_with(addresses: &[&str], cluster: &Value) -> Value {
    let mut config = config(addresses);
    merge(&mut config["Clusters"]["c"], cluster);
    config
}

/// Like [`config`], with settings of the route.
pub(crate) fn config_with_route(addresses: &[&str], route: &Value) -> Value {
    let mut config = config(addresses);
    merge(&mut config["Routes"]["all"], route);
    config
}

/// HTTP/2 with prior knowledge.
pub(crate) fn h2c() -> Value {
    json!({ "HttpRequest": { "Version": "2", "VersionPolicy": "RequestVersionExact" } })
}

fn merge(into: &mut Value, from: &Value) {
    let (Some(into), Some(from)) = (into.as_object_mut(), from.as_object()) else {
        panic!("both must be objects");
    };
    into.extend(from.clone());
}

#[track_caller]
pub(crate) fn snapshot(config: &Value) -> Arc<Snapshot> {
    snapshot_for(config, &CompileOptions::default())
}

#[track_caller]
fn snapshot_for(config: &Value, options: &CompileOptions) -> Arc<Snapshot> {
    let config =
        ProxyConfig::from_json(&config.to_string()).unwrap_or_else(|problems| panic!("{problems}"));
    let compiled = Snapshot::compile(config, options);
    Arc::new(compiled.unwrap_or_else(|problems| panic!("{problems}")).0)
}

impl Front {
    /// Starts a proxy that sends everything to `address`.
    #[track_caller]
    pub(crate) fn to(address: impl AsRef<str>) -> Self {
        Self::start(&config(&[address.as_ref()]))
    }

    #[track_caller]
    pub(crate) fn start(config: &Value) -> Self {
        Self::build(config, Origin::builder(), Proxy::builder())
    }

    #[track_caller]
    pub(crate) fn build(config: &Value, server: OriginBuilder, proxy: ProxyBuilder) -> Self {
        let snapshot = snapshot_for(config, &proxy.compile_options());
        let (proxy, driver) = proxy
            .snapshot(snapshot)
            .build()
            .unwrap_or_else(|problems| panic!("{problems}"));
        tokio::spawn(driver);
        let service = proxy.service();
        let server = server
            .extended_connect(true)
            .start(move |mut request: Request<Incoming>| {
                let known = request.extensions().get::<origin::ConnectionInfo>();
                let known = known.expect("the server adds it to every request");
                let connection = ConnectionInfo::new(known.peer);
                request.extensions_mut().insert(connection);
                let mut service = service.clone();
                async move {
                    let response: Result<Response<ProxyBody>, _> = service.call(request).await;
                    response.unwrap_or_else(|never| match never {})
                }
            });
        Self { server, proxy }
    }

    pub(crate) fn reload(&self, config: &Value) {
        let published = self.proxy.publish(snapshot(config));
        published.unwrap_or_else(|problems| panic!("{problems}"));
    }

    pub(crate) async fn http1(&self) -> Connection {
        Connection::http1(self.server.addr()).await.unwrap()
    }

    pub(crate) async fn http2(&self) -> Connection {
        Connection::http2(self.server.addr()).await.unwrap()
    }

    /// The status of a destination.
    pub(crate) fn destination(&self, index: usize) -> DestinationStatus {
        self.proxy.clusters()[0].destinations[index].clone()
    }

    /// Number of errors of a kind that were counted for the cluster.
    pub(crate) fn errors(&self, kind: &str) -> u64 {
        let cluster = &self.proxy.clusters()[0];
        cluster.errors.get(kind).copied().unwrap_or(0)
    }

    /// Waits until an error was counted `count` times.
    pub(crate) async fn wait_for_errors(&self, kind: &str, count: u64) {
        eventually(format!("{count} × {kind}"), || async {
            self.errors(kind) == count
        })
        .await;
    }

    /// Waits until no request is in flight: nothing leaked.
    pub(crate) async fn settled(&self) {
        eventually("no request under way", || async {
            let cluster = &self.proxy.clusters()[0];
            let in_flight: u32 = cluster.destinations.iter().map(|d| d.in_flight).sum();
            in_flight == 0 && self.proxy.overview().active_requests == 0
        })
        .await;
    }

    /// Waits until `count` connections to a destination are open.
    pub(crate) async fn connections(&self, destination: usize, count: i64) {
        eventually(format!("{count} connections"), || async {
            self.destination(destination).connections == count
        })
        .await;
    }
}
