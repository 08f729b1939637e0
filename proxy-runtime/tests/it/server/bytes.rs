//! Requests on the byte path, seen from both sides.

use std::net::SocketAddr;
use std::num::NonZeroUsize;
use std::sync::Arc;
use std::time::Duration;

use proxy_runtime::proxy_model::Snapshot;
use proxy_runtime::proxy_model::config::ProxyConfig;
use proxy_runtime::server::{Listener, Server, ServerHandle};
use proxy_runtime::{Proxy, ProxyBuilder};
use serde_json::{Value, json};
use testkit::faults::RefusingPort;
use testkit::raw::{Closed, Framing, RawClient, RawConnection, RawOrigin};
use testkit::time::{eventually, guarded};
use tokio::sync::Notify;

use crate::server::filtered;
use crate::server::support::loopback;

const GET: &str = "GET / HTTP/1.1\r\nHost: h\r\n\r\n";
const OK: &str = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok";

fn serve(origin: &RawOrigin) -> (ServerHandle, SocketAddr) {
    serve_with(origin, json!({}))
}

fn serve_with(origin: &RawOrigin, cluster: Value) -> (ServerHandle, SocketAddr) {
    serve_route(origin, json!({}), cluster)
}

fn serve_route(origin: &RawOrigin, route: Value, cluster: Value) -> (ServerHandle, SocketAddr) {
    serve_at(&origin.url(), route, cluster)
}

fn serve_at(url: &str, route: Value, cluster: Value) -> (ServerHandle, SocketAddr) {
    serve_by(url, route, cluster, Proxy::builder())
}

fn serve_by(
    url: &str,
    mut route: Value,
    mut cluster: Value,
    builder: ProxyBuilder,
) -> (ServerHandle, SocketAddr) {
    route["ClusterId"] = json!("c1");
    route["Match"] = json!({ "Path": "/{**rest}" });
    cluster["Destinations"] = json!({ "d1": { "Address": url } });
    let config = json!({ "Routes": { "r1": route }, "Clusters": { "c1": cluster } });
    let config = ProxyConfig::from_json(&config.to_string()).unwrap();
    let (snapshot, _) = Snapshot::compile(config, &builder.compile_options()).unwrap();
    let (proxy, driver) = builder.snapshot(Arc::new(snapshot)).build().unwrap();
    tokio::spawn(driver);
    let server = Server::for_proxy(&proxy)
        .with_workers(NonZeroUsize::MIN)
        .with_listener(Listener::http(loopback()));
    let server = server.bind().unwrap().start().unwrap();
    let address = server.local_addrs()[0];
    (server, address)
}

async fn answer(connection: &mut RawConnection, answer: &str) -> std::io::Result<()> {
    connection.read_whole_request().await?;
    connection.write_all(answer).await
}

#[tokio::test]
async fn connections_are_kept_on_both_sides() {
    let origin = RawOrigin::answering(OK);
    let (_server, address) = serve(&origin);
    let mut client = RawClient::connect(address).await.unwrap();
    for _ in 0..50 {
        client.write_all(GET).await.unwrap();
        assert_eq!(client.read_response().await.unwrap().text(), "ok");
    }
    assert_eq!(origin.recordings().len(), 1);
}

#[tokio::test]
async fn requests_that_come_at_once_are_answered_in_order() {
    let origin = RawOrigin::script(|mut connection| async move {
        while let Ok((head, body)) = connection.read_whole_request().await {
            let text = format!("{} {}", head.target, body.len());
            let length = text.len();
            let response = format!("HTTP/1.1 200 OK\r\nContent-Length: {length}\r\n\r\n{text}");
            connection.write_all(response).await?;
        }
        Ok(())
    });
    let (_server, address) = serve(&origin);
    let mut client = RawClient::connect(address).await.unwrap();
    let mut requests = String::new();
    for number in 0..20 {
        let body = "x".repeat(number);
        requests += &match number % 3 {
            0 => format!("GET /{number} HTTP/1.1\r\nHost: h\r\n\r\n"),
            1 => format!(
                "POST /{number} HTTP/1.1\r\nHost: h\r\nContent-Length: {number}\r\n\r\n{body}"
            ),
            _ => format!(
                "POST /{number} HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: \
                 chunked\r\n\r\n{number:x}\r\n{body}\r\n0\r\n\r\n"
            ),
        };
    }
    client.write_all(&requests).await.unwrap();
    for number in 0..20 {
        let length = if number % 3 == 0 { 0 } else { number };
        let response = client.read_response().await.unwrap();
        assert_eq!(response.text(), format!("/{number} {length}"));
    }
}

#[tokio::test]
async fn chunks_and_trailers_go_through_as_they_come() {
    let origin = RawOrigin::script(|mut connection| async move {
        let (head, body) = connection.read_whole_request().await?;
        assert!(head.is_chunked());
        assert_eq!(body, b"hello world");
        connection
            .write_all("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5;x=y\r\nhello\r\n")
            .await?;
        connection
            .write_all("6\r\n world\r\n0\r\nX-Sum: 1\r\nContent-Type: x\r\n\r\n")
            .await?;
        connection.hold().await
    });
    let (_server, address) = serve(&origin);
    let mut client = RawClient::connect(address).await.unwrap();
    let head = "POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n";
    client.write_all(head).await.unwrap();
    // A byte at a time, so that the framing is cut at every position.
    for byte in b"5\r\nhello\r\n6\r\n world\r\n0\r\nX-Up: 1\r\nAuthorization: x\r\n\r\n" {
        client.write_all([*byte]).await.unwrap();
    }
    let response = guarded("response", client.read_response()).await.unwrap();
    assert_eq!(response.framing, Framing::Chunked);
    assert_eq!(response.text(), "hello world");
    assert_eq!(response.trailers, [("X-Sum".to_owned(), "1".to_owned())]);
    let sent = origin.recording(0).text();
    assert!(sent.ends_with("0\r\nX-Up: 1\r\n\r\n"), "{sent}");
}

#[tokio::test]
async fn a_body_that_ends_with_its_connection_goes_on_in_chunks() {
    let origin = RawOrigin::script(|mut connection| async move {
        connection.read_whole_request().await?;
        connection.write_all("HTTP/1.1 200 OK\r\n\r\nsome").await?;
        connection.write_all(" more").await?;
        connection.close();
        Ok(())
    });
    let (_server, address) = serve(&origin);
    let mut client = RawClient::connect(address).await.unwrap();
    for _ in 0..2 {
        client.write_all(GET).await.unwrap();
        let response = client.read_response().await.unwrap();
        assert_eq!(response.framing, Framing::Chunked);
        assert_eq!(response.text(), "some more");
    }
    assert_eq!(origin.recordings().len(), 2);
}

#[tokio::test]
async fn both_bodies_flow_at_once() {
    // Echoes each chunk on arrival: neither side ever has a whole body.
    let origin = RawOrigin::script(|mut connection| async move {
        connection.read_request().await?;
        connection
            .write_all("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")
            .await?;
        loop {
            let bytes = connection.read_some().await?;
            connection.write_all(&bytes).await?;
            if bytes.ends_with(b"0\r\n\r\n") {
                return connection.hold().await;
            }
        }
    });
    let (_server, address) = serve(&origin);
    let mut client = RawClient::connect(address).await.unwrap();
    client
        .write_all("POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n")
        .await
        .unwrap();
    let head = guarded("head", client.read_response_head()).await.unwrap();
    assert_eq!(head.status, 200);
    for word in ["one", "two", "three"] {
        let chunk = format!("{:x}\r\n{word}\r\n", word.len());
        client.write_all(&chunk).await.unwrap();
        let echoed = guarded(word, client.read_exact(chunk.len())).await.unwrap();
        assert_eq!(echoed, chunk.as_bytes());
    }
    client.write_all("0\r\n\r\n").await.unwrap();
    let end = guarded("end", client.read_exact(5)).await.unwrap();
    assert_eq!(end, b"0\r\n\r\n");
}

#[tokio::test]
async fn interim_responses_are_passed_on() {
    let origin = RawOrigin::answering(format!(
        "HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\nHTTP/1.1 103 Early Hints\r\nLink: </b>\r\n\r\n{OK}"
    ));
    let (_server, address) = serve(&origin);
    let response = RawClient::exchange(address, GET).await.unwrap();
    let links: Vec<_> = response
        .interim
        .iter()
        .map(|head| head.header("link"))
        .collect();
    assert_eq!(links, [Some("</a>"), Some("</b>")]);
    assert_eq!(response.text(), "ok");
}

/// Interim responses exist on the byte path only, so they reveal the path taken.
#[tokio::test]
async fn filters_leave_a_request_on_its_way() {
    let hints = "HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n";
    let origin = RawOrigin::answering(format!("{hints}{OK}"));
    let route = json!({ "Filters": ["a"] });
    let builder = filtered::registered(Proxy::builder());
    let (_server, address) = serve_by(&origin.url(), route, json!({}), builder);
    let response = RawClient::exchange(address, GET).await.unwrap();
    assert_eq!(response.interim[0].header("link"), Some("</a>"));
    assert_eq!(response.header("x-a"), Some("a"));
    assert!(origin.recording(0).text().contains("x-mark: a\r\n"));
}

/// HTTP/1.0 has no `Upgrade` (RFC 9110 section 7.8), and the destination would switch, since it is
/// asked in HTTP/1.1.
#[tokio::test]
async fn a_client_of_http_1_0_asks_for_no_websocket() {
    let origin = RawOrigin::answering(OK);
    let (_server, address) = serve(&origin);
    let request = "GET / HTTP/1.0\r\nHost: h\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: \
                   13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n";
    let response = RawClient::exchange(address, request).await.unwrap();
    assert_eq!((response.status(), response.text().as_str()), (200, "ok"));
    let sent = origin.recording(0).text().to_lowercase();
    assert!(sent.starts_with("get / http/1.1\r\n"), "{sent}");
    assert!(!sent.contains("upgrade"), "{sent}");
}

#[tokio::test]
async fn what_cannot_be_understood_is_not_passed_on() {
    for (name, answer) in [
        (
            "two lengths",
            "HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nab",
        ),
        (
            "length and chunks",
            "HTTP/1.1 200 OK\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
        ),
        ("no HTTP", "SSH-2.0-OpenSSH_9.2\r\n\r\n"),
        (
            "an unasked switch",
            "HTTP/1.1 101 Switching Protocols\r\nConnection: upgrade\r\nUpgrade: x\r\n\r\n",
        ),
        (
            "a body that is broken from the start",
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nxyz\r\n",
        ),
        ("half a head", "HTTP/1.1 200 OK\r\nContent-"),
        ("nothing", ""),
    ] {
        let origin = RawOrigin::answering_once(answer);
        let (_server, address) = serve(&origin);
        let mut client = RawClient::connect(address).await.unwrap();
        client.write_all(GET).await.unwrap();
        let response = guarded(name, client.read_response()).await.unwrap();
        assert_eq!((response.status(), name), (502, name));
    }
}

#[tokio::test]
async fn a_response_that_breaks_off_ends_the_clients_connection() {
    for (name, answer) in [
        (
            "length",
            "HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nhalf",
        ),
        (
            "chunks",
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n",
        ),
    ] {
        let origin = RawOrigin::answering_once(answer);
        let (_server, address) = serve(&origin);
        let mut client = RawClient::connect(address).await.unwrap();
        client.write_all(GET).await.unwrap();
        let response = guarded(name, client.read_response()).await;
        assert!(response.is_err(), "{name}: {response:?}");
    }
}

#[tokio::test]
async fn a_connection_on_which_more_came_than_was_asked_for_is_not_used_again() {
    let origin = RawOrigin::script(|mut connection| async move {
        answer(
            &mut connection,
            &format!("{OK}HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nevil"),
        )
        .await?;
        connection.hold().await
    });
    let (_server, address) = serve(&origin);
    let mut client = RawClient::connect(address).await.unwrap();
    for _ in 0..3 {
        client.write_all(GET).await.unwrap();
        let response = guarded("response", client.read_response()).await.unwrap();
        assert_eq!(response.text(), "ok");
    }
    assert_eq!(origin.recordings().len(), 3);
}

#[tokio::test]
async fn a_body_that_is_framed_wrongly_is_the_clients_fault() {
    let origin = RawOrigin::answering(OK);
    let (_server, address) = serve(&origin);
    let mut client = RawClient::connect(address).await.unwrap();
    let request =
        "POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\nzz\r\n";
    client.write_all(request).await.unwrap();
    let response = guarded("response", client.read_response()).await.unwrap();
    assert_eq!(response.status(), 400);
    assert_eq!(response.header("connection"), Some("close"));
    assert_eq!(client.assert_closed().await, Closed::Ended);
}

#[tokio::test]
async fn a_client_that_goes_away_takes_its_request_along() {
    let origin = RawOrigin::script(|mut connection| async move {
        connection.read_whole_request().await?;
        connection.wait_for_close().await.map(drop)
    });
    let (_server, address) = serve(&origin);
    let mut client = RawClient::connect(address).await.unwrap();
    client.write_all(GET).await.unwrap();
    eventually("the request is there", async || {
        origin
            .recordings()
            .first()
            .is_some_and(|seen| seen.total() > 0)
    })
    .await;
    drop(client);
    guarded("the destination is told", origin.recording(0).outcome())
        .await
        .unwrap();
}

#[tokio::test]
async fn a_destination_that_says_nothing_is_given_up() {
    let origin = RawOrigin::script(|mut connection| async move { connection.never_answer().await });
    let timeout = json!({ "HttpRequest": { "ActivityTimeout": "00:00:00.3" } });
    let (_server, address) = serve_with(&origin, timeout);
    let response = guarded("response", RawClient::exchange(address, GET))
        .await
        .unwrap();
    assert_eq!(response.status(), 504);
}

#[tokio::test]
async fn it_is_given_up_within_layers_as_well() {
    let origin = RawOrigin::script(|mut connection| async move { connection.never_answer().await });
    let layers = json!({ "Layers": ["Same"] });
    let timeout = json!({ "HttpRequest": { "ActivityTimeout": "00:00:00.3" } });
    let builder = Proxy::builder().layer("Same", tower_layer::Identity::new());
    let (_server, address) = serve_by(&origin.url(), layers, timeout, builder);
    let response = guarded("response", RawClient::exchange(address, GET))
        .await
        .unwrap();
    assert_eq!(response.status(), 504);
}

#[tokio::test]
async fn a_connection_that_was_closed_meanwhile_is_replaced() {
    let origin = RawOrigin::script(|mut connection| async move {
        answer(&mut connection, OK).await?;
        connection.close();
        Ok(())
    });
    let (_server, address) = serve(&origin);
    let mut client = RawClient::connect(address).await.unwrap();
    for number in 0..3 {
        client
            .write_all("POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 1\r\n\r\nx")
            .await
            .unwrap();
        let response = guarded("response", client.read_response()).await.unwrap();
        assert_eq!(response.text(), "ok");
        // The proxy has seen the end of the destination's connection when the next request comes.
        guarded("closed", origin.recording(number).outcome())
            .await
            .unwrap();
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

#[tokio::test]
async fn a_response_without_a_date_gets_one() {
    let origin = RawOrigin::answering(OK);
    let (_server, address) = serve(&origin);
    let response = RawClient::exchange(address, GET).await.unwrap();
    assert_eq!(response.head.header_values("date").len(), 1);
    let dated =
        "HTTP/1.1 200 OK\r\nDATE: Sun, 06 Nov 1994 08:49:37 GMT\r\nContent-Length: 0\r\n\r\n";
    let origin = RawOrigin::answering(dated);
    let (_server, address) = serve(&origin);
    let response = RawClient::exchange(address, GET).await.unwrap();
    let dates = response.head.header_values("date");
    assert_eq!(dates, ["Sun, 06 Nov 1994 08:49:37 GMT"]);
}

#[tokio::test]
async fn what_a_route_takes_away_is_not_in_interim_responses_either() {
    let origin = RawOrigin::answering(format!(
        "HTTP/1.1 103 Early Hints\r\nLink: </a>\r\nX-Internal: secret\r\n\r\n{OK}"
    ));
    let route = json!({ "Transforms": [
        { "ResponseHeaderRemove": "X-Internal", "When": "Always" },
    ] });
    let (_server, address) = serve_route(&origin, route, json!({}));
    let response = RawClient::exchange(address, GET).await.unwrap();
    let interim = &response.interim[0];
    assert_eq!(interim.header("link"), Some("</a>"));
    assert_eq!(interim.header("x-internal"), None);
}

#[tokio::test]
async fn all_that_came_of_a_broken_response_reaches_the_client() {
    const SENT: usize = 1 << 20;
    let origin = RawOrigin::script(|mut connection| async move {
        connection.read_whole_request().await?;
        connection
            .write_all("HTTP/1.1 200 OK\r\nContent-Length: 10000000\r\n\r\n")
            .await?;
        connection.write_all(vec![b'x'; SENT]).await?;
        connection.close();
        Ok(())
    });
    let (_server, address) = serve(&origin);
    let mut client = RawClient::connect(address).await.unwrap();
    client.write_all(GET).await.unwrap();
    let head = guarded("head", client.read_response_head()).await.unwrap();
    assert_eq!(head.status, 200);
    let body = guarded("body", client.read_to_end()).await.unwrap();
    assert_eq!(body.len(), SENT);
}

#[tokio::test]
async fn a_client_that_has_its_response_may_leave_with_its_request_unsent() {
    let origin = RawOrigin::script(|mut connection| async move {
        connection.read_request().await?;
        connection.write_all(OK).await?;
        connection.wait_for_close().await.map(drop)
    });
    let (server, address) = serve(&origin);
    let mut client = RawClient::connect(address).await.unwrap();
    let head = "POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 100\r\n\r\npart";
    client.write_all(head).await.unwrap();
    let response = guarded("early", client.read_response()).await.unwrap();
    assert_eq!(response.text(), "ok");
    drop(client);
    guarded("the destination is told", origin.recording(0).outcome())
        .await
        .unwrap();
    eventually("the connection is over", async || {
        server.metrics().counts().active_connections == 0
    })
    .await;
}

#[tokio::test]
async fn a_request_that_was_read_whole_leaves_its_connection_open_when_nobody_serves_it() {
    let dead = RefusingPort::new();
    let (_server, address) = serve_at(&dead.url(), json!({}), json!({}));
    let mut client = RawClient::connect(address).await.unwrap();
    for _ in 0..2 {
        let request = "POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 3\r\n\r\nabc";
        client.write_all(request).await.unwrap();
        let response = guarded("response", client.read_response()).await.unwrap();
        assert_eq!(response.status(), 502);
        assert_eq!(response.header("connection"), None);
    }
}

#[tokio::test]
async fn clients_that_leave_while_a_connection_is_waited_for_are_not_served() {
    let answered = Arc::new(Notify::new());
    let answer = Arc::clone(&answered);
    let origin = RawOrigin::script(move |mut connection| {
        let answer = Arc::clone(&answer);
        async move {
            while let Ok((head, _)) = connection.read_whole_request().await {
                if head.target == "/first" {
                    answer.notified().await;
                }
                connection.write_all(OK).await?;
            }
            Ok(())
        }
    });
    let one = json!({ "HttpClient": { "MaxConnectionsPerServer": 1 } });
    let (server, address) = serve_with(&origin, one);
    let mut first = RawClient::connect(address).await.unwrap();
    first
        .write_all("GET /first HTTP/1.1\r\nHost: h\r\n\r\n")
        .await
        .unwrap();
    eventually("the first is there", async || {
        origin.recordings().len() == 1
    })
    .await;
    origin.recording(0).wait_for("/first").await;
    for _ in 0..5 {
        let mut client = RawClient::connect(address).await.unwrap();
        client
            .write_all("GET /gone HTTP/1.1\r\nHost: h\r\n\r\n")
            .await
            .unwrap();
        eventually("the request is there", async || {
            server.metrics().counts().active_requests == 2
        })
        .await;
        drop(client);
        eventually("the request is given up", async || {
            server.metrics().counts().active_requests == 1
        })
        .await;
    }
    answered.notify_one();
    assert_eq!(first.read_response().await.unwrap().text(), "ok");
    first.write_all(GET).await.unwrap();
    assert_eq!(first.read_response().await.unwrap().text(), "ok");
    assert_eq!(origin.recordings().len(), 1);
    assert!(!origin.recording(0).text().contains("/gone"));
}
