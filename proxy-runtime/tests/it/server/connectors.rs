//! Connectors of the program, on every way through the proxy: clients of both versions of HTTP, as bytes and over
//! `http` types, with and without layers, to destinations of both versions.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use async_trait::async_trait;
use proxy_runtime::health::Health;
use proxy_runtime::layer::RouteService;
use proxy_runtime::proxy_model::Snapshot;
use proxy_runtime::proxy_model::config::ProxyConfig;
use proxy_runtime::server::ServerHandle;
use proxy_runtime::upstream::{ConnectTarget, Connected, DestinationConnector};
use proxy_runtime::{Proxy, ProxyBuilder};
use serde_json::{Value, json};
use testkit::origin::{NamedOrigin, Origin, Protocols};
use testkit::time::eventually;
use tokio::io::{copy_bidirectional, duplex};
use tokio::net::TcpStream;
use tower_layer::layer_fn;

use crate::server::support::{BoxError, connections};
use crate::server::ways::{as_bytes, over_types};

/// Leads to an origin through memory, whatever the address of the destination.
#[derive(Clone)]
struct Memory {
    origin: SocketAddr,
    opened: Arc<AtomicUsize>,
}

impl Memory {
    fn to(origin: &NamedOrigin) -> Self {
        Self {
            origin: origin.addr(),
            opened: Arc::default(),
        }
    }

    fn opened(&self) -> usize {
        self.opened.load(Ordering::Relaxed)
    }
}

#[async_trait]
impl DestinationConnector for Memory {
    async fn connect(&self, target: &ConnectTarget<'_>) -> Result<Connected, BoxError> {
        match target.address.host() {
            "refused.example" => {
                return Err(io::Error::from(io::ErrorKind::ConnectionRefused).into());
            }
            "panics.example" => panic!("as the test says"),
            _ => {}
        }
        assert_eq!(target.cluster.as_str(), "c");
        self.opened.fetch_add(1, Ordering::Relaxed);
        let mut socket = TcpStream::connect(self.origin).await?;
        let (near, mut far) = duplex(1 << 16);
        tokio::spawn(async move {
            let _ = copy_bidirectional(&mut far, &mut socket).await;
        });
        let connected = match target.may_use_http1 {
            true => Connected::http1(near),
            false => Connected::http2(near),
        };
        Ok(connected.with_peer(self.origin))
    }
}

fn builder(memory: &Memory) -> ProxyBuilder {
    Proxy::builder()
        .connector("memory", memory.clone())
        .connector("other", memory.clone())
        .layer("pass", layer_fn(|rest: RouteService| rest))
}

fn config(connector: &str, version: Protocols, layered: bool, hosts: &[&str]) -> Value {
    let destinations = hosts.iter().enumerate().map(|(i, host)| {
        let address = json!({ "Address": format!("http://{host}/") });
        (format!("d{i}"), address)
    });
    let destinations: serde_json::Map<_, _> = destinations.collect();
    let request = match version {
        Protocols::Http1 => json!({}),
        _ => json!({ "Version": "2", "VersionPolicy": "RequestVersionExact" }),
    };
    let layers = if layered { json!(["pass"]) } else { json!([]) };
    json!({
        "Routes": { "r": { "ClusterId": "c", "Match": { "Path": "/{**rest}" }, "Layers": layers } },
        "Clusters": { "c": {
            "LoadBalancingPolicy": "FirstAlphabetical",
            "HttpClient": { "Connector": connector },
            "HttpRequest": request,
            "Destinations": destinations,
        } },
    })
}

fn compiled(config: &Value, builder: &ProxyBuilder) -> Arc<Snapshot> {
    let config = ProxyConfig::from_json(&config.to_string()).unwrap();
    Arc::new(
        Snapshot::compile(config, &builder.compile_options())
            .unwrap()
            .0,
    )
}

fn versions() -> Vec<Protocols> {
    match cfg!(feature = "http2") {
        true => vec![Protocols::Http1, Protocols::Http2],
        false => vec![Protocols::Http1],
    }
}

#[tokio::test]
async fn a_connector_of_the_program_opens_the_connections_of_its_clusters() {
    for version in versions() {
        let builder_of = Origin::builder().protocols(version);
        let origin = builder_of.start_named("far");
        for layered in [false, true] {
            for serve in [as_bytes as fn(&Proxy) -> ServerHandle, over_types] {
                let memory = Memory::to(&origin);
                let config = |connector| config(connector, version, layered, &["nowhere.example"]);
                let snapshot = |connector| compiled(&config(connector), &builder(&memory));
                let (proxy, driver) = builder(&memory)
                    .snapshot(snapshot("Memory"))
                    .build()
                    .unwrap();
                tokio::spawn(driver);
                let server = serve(&proxy);
                for mut client in connections(server.local_addrs()[0]).await {
                    for _ in 0..3 {
                        let answer = client.get("/").await.unwrap();
                        assert_eq!((answer.status.as_u16(), answer.text().trim()), (200, "far"));
                    }
                }
                // The connection is pooled, and counted as any other.
                assert_eq!(memory.opened(), 1, "{version:?}, layered: {layered}");
                let destination = proxy.clusters()[0].destinations[0].clone();
                assert_eq!(destination.connects, 1);
                // Another connector has other connections.
                proxy.publish(snapshot("other")).unwrap();
                for mut client in connections(server.local_addrs()[0]).await {
                    assert_eq!(client.get("/").await.unwrap().status.as_u16(), 200);
                }
                assert_eq!(memory.opened(), 2, "{version:?}, layered: {layered}");
            }
        }
    }
}

#[tokio::test]
async fn a_request_that_a_connector_cannot_place_goes_elsewhere() {
    let origin = Origin::named("far");
    let memory = Memory::to(&origin);
    for first in ["refused.example", "panics.example"] {
        let config = |hosts: &[&str]| config("memory", Protocols::Http1, false, hosts);
        let two = compiled(&config(&[first, "nowhere.example"]), &builder(&memory));
        let (proxy, driver) = builder(&memory).snapshot(two).build().unwrap();
        tokio::spawn(driver);
        let server = as_bytes(&proxy);
        for mut client in connections(server.local_addrs()[0]).await {
            assert_eq!(
                client.get("/").await.unwrap().text().trim(),
                "far",
                "{first}"
            );
        }
        proxy
            .publish(compiled(&config(&[first]), &builder(&memory)))
            .unwrap();
        for mut client in connections(server.local_addrs()[0]).await {
            assert_eq!(
                client.get("/").await.unwrap().status.as_u16(),
                502,
                "{first}"
            );
        }
    }
}

#[tokio::test]
async fn probes_use_the_connector() {
    let origin = Origin::named("far");
    let memory = Memory::to(&origin);
    let mut config = config("memory", Protocols::Http1, false, &["nowhere.example"]);
    config["Clusters"]["c"]["HealthCheck"] = json!({ "Active": {
        "Enabled": true, "Interval": "00:00:00.05", "Path": "/health",
    } });
    let (proxy, driver) = builder(&memory)
        .snapshot(compiled(&config, &builder(&memory)))
        .build()
        .unwrap();
    tokio::spawn(driver);
    let health = || proxy.clusters()[0].destinations[0].health;
    eventually("it is healthy", || async { health() == Health::Healthy }).await;
    let server = as_bytes(&proxy);
    for mut client in connections(server.local_addrs()[0]).await {
        assert_eq!(client.get("/").await.unwrap().status.as_u16(), 200);
    }
    origin.set_healthy(false);
    eventually("it is unhealthy", || async {
        health() == Health::Unhealthy
    })
    .await;
}

/// A program that has not registered a connector does not serve a configuration with it.
#[test]
fn a_connector_has_to_be_registered() {
    let config = config("memory", Protocols::Http1, false, &["a"]);
    let parsed = ProxyConfig::from_json(&config.to_string()).unwrap();
    let problems = Snapshot::compile(parsed, &Proxy::builder().compile_options()).unwrap_err();
    assert!(
        problems
            .iter()
            .any(|problem| problem.code == "unknown_connector"),
        "{problems}"
    );
}
