//! Limits of connections that agents set.

use std::sync::Arc;

use http::{Request, Response};
use serde_json::json;
use testkit::agent::Agent;
use testkit::body;
use testkit::origin::{Incoming, Origin, Protocols};
use testkit::time::eventually;
use tokio::sync::Semaphore;

use super::agents::{SOON, agent, destination, say, start};

/// An origin that responds when it is permitted.
fn gated(protocols: Protocols) -> (Origin, Arc<Semaphore>) {
    let gate = Arc::new(Semaphore::new(0));
    let opened = Arc::clone(&gate);
    let handler = move |_: Request<Incoming>| {
        let gate = Arc::clone(&gate);
        async move {
            gate.acquire().await.unwrap().forget();
            Response::new(body::full("done"))
        }
    };
    (
        Origin::builder()
            .protocols(protocols)
            .max_concurrent_streams(2)
            .start(handler),
        opened,
    )
}

#[tokio::test]
async fn an_agent_limits_connections() {
    use testkit::client::Connection;

    use crate::server::ways::as_bytes;

    let (origin, gate) = gated(Protocols::Http1);
    let speaker = Agent::saying("maxconn:1\n");
    let config = json!({
        "Routes": { "r": { "ClusterId": "c", "Match": { "Path": "/{**rest}" } } },
        "Clusters": { "c": {
            "HealthCheck": { "Agent": { "Enabled": true, "Port": speaker.port(), "Interval": SOON } },
            "HttpClient": { "MaxConnectionsPerServer": 2 },
            "Destinations": { "a": { "Address": origin.url() } },
        } },
    });
    let proxy = start(&config);
    eventually("the limit", || async {
        agent(&proxy, "a").max_connections == Some(1)
    })
    .await;
    let server = as_bytes(&proxy);
    let address = server.local_addrs()[0];
    let asks = |count: usize| -> Vec<_> {
        let ask = || async move {
            Connection::http1(address)
                .await
                .unwrap()
                .get("/")
                .await
                .unwrap()
                .status
        };
        (0..count).map(|_| tokio::spawn(ask())).collect()
    };
    let requests = || origin.traffic().requests();
    let mut asked = asks(4);
    eventually("one request", || async { requests() == 1 }).await;
    eventually("others wait", || async {
        destination(&proxy, "a").in_flight == 4
    })
    .await;
    assert_eq!(origin.traffic().counts().open(), 1);
    // A higher limit than the configured one lets those that wait go on, and 0 is none.
    say(&proxy, "a", &speaker, "maxconn:3").await;
    eventually("three requests", || async { requests() == 3 }).await;
    say(&proxy, "a", &speaker, "maxconn:0").await;
    eventually("all requests", || async { requests() == 4 }).await;
    // A lower limit closes what is idle.
    say(&proxy, "a", &speaker, "maxconn:1").await;
    asked.extend(asks(2));
    gate.add_permits(6);
    for asked in asked {
        assert_eq!(asked.await.unwrap().as_u16(), 200);
    }
    eventually("one connection is left", || async {
        origin.traffic().counts().open() <= 1
    })
    .await;
    assert_eq!(requests(), 6);
}

/// Over HTTP/2 requests share the connections that there may be: they wait for streams of those.
#[cfg(feature = "http2")]
#[tokio::test]
async fn an_agent_limits_connections_of_http2() {
    use testkit::client::Connection;

    use crate::server::ways::as_bytes;

    let (origin, gate) = gated(Protocols::Http2);
    let speaker = Agent::saying("maxconn:1\n");
    let config = json!({
        "Routes": { "r": { "ClusterId": "c", "Match": { "Path": "/{**rest}" } } },
        "Clusters": { "c": {
            "HealthCheck": { "Agent": { "Enabled": true, "Port": speaker.port(), "Interval": SOON } },
            "HttpRequest": { "Version": "2", "VersionPolicy": "RequestVersionExact" },
            "Destinations": { "a": { "Address": origin.url() } },
        } },
    });
    let proxy = start(&config);
    eventually("the limit", || async {
        agent(&proxy, "a").max_connections == Some(1)
    })
    .await;
    let server = as_bytes(&proxy);
    let address = server.local_addrs()[0];
    let asks = |count: usize| -> Vec<_> {
        let ask = || async move {
            let mut client = Connection::http2(address).await.unwrap();
            client.get("/").await.unwrap().status
        };
        (0..count).map(|_| tokio::spawn(ask())).collect()
    };
    let mut asked = asks(4);
    eventually("two requests", || async {
        origin.traffic().requests() == 2
    })
    .await;
    eventually("others wait", || async {
        destination(&proxy, "a").in_flight == 4
    })
    .await;
    assert_eq!(origin.traffic().counts().open(), 1);
    // Another connection is for those that come later.
    say(&proxy, "a", &speaker, "maxconn:2").await;
    asked.extend(asks(1));
    eventually("three requests", || async {
        origin.traffic().requests() == 3
    })
    .await;
    assert_eq!(origin.traffic().counts().open(), 2);
    gate.add_permits(5);
    for asked in asked {
        assert_eq!(asked.await.unwrap().as_u16(), 200);
    }
    assert_eq!(origin.traffic().requests(), 5);
}
