//! The handshake of WebSocket (RFC 6455, RFC 8441) in all combinations of versions.

use std::net::SocketAddr;
use std::num::NonZeroUsize;
use std::sync::Arc;

use http::{HeaderValue, Response, StatusCode};
use proxy_runtime::Proxy;
use proxy_runtime::proxy_model::config::ProxyConfig;
use proxy_runtime::proxy_model::{CompileOptions, Snapshot};
use proxy_runtime::server::{Listener, Server, ServerHandle};
use serde_json::json;
use testkit::body;
use testkit::client::{ClientError, Connection, Protocol};
use testkit::origin::{Origin, Protocols, websocket_accept};
use testkit::raw::{RawClient, RawOrigin};
use testkit::time::{eventually, guarded};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};

use crate::server::support::{connections, loopback};

// The example of RFC 6455 section 1.3.
const KEY: &str = "dGhlIHNhbXBsZSBub25jZQ==";
const ACCEPT: &str = "s3pPLMBiTxaQ9kYGzzhZRbK+xOo=";

/// The version of HTTP of a destination.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Upstream {
    Http1,
    #[cfg(feature = "http2")]
    Http2,
}

const UPSTREAMS: &[Upstream] = &[
    Upstream::Http1,
    #[cfg(feature = "http2")]
    Upstream::Http2,
];

fn serve(url: &str, upstream: Upstream) -> (ServerHandle, SocketAddr) {
    let (_, server, address) = serve_proxy(url, upstream);
    (server, address)
}

fn serve_proxy(url: &str, upstream: Upstream) -> (Proxy, ServerHandle, SocketAddr) {
    let version = match upstream {
        Upstream::Http1 => "1.1",
        #[cfg(feature = "http2")]
        Upstream::Http2 => "2",
    };
    let config = json!({
        "Routes": { "r1": { "ClusterId": "c1", "Match": { "Path": "/{**rest}" } } },
        "Clusters": { "c1": {
            "HttpRequest": { "Version": version, "VersionPolicy": "RequestVersionExact" },
            "Destinations": { "d1": { "Address": url } },
        } },
    });
    let config = ProxyConfig::from_json(&config.to_string()).unwrap();
    let (snapshot, _) = Snapshot::compile(config, &CompileOptions::default()).unwrap();
    let builder = Proxy::builder().snapshot(Arc::new(snapshot));
    let (proxy, driver) = builder.build().unwrap();
    tokio::spawn(driver);
    let server = Server::for_proxy(&proxy).with_workers(NonZeroUsize::MIN);
    let server = server.with_listener(Listener::http(loopback()));
    let server = server.bind().unwrap().start().unwrap();
    let address = server.local_addrs()[0];
    (proxy, server, address)
}

/// Asserts that only clients caused errors, and that each was counted.
async fn assert_only_clients_failed(proxy: &Proxy, rejected: u64) {
    eventually("each rejected handshake is counted", async || {
        let errors = &proxy.clusters()[0].errors;
        errors.get("RequestRejected") == Some(&rejected)
    })
    .await;
    let errors = &proxy.clusters()[0].errors;
    assert_eq!(errors.get("RequestCreation"), None);
    assert_eq!(proxy.overview().clusters_failing, 0);
}

/// An origin that accepts every WebSocket with the response of `agree`, and echoes all bytes.
pub(super) fn origin(
    upstream: Upstream,
    agree: impl Fn(&mut Response<body::Body>) + Copy + Send + Sync + 'static,
) -> Origin {
    let protocols = match upstream {
        Upstream::Http1 => Protocols::Http1,
        #[cfg(feature = "http2")]
        Upstream::Http2 => Protocols::Http2,
    };
    let builder = Origin::builder().protocols(protocols);
    builder
        .extended_connect(true)
        .start(move |mut request| async move {
            let key = request.headers().get("sec-websocket-key");
            let accept = key.map(|key| websocket_accept(key.to_str().unwrap()));
            let upgrade = hyper::upgrade::on(&mut request);
            tokio::spawn(async move {
                if let Ok(upgraded) = upgrade.await {
                    let io = hyper_util::rt::TokioIo::new(upgraded);
                    let (mut from, mut to) = tokio::io::split(io);
                    let _ = tokio::io::copy(&mut from, &mut to).await;
                    let _ = to.shutdown().await;
                }
            });
            let mut response = Response::new(body::empty());
            // CONNECT has no key.
            if let Some(accept) = accept {
                *response.status_mut() = StatusCode::SWITCHING_PROTOCOLS;
                let headers = response.headers_mut();
                headers.insert("connection", HeaderValue::from_static("Upgrade"));
                headers.insert("upgrade", HeaderValue::from_static("websocket"));
                headers.insert("sec-websocket-accept", accept.parse().unwrap());
            }
            agree(&mut response);
            response
        })
}

/// A request for a WebSocket with another start line, or other lines than `Host`, `Connection` and
/// `Upgrade`.
fn ask(start: &str, lines: &str) -> String {
    format!(
        "{start}\r\nHost: t.example\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n{lines}\r\n"
    )
}

/// Case 300: an invalid handshake is rejected before it reaches a destination (RFC 6455 section
/// 4.2.1).
#[tokio::test]
async fn of_http1_only_a_handshake_opens_a_tunnel() {
    const GET: &str = "GET /chat HTTP/1.1";
    const VERSION: &str = "Sec-WebSocket-Version: 13\r\n";
    let key = format!("Sec-WebSocket-Key: {KEY}\r\n");
    let good = format!("{VERSION}{key}");
    let with_key = |value: &str| format!("{VERSION}Sec-WebSocket-Key: {value}\r\n");
    let with_version = |lines: &str| format!("{key}{lines}");
    for upstream in UPSTREAMS {
        let origin = origin(*upstream, |_| {});
        let (proxy, _server, address) = serve_proxy(&origin.url(), *upstream);
        for (name, request, status) in [
            ("no key", ask(GET, VERSION), 400),
            ("an empty key", ask(GET, &with_key("")), 400),
            ("a short key", ask(GET, &with_key("Foo")), 400),
            (
                "a key of 18 bytes",
                ask(GET, &with_key("AAAAAAAAAAAAAAAAAAAAAAAA")),
                400,
            ),
            (
                "no base64",
                ask(GET, &with_key("dGhlIHNhbXBsZSBub25j*Q==")),
                400,
            ),
            ("two keys", ask(GET, &format!("{good}{key}")), 400),
            ("no version", ask(GET, &with_version("")), 400),
            ("two versions", ask(GET, &format!("{good}{VERSION}")), 400),
            (
                "version 12",
                ask(GET, &with_version("Sec-WebSocket-Version: 12\r\n")),
                426,
            ),
            (
                "version 13 or 12",
                ask(GET, &with_version("Sec-WebSocket-Version: 13, 12\r\n")),
                426,
            ),
            ("POST", ask("POST /chat HTTP/1.1", &good), 400),
            (
                "a body",
                ask(GET, &format!("{good}Content-Length: 5\r\n")),
                400,
            ),
            (
                "chunks",
                ask(GET, &format!("{good}Transfer-Encoding: chunked\r\n")),
                400,
            ),
        ] {
            let mut client = RawClient::connect(address).await.unwrap();
            client.write_all(request).await.unwrap();
            let response = client.read_response().await.unwrap();
            assert_eq!(response.status(), status, "{name}, {upstream:?}");
            if status == 426 {
                // RFC 6455 section 4.4, RFC 9110 section 15.5.22.
                assert_eq!(response.header("sec-websocket-version"), Some("13"));
                assert_eq!(response.header("upgrade"), Some("websocket"));
                assert_eq!(response.header("connection"), Some("upgrade"));
            }
        }
        assert_eq!(origin.traffic().requests(), 0, "{upstream:?}");
        // Without the handshakes that have a body.
        assert_only_clients_failed(&proxy, 11).await;

        // The same without the error. A field named in `Connection` is part of the handshake
        // nevertheless.
        let named = "Connection: Sec-WebSocket-Key, Sec-WebSocket-Version\r\n";
        for lines in [good.clone(), format!("{named}{good}")] {
            let mut client = RawClient::connect(address).await.unwrap();
            client.write_all(ask(GET, &lines)).await.unwrap();
            let head = client.read_response_head().await.unwrap();
            assert_eq!(head.status, 101, "{upstream:?}");
            assert_eq!(head.header("sec-websocket-accept"), Some(ACCEPT));
        }
    }
}

/// Case 300, in HTTP/2: the key may be missing (RFC 8441 section 5), the rest may not.
#[cfg(feature = "http2")]
#[tokio::test]
async fn of_http2_only_a_handshake_opens_a_tunnel() {
    for upstream in UPSTREAMS {
        let origin = origin(*upstream, |_| {});
        let (proxy, _server, address) = serve_proxy(&origin.url(), *upstream);
        let mut opened = 0;
        for (name, fields, status) in [
            ("no version", &[][..], 400),
            ("version 12", &[("version", "12")], 400),
            ("two versions", &[("version", "13"), ("version", "13")], 400),
            ("a short key", &[("version", "13"), ("key", "Foo")], 400),
            (
                "two keys",
                &[("version", "13"), ("key", KEY), ("key", KEY)],
                400,
            ),
            ("good", &[("version", "13")], 200),
            ("good with a key", &[("version", "13"), ("key", KEY)], 200),
        ] {
            let mut client = Connection::http2(address).await.unwrap();
            let mut request = connect(&client);
            for (field, value) in fields {
                request = request.header(format!("sec-websocket-{field}"), *value);
            }
            let upgraded = client.upgrade(request.body(body::empty()).unwrap()).await;
            let (given, headers) = seen(&upgraded);
            assert_eq!(given, status, "{name}, {upstream:?}");
            let version = headers.get("sec-websocket-version");
            assert_eq!(version.is_some(), name == "version 12", "{name}");
            if let Ok((_, tunnel)) = upgraded {
                guarded(format!("an echo, {name}"), assert_echoes(tunnel)).await;
                opened += 1;
            }
            assert_eq!(origin.traffic().requests(), opened, "{name}, {upstream:?}");
        }
        assert_eq!(opened, 2, "{upstream:?}");
        assert_only_clients_failed(&proxy, 5).await;
    }
}

#[cfg(feature = "http2")]
fn connect(client: &Connection) -> http::request::Builder {
    let request = client.request("CONNECT", "/chat");
    request.extension(hyper::ext::Protocol::from_static("websocket"))
}

/// The head of the response to a handshake.
fn seen<T>(upgraded: &Result<(Response<()>, T), ClientError>) -> (u16, http::HeaderMap) {
    match upgraded {
        Ok((response, _)) => (response.status().as_u16(), response.headers().clone()),
        Err(ClientError::NotUpgraded(answer)) => (answer.status.as_u16(), answer.headers.clone()),
        Err(error) => panic!("{}", error.chain()),
    }
}

/// Bytes pass in both directions.
#[cfg(feature = "http2")]
async fn assert_echoes(mut tunnel: impl AsyncRead + AsyncWrite + Unpin) {
    tunnel.write_all(b"hello").await.unwrap();
    let mut echoed = [0; 5];
    tunnel.read_exact(&mut echoed).await.unwrap();
    assert_eq!(&echoed, b"hello");
}

/// Opens a WebSocket, or returns the response.
pub(super) async fn open(
    client: &mut Connection,
) -> Result<(Response<()>, impl AsyncRead + AsyncWrite + Unpin), ClientError> {
    let request = match client.protocol() {
        Protocol::Http1 => client
            .request("GET", "/chat")
            .header("connection", "Upgrade")
            .header("upgrade", "websocket")
            .header("sec-websocket-key", KEY),
        #[cfg(feature = "http2")]
        Protocol::Http2 => connect(client),
        #[cfg(not(feature = "http2"))]
        Protocol::Http2 => unreachable!("the server does not speak it"),
    };
    let request = request.header("sec-websocket-version", "13");
    client.upgrade(request.body(body::empty()).unwrap()).await
}

/// Case 301: a switch without valid proof is rejected (RFC 6455 section 4.1).
#[tokio::test]
async fn of_a_destination_only_the_proof_opens_a_tunnel() {
    const SWITCH: &str = "HTTP/1.1 101 Switching Protocols\r\n";
    let lines = |lines: &str| format!("{SWITCH}{lines}\r\nraw");
    for (name, answer) in [
        (
            "no proof",
            lines("Connection: Upgrade\r\nUpgrade: websocket\r\n"),
        ),
        (
            "a wrong proof",
            lines(
                "Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Accept: nonsense\r\n",
            ),
        ),
        (
            "no protocol",
            lines("Connection: Upgrade\r\nSec-WebSocket-Accept: {accept}\r\n"),
        ),
        (
            "another protocol",
            lines("Connection: Upgrade\r\nUpgrade: h2c\r\nSec-WebSocket-Accept: {accept}\r\n"),
        ),
        (
            "two protocols",
            lines(
                "Connection: Upgrade\r\nUpgrade: websocket\r\nUpgrade: h2c\r\nSec-WebSocket-Accept: {accept}\r\n",
            ),
        ),
        (
            "not for this connection",
            lines("Upgrade: websocket\r\nSec-WebSocket-Accept: {accept}\r\n"),
        ),
        (
            "two proofs",
            lines(
                "Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Accept: {accept}\r\n\
                 Sec-WebSocket-Accept: {accept}\r\n",
            ),
        ),
        ("nothing but the status", lines("")),
    ] {
        let origin = agreeing(answer);
        let (_server, address) = serve(&origin.url(), Upstream::Http1);
        for mut client in connections(address).await {
            let protocol = client.protocol();
            let opened = guarded(format!("{name}, {protocol:?}"), open(&mut client)).await;
            assert_eq!(seen(&opened).0, 502, "{name}, {protocol:?}");
        }
    }
    // The same without the error.
    let origin = agreeing(lines(
        "Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Accept: {accept}\r\n",
    ));
    let (_server, address) = serve(&origin.url(), Upstream::Http1);
    for mut client in connections(address).await {
        let (_, mut tunnel) = open(&mut client).await.unwrap();
        let mut bytes = [0; 3];
        tunnel.read_exact(&mut bytes).await.unwrap();
        assert_eq!(&bytes, b"raw");
    }
}

/// Responds to handshakes with `answer`, in which the proof for the key replaces `{accept}`.
fn agreeing(answer: String) -> RawOrigin {
    RawOrigin::script(move |mut connection| {
        let answer = answer.clone();
        async move {
            let head = connection.read_request().await?;
            let key = head.header("sec-websocket-key").unwrap_or_default();
            let accept = websocket_accept(key);
            connection
                .write_all(answer.replace("{accept}", &accept))
                .await?;
            connection.never_answer().await
        }
    })
}

/// Cases 301 and 302: no switch without a request for it, and a rejected request gets a response.
/// For CONNECT any 2xx would be a tunnel (RFC 8441 section 5), so it cannot be passed on.
#[tokio::test]
async fn a_rejection_opens_no_tunnel() {
    for (answer, over_http1, over_http2) in [
        ("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nno", 200, 502),
        ("HTTP/1.1 204 No Content\r\n\r\n", 204, 502),
        (
            "HTTP/1.1 403 Forbidden\r\nContent-Length: 2\r\n\r\nno",
            403,
            403,
        ),
        (
            "HTTP/1.1 302 Found\r\nLocation: /\r\nContent-Length: 0\r\n\r\n",
            302,
            302,
        ),
    ] {
        let origin = RawOrigin::answering(answer);
        let (_server, address) = serve(&origin.url(), Upstream::Http1);
        for mut client in connections(address).await {
            let status = match client.protocol() {
                Protocol::Http1 => over_http1,
                Protocol::Http2 => over_http2,
            };
            assert_eq!(seen(&open(&mut client).await).0, status, "{answer}");
        }
    }
    let unasked =
        "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n";
    let origin = RawOrigin::answering(unasked);
    let (_server, address) = serve(&origin.url(), Upstream::Http1);
    for mut client in connections(address).await {
        assert_eq!(client.get("/chat").await.unwrap().status, 502);
    }
}

/// RFC 8441 section 5 lets a destination agree with any 2xx. Other statuses reach the client.
#[cfg(feature = "http2")]
#[tokio::test]
async fn a_destination_of_http2_agrees_with_any_2xx() {
    for (given, passed_on) in [
        (200, None),
        (201, None),
        (202, None),
        (299, None),
        (302, Some(302)),
        (403, Some(403)),
    ] {
        let status = StatusCode::from_u16(given).unwrap();
        let agree = move |response: &mut Response<body::Body>| *response.status_mut() = status;
        let origin = origin(Upstream::Http2, agree);
        let (_server, address) = serve(&origin.url(), Upstream::Http2);
        for mut client in connections(address).await {
            let expected = match (passed_on, client.protocol()) {
                (Some(status), _) => status,
                (None, Protocol::Http1) => 101,
                (None, Protocol::Http2) => 200,
            };
            let what = format!("{given}, {:?}", client.protocol());
            let opened = guarded(what.clone(), open(&mut client)).await;
            assert_eq!(seen(&opened).0, expected, "{what}");
            if let Ok((_, tunnel)) = opened {
                guarded(what, assert_echoes(tunnel)).await;
            }
        }
    }
}

/// Case 303: reserved bits, no mask, a length of 2⁶³, text that is not UTF-8, and invalid frames
/// (RFC 6455 section 5).
#[tokio::test]
async fn bytes_pass_every_way_as_they_are() {
    let frames = [
        b"\xf1\x01x".as_slice(),
        b"\x82\x03abc",
        b"\x82\xff\x80\x00\x00\x00\x00\x00\x00\x00",
        b"\x81\x82\x00\x00\x00\x00\xff\xfe",
        b"\x88\x00GET / HTTP/1.1\r\nHost: h\r\n\r\n",
    ];
    let sent = frames.concat();
    for upstream in UPSTREAMS {
        let origin = origin(*upstream, |_| {});
        let (_server, address) = serve(&origin.url(), *upstream);
        for mut client in connections(address).await {
            let protocol = client.protocol();
            let (_, mut tunnel) = open(&mut client).await.unwrap();
            tunnel.write_all(&sent).await.unwrap();
            tunnel.shutdown().await.unwrap();
            let mut echoed = Vec::new();
            let reading = tunnel.read_to_end(&mut echoed);
            guarded(format!("bytes of {protocol:?}, {upstream:?}"), reading)
                .await
                .unwrap();
            assert_eq!(echoed, sent, "{protocol:?}, {upstream:?}");
        }
    }
}
