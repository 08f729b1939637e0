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

/// The limits of a head are the same over both versions of HTTP, to the byte.
#[cfg(feature = "http2")]
#[tokio::test]
async fn the_limits_of_a_head_are_alike() {
    use crate::changed;
    use crate::server::streams::Client;
    use crate::server::support::{Handler, serve};
    use proxy_runtime::server::Limits;
    use testkit::time::guarded;

    let limits = changed(|limits: &mut Limits| {
        limits.header_bytes = 1024;
        limits.request_line = 256;
        limits.header_fields = 5;
    });
    let (_server, address) = serve(Handler::echo(), limits);
    let path = |length: usize| format!("/{}", "p".repeat(length - 1));
    let one = |length: usize| vec![("x".to_owned(), "v".repeat(length))];
    let many = |count| {
        (0..count)
            .map(|i| (format!("x-{i}"), "1".to_owned()))
            .collect()
    };
    // `GET / HTTP/1.1`, `host: h`, `x: ` and the empty line.
    let rest = 1024 - 16 - 9 - 5 - 2;
    for (path, fields, status) in [
        (path(253), vec![], 200),
        (path(254), vec![], 414),
        (path(1), one(rest), 200),
        (path(1), one(rest + 1), 431),
        (path(1), many(4), 200),
        (path(1), many(5), 431),
    ] {
        let case = format!("{} {}", path.len(), fields.len());
        let lines: String = fields
            .iter()
            .map(|(name, value)| format!("{name}: {value}\r\n"))
            .collect();
        let mut client = RawClient::connect(address).await.unwrap();
        client
            .write_all(format!("GET {path} HTTP/1.1\r\nhost: h\r\n{lines}\r\n"))
            .await
            .unwrap();
        let answer = guarded("a response", client.read_response()).await.unwrap();
        assert_eq!(answer.status(), status, "HTTP/1.1 {case}");
        let mut request = http::Request::get(format!("http://h{path}"));
        for (name, value) in &fields {
            request = request.header(name, value);
        }
        let mut client = Client::connect(address).await;
        let answer = client.send(request.body(()).unwrap(), None, None);
        let answer = guarded("a response", answer).await.unwrap();
        assert_eq!(answer.status, status, "HTTP/2 {case}");
    }
}
