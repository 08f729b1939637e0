//! A server that runs a proxy.

use std::io::{self, Write};
use std::net::SocketAddr;
use std::num::NonZeroUsize;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use proxy_runtime::Proxy;
use proxy_runtime::proxy_model::config::ProxyConfig;
use proxy_runtime::proxy_model::{CompileOptions, Snapshot};
use proxy_runtime::server::{
    AccessLogFormat, AccessLogSink, AccessLogWriter, DataRate, Limits, Listener, LogOutput,
    QueryLogging, Server, ServerHandle,
};
use serde_json::{Value, json};
use testkit::body;
use testkit::client::{Connection, Message, Protocol, WebSocket};
use testkit::faults::{RefusingPort, closes_mid_body};
use testkit::origin::{Echo, Origin};
use testkit::raw::{Closed, RawClient};
use testkit::time::eventually;

use crate::changed;
use crate::server::support::{connections, loopback};

/// A proxy to `url` behind a server of one worker.
fn serve(url: &str, log: Option<Arc<dyn AccessLogSink>>) -> (ServerHandle, SocketAddr) {
    serve_with(url, log, Limits::default())
}

fn serve_with(
    url: &str,
    log: Option<Arc<dyn AccessLogSink>>,
    limits: Limits,
) -> (ServerHandle, SocketAddr) {
    let config = json!({
        "Routes": { "r1": { "ClusterId": "c1", "Match": { "Path": "/{**rest}" } } },
        "Clusters": { "c1": { "Destinations": { "d1": { "Address": url } } } },
    });
    let config = ProxyConfig::from_json(&config.to_string()).unwrap();
    let (snapshot, _) = Snapshot::compile(config, &CompileOptions::default()).unwrap();
    let builder = Proxy::builder().snapshot(Arc::new(snapshot));
    let (proxy, driver) = builder.build().unwrap();
    tokio::spawn(driver);
    let mut server = Server::for_proxy(&proxy)
        .with_workers(NonZeroUsize::MIN)
        .with_limits(limits)
        .with_listener(Listener::http(loopback()));
    if let Some(log) = log {
        server = server.with_access_log(log);
    }
    let server = server.bind().unwrap().start().unwrap();
    let address = server.local_addrs()[0];
    (server, address)
}

#[derive(Clone, Default)]
struct Output(Arc<Mutex<Vec<u8>>>);

impl Write for Output {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Output {
    fn text(&self) -> String {
        String::from_utf8(self.0.lock().clone()).unwrap()
    }

    /// The lines, once there are `count`.
    async fn lines(&self, count: usize) -> Vec<Value> {
        let lines = || self.text().lines().count();
        eventually(format!("{count} lines"), async || lines() >= count).await;
        let text = self.text();
        text.lines()
            .map(|line| serde_json::from_str(line).unwrap())
            .collect()
    }
}

fn log(output: &Output) -> Arc<dyn AccessLogSink> {
    let (format, query) = (AccessLogFormat::Json, QueryLogging::Names);
    Arc::new(AccessLogWriter::start(LogOutput::stream(output.clone()), format, query).unwrap())
}

#[tokio::test]
async fn the_log_says_where_a_request_went_and_nothing_secret() {
    let origin = Origin::echo();
    let output = Output::default();
    let (_server, address) = serve(&origin.url(), Some(log(&output)));
    for (line, mut client) in connections(address).await.into_iter().enumerate() {
        let request = client
            .request("POST", "/a/b?token=s3cret")
            .header("authorization", "Bearer s3cret")
            .header("cookie", "session=s3cret")
            .header("user-agent", "me \"myself\"")
            .body(body::full("hello"))
            .unwrap();
        let answer = client.send(request).await.unwrap();
        assert_eq!(answer.status, 200);
        let lines = output.lines(line + 1).await;
        let expected = json!({
            "remote": client.local_addr().to_string(),
            "scheme": "http",
            "method": "POST",
            "host": address.to_string(),
            "path": "/a/b?token=…",
            "protocol": match client.protocol() {
                Protocol::Http1 => "HTTP/1.1",
                Protocol::Http2 => "HTTP/2",
            },
            "status": 200,
            "bytes_received": 5,
            "bytes_sent": answer.body.len(),
            "outcome": "complete",
            "route": "r1",
            "cluster": "c1",
            "destination": "d1",
            "user_agent": "me \"myself\"",
        });
        for (name, value) in expected.as_object().unwrap() {
            assert_eq!(&lines[line][name], value, "{name}");
        }
        let milliseconds = |name| lines[line][name].as_f64().unwrap();
        assert!(milliseconds("upstream_ms") <= milliseconds("duration_ms"));
    }
    assert!(!output.text().contains("s3cret"), "{}", output.text());
}

#[tokio::test]
async fn the_log_says_what_went_wrong() {
    let output = Output::default();
    let dead = RefusingPort::new();
    let (_dead, address) = serve(&dead.url(), Some(log(&output)));
    let mut client = Connection::http1(address).await.unwrap();
    assert_eq!(client.get("/").await.unwrap().status, 502);
    let lines = output.lines(1).await;
    assert_eq!(lines[0]["status"], 502);
    assert_eq!(lines[0]["error"], "Request");

    let output = Output::default();
    let broken = closes_mid_body();
    let (_broken, address) = serve(&broken.url(), Some(log(&output)));
    let mut client = Connection::http1(address).await.unwrap();
    assert!(client.get("/").await.unwrap_err().truncated().is_some());
    let lines = output.lines(1).await;
    assert_eq!(lines[0]["status"], 200);
    assert_eq!(lines[0]["outcome"], "failed");
    assert_eq!(lines[0]["error"], "ResponseBodyDestination");
}

#[tokio::test]
async fn the_client_is_told_why_its_upload_was_rejected() {
    let origin = Origin::echo();
    let output = Output::default();
    let rate = DataRate::new(240, Duration::from_millis(100));
    let limits = changed(|limits: &mut Limits| {
        limits.body_bytes = Some(1000);
        limits.data_rate = Some(rate);
    });
    let (_server, address) = serve_with(&origin.url(), Some(log(&output)), limits);
    let head = "POST / HTTP/1.1\r\nHost: t.example\r\nTransfer-Encoding: chunked\r\n\r\n";
    for (body, status) in [("1000\r\n", 408), ("3e9\r\n", 413)] {
        let mut client = RawClient::connect(address).await.unwrap();
        client.write_all(head).await.unwrap();
        client.write_all(body).await.unwrap();
        if status == 413 {
            client.write_all(vec![b'x'; 1001]).await.unwrap();
        }
        let response = client.read_response().await.unwrap();
        assert_eq!(response.status(), status);
        assert_eq!(client.assert_closed().await, Closed::Ended);
    }
    let lines = output.lines(2).await;
    for (line, status) in lines.iter().zip([408, 413]) {
        assert_eq!(line["status"], status);
        assert_eq!(line["route"], "r1");
        assert_eq!(line["error"], "RequestBodyClient");
        assert_eq!(line["refusal"], "the request's body was rejected");
    }
}

#[tokio::test]
async fn the_origin_is_told_who_the_client_is() {
    let origin = Origin::echo();
    let (_server, address) = serve(&origin.url(), None);
    let mut client = Connection::http1(address).await.unwrap();
    let echo: Echo = client.get("/a").await.unwrap().json();
    assert_eq!(echo.header("x-forwarded-for"), ["127.0.0.1"]);
    assert_eq!(echo.header("x-forwarded-proto"), ["http"]);
    assert_eq!(echo.header("x-forwarded-host"), [address.to_string()]);
}

#[tokio::test]
async fn websockets_pass_over_both_protocols() {
    let origin = Origin::upgrade_echo();
    let (server, address) = serve(&origin.url(), None);
    for connection in connections(address).await {
        let mut socket = WebSocket::over(connection, "/chat").await.unwrap();
        for text in ["one", "two"] {
            socket.send(Message::text(text)).await.unwrap();
            assert_eq!(socket.receive().await.unwrap(), Some(Message::text(text)));
        }
        socket.close().await.unwrap();
    }
    eventually("the connections to be gone", async || {
        server.metrics().counts().active_connections == 0
    })
    .await;
}

#[tokio::test]
async fn tunnels_are_cut_at_the_deadline() {
    let origin = Origin::upgrade_echo();
    let (server, address) = serve(&origin.url(), None);
    let mut sockets = Vec::new();
    for connection in connections(address).await {
        sockets.push(WebSocket::over(connection, "/chat").await.unwrap());
    }
    let report = server.shutdown(Duration::from_millis(50)).await;
    assert_eq!((report.drained, report.cut), (0, sockets.len() as u64));
    for socket in &mut sockets {
        assert!(socket.receive().await.is_err());
    }
}

/// Case 170: bytes after a rejected upgrade are a request, and nothing else.
#[tokio::test]
async fn a_rejected_upgrade_is_no_tunnel() {
    let origin = Origin::echo();
    let (_server, address) = serve(&origin.url(), None);
    let mut client = RawClient::connect(address).await.unwrap();
    client
        .write_all(
            "GET /1 HTTP/1.1\r\nHost: t.example\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\
             Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n\r\n\
             GET /2 HTTP/1.1\r\nHost: t.example\r\nConnection: close\r\n\r\n",
        )
        .await
        .unwrap();
    for path in ["/1", "/2"] {
        let response = client.read_response().await.unwrap();
        assert_eq!(response.status(), 200);
        let echo: Echo = serde_json::from_slice(&response.body).unwrap();
        assert_eq!(echo.path_and_query(), path);
    }
    assert_eq!(client.assert_closed().await, Closed::Ended);
}
