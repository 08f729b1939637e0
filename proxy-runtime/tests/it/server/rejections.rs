//! Requests that are rejected before their whole body has arrived.

use proxy_runtime::Proxy;
use proxy_runtime::server::ServerHandle;
use serde_json::json;
use testkit::raw::{RawClient, RawOrigin};

use crate::server::ways::{as_bytes, over_types, proxy};

/// Starts a server for a proxy.
type Serve = fn(&Proxy) -> ServerHandle;

/// The server closes the connection, as it says, on every path. It keeps one whose request has arrived.
#[tokio::test]
async fn what_follows_a_rejected_body_is_not_read_on_any_path() {
    let origin = || {
        RawOrigin::script(|mut connection| async move {
            connection.read_request().await?;
            connection.write_all("nonsense\r\n\r\n").await
        })
    };
    let ways: [(&str, Serve); 2] = [("bytes", as_bytes), ("http types", over_types)];
    for (way, serve) in ways {
        for (body, closes) in [("whole body", false), ("a part", true), ("", true)] {
            let origin = origin();
            let server = serve(&proxy(&origin, &json!({}), ""));
            let mut client = RawClient::connect(server.local_addrs()[0]).await.unwrap();
            let head = "POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 10\r\n\r\n";
            client.write_all(format!("{head}{body}")).await.unwrap();
            let response = client.read_response().await.unwrap();
            let case = format!("{way}, {body:?}");
            assert_eq!(response.status(), 502, "{case}");
            let announced = response.header("connection") == Some("close");
            assert_eq!(announced, closes, "{case}");
        }
    }
}
