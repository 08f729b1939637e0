//! The values that policies hold for a request while its tunnel is open, such as a place of a concurrency limit.

use std::sync::atomic::Ordering::Relaxed;

use serde_json::json;
use testkit::time::{eventually, guarded};
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use crate::server::support::connections;
use crate::server::waits::{Scripted, Way, proxy, ways};
use crate::server::websocket::{Upstream, open, origin};

/// A limit of requests at a time would let any number of WebSockets through otherwise.
#[tokio::test]
async fn a_tunnel_holds_what_its_handshake_held() {
    for Way { way, serve, route } in ways() {
        for waits in [false, true] {
            let origin = origin(Upstream::Http1, |_| {});
            let policies = Scripted::new(waits);
            let server = serve(&proxy(&policies, &origin.url(), &route));
            for mut client in connections(server.local_addrs()[0]).await {
                let protocol = client.protocol();
                let label = format!("{way}, {protocol:?}, waits: {waits}");
                let (_, mut tunnel) = guarded(&*label, open(&mut client)).await.unwrap();
                for _ in 0..3 {
                    tunnel.write_all(b"abc").await.unwrap();
                    let mut echoed = [0; 3];
                    guarded(&*label, tunnel.read_exact(&mut echoed))
                        .await
                        .unwrap();
                    assert_eq!(policies.held.load(Relaxed), 1, "{label}");
                }
                drop(tunnel);
                eventually(&label, || async { policies.held.load(Relaxed) == 0 }).await;
            }
        }
    }
}

/// A handshake that is rejected ends with its response.
#[tokio::test]
async fn a_rejected_handshake_holds_nothing() {
    for Way { way, serve, route } in ways() {
        let origin = origin(Upstream::Http1, |response| {
            *response.status_mut() = http::StatusCode::FORBIDDEN;
            response.headers_mut().clear();
        });
        let policies = Scripted::new(false);
        let server = serve(&proxy(&policies, &origin.url(), &route));
        for mut client in connections(server.local_addrs()[0]).await {
            let label = format!("{way}, {:?}", client.protocol());
            assert!(open(&mut client).await.is_err(), "{label}");
            eventually(&label, || async { policies.held.load(Relaxed) == 0 }).await;
        }
    }
    let respond = json!({ "Respond": { "Status": 410 } });
    let policies = Scripted::new(false);
    let server = (ways()[0].serve)(&proxy(&policies, "http://127.0.0.1:1", &respond));
    for mut client in connections(server.local_addrs()[0]).await {
        assert!(open(&mut client).await.is_err());
        eventually("a reply", || async { policies.held.load(Relaxed) == 0 }).await;
    }
}
