//! The requests that a stopping server waits for, and the causes of those that it cuts.

use std::fmt;
use std::num::NonZeroUsize;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use proxy_runtime::proxy_model::Snapshot;
use proxy_runtime::proxy_model::config::ProxyConfig;
use proxy_runtime::server::{
    AccessLogSink, AccessRecord, Limits, Listener, Outcome, Server, ServerHandle,
};
use proxy_runtime::{Cause, ForwardErrorKind, Proxy};
use serde_json::{Value, json};
use testkit::raw::{RawClient, RawOrigin};
use testkit::time::{eventually, guarded};

use crate::changed;
use crate::server::support::{Handler, loopback, serve};
use crate::server::ways::Disguised;

/// Parts of what begins a request.
fn halves() -> Vec<Vec<u8>> {
    let mut halves: Vec<Vec<u8>> = [
        "",
        "G",
        "GET / HTTP/1.1\r\n",
        "GET / HTTP/1.1\r\nHost: h\r\nX: ",
        "\r\n",
        // Behind a request.
        "GET / HTTP/1.1\r\nHost: h\r\n\r\nGET /",
    ]
    .map(|half| half.as_bytes().to_vec())
    .into();
    #[cfg(feature = "http2")]
    {
        use testkit::raw::frame::{self, Frame};
        let opened = [
            frame::PREFACE,
            &*Frame::settings(&[]).encode(),
            &*Frame::new(frame::SETTINGS, frame::ACK, 0, []).encode(),
        ]
        .concat();
        let head = [
            (":method", "GET"),
            (":scheme", "http"),
            (":authority", "h"),
            (":path", "/"),
        ];
        let whole = Frame::headers(1, &head, true).encode();
        let block = Frame::new(frame::HEADERS, frame::END_STREAM, 3, *b"\x82\x86\x84").encode();
        halves.extend([
            frame::PREFACE[..10].to_vec(),
            frame::PREFACE.to_vec(),
            opened.clone(),
            [&opened[..], &block].concat(),
            [&opened[..], &whole, &block[..5]].concat(),
            [&opened[..], &whole].concat(),
        ]);
    }
    halves
}

/// Longer than any guard: who waits for that hangs.
const NEVER: Duration = Duration::from_secs(3600);

#[tokio::test]
async fn no_beginning_of_a_request_delays_the_end() {
    for half in halves() {
        let limits = changed(|limits: &mut Limits| limits.header_timeout = NEVER);
        let (server, address) = serve(Handler::echo(), limits);
        let mut client = RawClient::connect(address).await.unwrap();
        client.write_all(&half).await.unwrap();
        eventually("the connection is accepted", async || {
            server.metrics().counts().accepted_connections == 1
        })
        .await;
        // What was sent is nearly always read by then.
        tokio::time::sleep(Duration::from_millis(50)).await;
        let half = String::from_utf8_lossy(&half);
        let report = guarded(format!("the end: {half:?}"), server.shutdown(NEVER)).await;
        assert_eq!(report.cut, 0, "{half:?}");
    }
}

/// The lines of an access log.
#[derive(Default)]
pub(crate) struct Lines(pub(crate) Mutex<Vec<Line>>);

pub(crate) type Line = (
    Option<u16>,
    Outcome,
    Option<ForwardErrorKind>,
    Option<Cause>,
    (u64, u64),
);

impl fmt::Debug for Lines {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Lines").finish_non_exhaustive()
    }
}

impl AccessLogSink for Lines {
    fn log(&self, record: &AccessRecord<'_>) {
        self.0.lock().push((
            record.status.map(|status| status.as_u16()),
            record.outcome,
            record.body_error,
            record.cause(),
            (record.bytes_received, record.bytes_sent),
        ));
    }
}

/// A server of a proxy for `origin`.
fn start(origin: &RawOrigin, is_typed: bool) -> (Proxy, ServerHandle, Arc<Lines>) {
    start_with(
        &origin.url(),
        is_typed,
        &json!({ "ActivityTimeout": "00:00:01" }),
    )
}

/// A server of a proxy whose destination is asked like this.
pub(crate) fn start_with(
    origin: &str,
    is_typed: bool,
    request: &Value,
) -> (Proxy, ServerHandle, Arc<Lines>) {
    start_route(origin, is_typed, request, &json!({}))
}

/// The same for a route that gives the whole response a second.
#[cfg(feature = "http2")]
pub(crate) fn start_whole(
    origin: &str,
    is_typed: bool,
    request: &Value,
) -> (Proxy, ServerHandle, Arc<Lines>) {
    let route = json!({ "Timeout": "00:00:01", "TimeoutIncludesBody": true });
    start_route(origin, is_typed, request, &route)
}

fn start_route(
    origin: &str,
    is_typed: bool,
    request: &Value,
    route: &Value,
) -> (Proxy, ServerHandle, Arc<Lines>) {
    let mut route = route.clone();
    route["ClusterId"] = json!("c");
    route["Match"] = json!({ "Path": "/{**rest}" });
    let config = json!({
        "Routes": { "r": route },
        "Clusters": { "c": {
            "HttpRequest": request,
            "Destinations": { "d": { "Address": origin } },
        } },
    });
    let config = ProxyConfig::from_json(&config.to_string()).unwrap();
    let options = Proxy::builder().compile_options();
    let (snapshot, _) = Snapshot::compile(config, &options).unwrap();
    let builder = Proxy::builder().snapshot(Arc::new(snapshot));
    let (proxy, driver) = builder.build().unwrap();
    tokio::spawn(driver);
    let served = proxy.clone();
    let server = match is_typed {
        false => Server::for_proxy(&proxy),
        true => Server::builder(move || Disguised(served.service())),
    };
    let lines = Arc::new(Lines::default());
    let sink = Arc::clone(&lines) as Arc<dyn AccessLogSink>;
    let server = server.with_workers(NonZeroUsize::MIN).with_access_log(sink);
    let server = server.with_listener(Listener::http(loopback()));
    (proxy, server.bind().unwrap().start().unwrap(), lines)
}

const HANDSHAKE: &str = "GET /tunnel HTTP/1.1\r\nHost: h\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\
    Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n";
const AGREED: &str = "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\
    Sec-WebSocket-Accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo=\r\n\r\n";

/// A destination that begins a response, agrees to a tunnel, and leaves all other requests without a response.
fn holding() -> RawOrigin {
    RawOrigin::script(|mut connection| async move {
        let head = connection.read_request().await?;
        match head.target.as_str() {
            "/begun" => {
                let part = "HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\npart";
                connection.write_all(part).await?;
            }
            "/tunnel" => connection.write_all(AGREED).await?,
            _ => {}
        }
        connection.hold().await
    })
}

/// The failures that `/metrics` tells of a cause.
pub(crate) fn failures(proxy: &Proxy, cause: Cause) -> Vec<String> {
    let admin = proxy_runtime::admin::Admin::builder(proxy.clone()).build();
    let request = http::Request::get("/metrics").header("host", "localhost");
    let metrics = admin.respond(&request.body(()).unwrap()).into_body();
    let metrics = String::from_utf8_lossy(&metrics);
    let named = format!("cause=\"{cause}\"");
    let failures = metrics
        .lines()
        .filter(|line| line.starts_with("proxy_failures_total") && line.contains(&named));
    failures.map(str::to_owned).collect()
}

#[tokio::test]
async fn what_is_cut_at_the_deadline_says_so() {
    for is_typed in [false, true] {
        let origin = holding();
        let (proxy, server, lines) = start(&origin, is_typed);
        let address = server.local_addrs()[0];
        let mut clients = Vec::new();
        for request in [
            "GET / HTTP/1.1\r\nHost: h\r\n\r\n",
            "GET /begun HTTP/1.1\r\nHost: h\r\n\r\n",
            "POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 9\r\n\r\npart",
            HANDSHAKE,
        ] {
            let mut client = RawClient::connect(address).await.unwrap();
            client.write_all(request).await.unwrap();
            if request.contains("/begun") || request.contains("/tunnel") {
                client.read_response_head().await.unwrap();
            }
            clients.push(client);
        }
        #[cfg(feature = "http2")]
        for path in ["/", "/begun"] {
            let mut client = testkit::client::Connection::http2(address).await.unwrap();
            tokio::spawn(async move { client.get(path).await.map(drop) });
        }
        let all = clients.len() as u64 + if cfg!(feature = "http2") { 2 } else { 0 };
        eventually("all are at the destination", async || {
            origin.traffic().requests() == all
        })
        .await;
        server.shutdown(Duration::from_millis(100)).await;
        let lines = lines.0.lock().clone();
        assert_eq!(lines.len() as u64, all, "{lines:?}");
        for (_, outcome, _, cause, _) in &lines {
            let seen = (*outcome, *cause);
            assert_eq!(
                seen,
                (Outcome::Aborted, Some(Cause::DrainTimeout)),
                "{lines:?}"
            );
        }
        let expected = format!(
            "proxy_failures_total{{cluster=\"c\",cause=\"drain_timeout\",side=\"proxy\"}} {all}"
        );
        assert_eq!(failures(&proxy, Cause::DrainTimeout), [expected]);
        assert!(failures(&proxy, Cause::ClientGone).is_empty());
    }
}

/// The ends of tunnels: what their destination does, and what is logged.
#[tokio::test]
async fn the_log_says_how_a_tunnel_has_ended() {
    for (act, outcome, error, cause) in [
        (
            "idle",
            Outcome::Failed,
            Some("UpgradeActivityTimeout"),
            Some(Cause::IdleTunnel),
        ),
        (
            "reset",
            Outcome::Failed,
            Some("UpgradeResponseDestination"),
            Some(Cause::ResetWhileResponding),
        ),
        ("close", Outcome::Complete, None, None),
    ] {
        for is_typed in [false, true] {
            let origin = RawOrigin::script(move |mut connection| async move {
                connection.read_request().await?;
                connection.write_all(AGREED).await?;
                connection.read_exact(4).await?;
                connection.write_all("hey").await?;
                match act {
                    "idle" => return connection.hold().await,
                    "reset" => {
                        connection.read_exact(1).await?;
                        connection.reset();
                    }
                    _ => {}
                }
                Ok(())
            });
            let (_proxy, server, lines) = start(&origin, is_typed);
            let mut client = RawClient::connect(server.local_addrs()[0]).await.unwrap();
            client.write_all(HANDSHAKE).await.unwrap();
            client.read_response_head().await.unwrap();
            client.write_all("ping").await.unwrap();
            assert_eq!(client.read_exact(3).await.unwrap(), b"hey");
            let mut sent = 4;
            if act == "reset" {
                client.write_all("!").await.unwrap();
                sent = 5;
            }
            if act == "close" {
                drop(client);
            }
            eventually("the end is logged", async || lines.0.lock().len() == 1).await;
            let line = lines.0.lock()[0];
            let seen = line.2.map(ForwardErrorKind::as_str);
            assert_eq!((line.0, line.1), (Some(101), outcome), "{act}");
            assert_eq!((seen, line.3, line.4), (error, cause, (sent, 3)), "{act}");
        }
    }
}

/// A tunnel within HTTP/2 is logged at its end, too, with the bytes that passed.
#[cfg(feature = "http2")]
#[tokio::test]
async fn a_tunnel_of_a_stream_is_logged_with_what_passed() {
    use crate::server::streams::Client;

    for (act, outcome, cause) in [
        ("idle", Outcome::Failed, Some(Cause::IdleTunnel)),
        ("close", Outcome::Complete, None),
    ] {
        for is_typed in [false, true] {
            let origin = RawOrigin::script(move |mut connection| async move {
                let head = connection.read_request().await?;
                let key = head.header("sec-websocket-key").unwrap_or_default();
                let accept = testkit::origin::websocket_accept(key);
                let head =
                    "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket";
                let agreed = format!("{head}\r\nSec-WebSocket-Accept: {accept}\r\n\r\n");
                connection.write_all(agreed).await?;
                connection.read_exact(4).await?;
                connection.write_all("hey").await?;
                match act {
                    "idle" => connection.hold().await,
                    _ => Ok(()),
                }
            });
            let (_proxy, server, lines) = start(&origin, is_typed);
            let mut client = Client::connect(server.local_addrs()[0]).await;
            let mut request = http::Request::builder()
                .method("CONNECT")
                .uri("http://h/tunnel")
                .header("sec-websocket-version", "13")
                .body(())
                .unwrap();
            let protocol = h2::ext::Protocol::from_static("websocket");
            request.extensions_mut().insert(protocol);
            // The server's settings allow it.
            eventually("extended CONNECT", async || {
                client.sender.is_extended_connect_protocol_enabled()
            })
            .await;
            let (response, mut stream) = client.begin(request).await;
            let response = guarded("a tunnel", response).await.unwrap();
            assert_eq!(response.status(), 200);
            stream.send_data("ping".into(), false).unwrap();
            let mut body = response.into_body();
            let data = guarded("data", body.data()).await;
            assert_eq!(data.unwrap().unwrap(), "hey");
            if act == "close" {
                stream.send_data(bytes::Bytes::new(), true).unwrap();
            }
            eventually("the end is logged", async || lines.0.lock().len() == 1).await;
            let line = lines.0.lock()[0];
            assert_eq!(
                (line.0, line.1, line.3),
                (Some(200), outcome, cause),
                "{act}"
            );
            assert_eq!(line.4, (4, 3), "{act}");
        }
    }
}
