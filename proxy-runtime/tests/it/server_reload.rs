//! A thousand configuration changes under load.

#![cfg(feature = "server")]
#![allow(clippy::unwrap_used, reason = "a panic is how a test fails")]

use std::num::NonZeroUsize;
use std::sync::Arc;
use std::time::Duration;

use http::StatusCode;
use proxy_runtime::Proxy;
use proxy_runtime::proxy_model::config::ProxyConfig;
use proxy_runtime::proxy_model::{CompileOptions, Snapshot};
use proxy_runtime::server::{Limits, Listener, Server};
use serde_json::{Map, json};
use testkit::body;
use testkit::client::{Answer, Connection, Load};
use testkit::origin::Origin;

const RELOADS: u64 = 1000;

/// Configuration number `n`: two of the origins serve, with new ids. Every path has one route,
/// which matches in another way each time, and there is a route that exists in this configuration
/// only.
fn snapshot(n: u64, origins: &[Origin]) -> Arc<Snapshot> {
    let count = origins.len() as u64;
    let mut destinations = Map::new();
    for offset in [0, 1] {
        let origin = &origins[((n + offset) % count) as usize];
        // The id of a destination sometimes stays while its address changes.
        let id = format!("d{}", (n / 2 + offset) % 7);
        destinations.insert(id, json!({ "Address": origin.url() }));
    }
    let policies = ["RoundRobin", "LeastRequests", "PowerOfTwoChoices", "Random"];
    let cluster = format!("c{}", n % 3);
    let all = match n % 3 {
        0 => json!({ "Path": "/{**rest}" }),
        1 => json!({ "Path": "/load/{id}", "Methods": ["GET", "POST"] }),
        _ => {
            json!({ "Path": "/load/{id:int}", "Headers": [{ "Name": "X-Absent", "Mode": "NotExists" }] })
        }
    };
    let config = json!({
        "Routes": {
            format!("all{}", n % 5): { "ClusterId": cluster, "Match": all },
            "this": { "ClusterId": cluster, "Match": { "Path": format!("/only/{n}") } },
        },
        "Clusters": {
            cluster: {
                "LoadBalancingPolicy": policies[(n % 4) as usize],
                "Destinations": destinations,
            },
        },
    });
    let config = ProxyConfig::from_json(&config.to_string()).unwrap();
    let (snapshot, _) = Snapshot::compile(config, &CompileOptions::default()).unwrap();
    Arc::new(snapshot)
}

/// GETs, and occasionally a POST whose body is longer than a buffer.
fn load(load: Load) -> Load {
    load.connections(3)
        .max_duration(Duration::from_secs(600))
        .request(|connection, n| {
            let path = format!("/load/{n}");
            let request = if n % 20 == 0 {
                connection
                    .request("POST", &path)
                    .body(body::full(vec![b'x'; 100_000]))
            } else {
                connection.request("GET", &path).body(body::empty())
            };
            request.unwrap()
        })
        .expect(|answer: &Answer| match answer.status {
            StatusCode::OK => Ok(()),
            status => Err(format!("{status}: {}", answer.text())),
        })
}

#[tokio::test]
async fn a_thousand_reloads_under_load_fail_no_request() {
    let origins = [(); 4].map(|()| Origin::echo());
    let builder = Proxy::builder().snapshot(snapshot(0, &origins));
    let (proxy, driver) = builder.build().unwrap();
    let driver = tokio::spawn(driver);
    let server = Server::for_proxy(&proxy)
        .with_workers(NonZeroUsize::new(2).unwrap())
        .with_limits(Limits::default())
        .with_listener(Listener::http("127.0.0.1:0".parse().unwrap()))
        .bind()
        .unwrap()
        .start()
        .unwrap();
    let address = server.local_addrs()[0];

    let loads = [
        load(Load::new(address)).start(),
        load(Load::new(address).http2()).start(),
    ];
    let first = *proxy.generations().borrow();
    for n in 1..=RELOADS {
        // Requests of both kinds happen between any two changes.
        for load in &loads {
            load.wait_for_finished(load.report().finished + 1).await;
        }
        proxy.publish(snapshot(n, &origins)).unwrap();
    }
    assert_eq!(*proxy.generations().borrow(), first + RELOADS);

    // The last configuration serves, and no other.
    let mut client = Connection::http1(address).await.unwrap();
    let path = |n| format!("/only/{n}");
    assert_eq!(
        client.get(&path(RELOADS)).await.unwrap().status,
        StatusCode::OK
    );
    let earlier = client.get(&path(RELOADS - 1)).await.unwrap();
    assert_eq!(earlier.status, StatusCode::NOT_FOUND);

    for load in loads {
        let report = load.stop().await;
        report.assert_no_failure();
        assert!(report.succeeded >= RELOADS, "{report}");
    }
    for origin in &origins {
        assert!(origin.traffic().requests() > 0, "{} had none", origin.url());
    }
    drop(client);
    let report = server.shutdown(Duration::from_secs(25)).await;
    assert_eq!(report.cut, 0);
    driver.abort();
}

/// A worker without requests keeps no replaced configuration in memory.
#[tokio::test]
async fn replaced_configurations_are_let_go_of() {
    let origins = [Origin::echo(), Origin::echo()];
    let first = snapshot(0, &origins);
    let mut replaced = vec![Arc::downgrade(&first)];
    let (proxy, driver) = Proxy::builder().snapshot(first).build().unwrap();
    tokio::spawn(driver);
    let server = Server::for_proxy(&proxy)
        .with_workers(NonZeroUsize::new(3).unwrap())
        .with_listener(Listener::http("127.0.0.1:0".parse().unwrap()));
    let server = server.bind().unwrap().start().unwrap();
    for n in 1..5 {
        // One of the workers serves with it.
        let mut client = Connection::http1(server.local_addrs()[0]).await.unwrap();
        client.get("/load/1").await.unwrap();
        drop(client);
        let next = snapshot(n, &origins);
        replaced.push(Arc::downgrade(&next));
        proxy.publish(next).unwrap();
    }
    let current = replaced.pop().unwrap();
    testkit::time::eventually("all to be dropped", async || {
        replaced.iter().all(|snapshot| snapshot.strong_count() == 0)
    })
    .await;
    assert!(current.strong_count() > 0);
}
