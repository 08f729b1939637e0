//! The client behind trusted proxies and load balancers, on both paths and over both versions of HTTP.

use std::net::SocketAddr;
use std::num::NonZeroUsize;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use proxy_runtime::server::{
    AccessLogSink, AccessRecord, Limits, Listener, ListenerRules, ProxyProtocol, Server,
    ServerHandle,
};
use proxy_runtime::{ClientField, Proxy, TrustedProxies};
use serde_json::{Value, json};
use testkit::raw::{RawClient, RawOrigin};
use testkit::time::{eventually, guarded};

use crate::server::support::loopback;
use crate::server::ways::{Disguised, OK, proxy};

/// The clients and schemes that the access log names.
#[derive(Clone, Debug, Default)]
struct Log(Arc<Mutex<Vec<String>>>);

impl AccessLogSink for Log {
    fn log(&self, record: &AccessRecord<'_>) {
        let scheme = if record.tls { "https" } else { "http" };
        let remote = record.remote.unwrap();
        self.0.lock().push(format!("{scheme} {}", remote.ip()));
    }
}

struct Served {
    server: ServerHandle,
    origin: RawOrigin,
    log: Log,
}

impl Served {
    fn new(is_typed: bool, listener: Listener, route: &Value, limits: Limits) -> Self {
        let origin = RawOrigin::answering(OK);
        let proxy: Proxy = proxy(&origin, route, "");
        let log = Log::default();
        let server = match is_typed {
            false => Server::for_proxy(&proxy),
            true => Server::builder(move || Disguised(proxy.service())),
        };
        let server = server
            .with_workers(NonZeroUsize::MIN)
            .with_access_log(Arc::new(log.clone()))
            .with_limits(limits)
            .with_listener(listener);
        Self {
            server: server.bind().unwrap().start().unwrap(),
            origin,
            log,
        }
    }

    fn address(&self) -> SocketAddr {
        self.server.local_addrs()[0]
    }

    /// The fields with this name that the destination got last.
    fn told(&self, name: &str) -> Vec<String> {
        let recordings = self.origin.recordings();
        let text = recordings.last().map(|recording| recording.text());
        let text = text.unwrap_or_default().to_lowercase();
        let head = text.rsplit("get /").next().unwrap_or_default().to_owned();
        let lines = head.lines().filter_map(|line| line.split_once(": "));
        let lines = lines.filter(|(known, _)| *known == name);
        lines.map(|(_, value)| value.to_owned()).collect()
    }

    async fn logged(&self, expected: &str) {
        let is_there = async || self.log.0.lock().last().map(String::as_str) == Some(expected);
        eventually(expected, is_there).await;
    }
}

fn trusting(network: &str, field: ClientField) -> Listener {
    let mut rules = ListenerRules::default();
    rules.trusted_proxies = TrustedProxies::new([network.parse().unwrap()], field);
    assert!(rules.trusted_proxies.is_some());
    Listener::http(loopback()).with_rules(rules)
}

const REPORT: &str = "GET /a HTTP/1.1\r\nHost: h\r\nX-Forwarded-For: 6.6.6.6, 192.0.2.1\r\nX-Forwarded-For: 127.0.0.9\r\n\
                      X-Forwarded-Proto: https\r\nX-Forwarded-Host: shop.example\r\n\r\n";

#[tokio::test]
async fn a_trusted_proxy_reports_the_client_to_everybody() {
    let x_forwarded = json!({ "Transforms": [{ "X-Forwarded": "Append", "Host": "Off" }] });
    let forwarded = json!({ "Transforms": [{ "Forwarded": "for,proto", "ForFormat": "Ip" }] });
    for is_typed in [false, true] {
        for (network, field, client, scheme, host) in [
            (
                "127.0.0.0/8",
                ClientField::XForwardedFor,
                "192.0.2.1",
                "https",
                vec!["shop.example"],
            ),
            (
                "10.0.0.0/8",
                ClientField::XForwardedFor,
                "127.0.0.1",
                "http",
                vec![],
            ),
            (
                "127.0.0.0/8",
                ClientField::Forwarded,
                "127.0.0.1",
                "http",
                vec![],
            ),
        ] {
            for route in [&x_forwarded, &forwarded] {
                let listener = trusting(network, field);
                let served = Served::new(is_typed, listener, route, Limits::default());
                // Requests of one connection have clients of their own.
                let mut sender = RawClient::connect(served.address()).await.unwrap();
                for request in [REPORT, GET, REPORT] {
                    let (client, scheme) = match request == REPORT {
                        true => (client, scheme),
                        false => ("127.0.0.1", "http"),
                    };
                    sender.write_all(request).await.unwrap();
                    let answer = guarded("an answer", sender.read_response()).await;
                    assert_eq!(answer.unwrap().status(), 200);
                    if route == &x_forwarded {
                        assert_eq!(served.told("x-forwarded-for"), [client]);
                        assert_eq!(served.told("x-forwarded-proto"), [scheme]);
                        let host = if request == REPORT { &host[..] } else { &[] };
                        assert_eq!(served.told("x-forwarded-host"), host);
                    } else {
                        let expected = format!("proto={scheme};for={client}");
                        assert_eq!(served.told("forwarded"), [expected]);
                    }
                    served.logged(&format!("{scheme} {client}")).await;
                }
            }
        }
    }
}

#[cfg(feature = "http2")]
#[tokio::test]
async fn streams_of_one_connection_have_clients_of_their_own() {
    use http::HeaderValue;

    use crate::server::streams::{Client, get};

    for is_typed in [false, true] {
        let listener = trusting("127.0.0.0/8", ClientField::XForwardedFor);
        let served = Served::new(is_typed, listener, &json!({}), Limits::default());
        let mut client = Client::connect(served.address()).await;
        for (reported, expected) in [
            (Some("192.0.2.1"), "192.0.2.1"),
            (Some("6.6.6.6, 192.0.2.2"), "192.0.2.2"),
            (None, "127.0.0.1"),
        ] {
            let mut request = get("/a");
            let headers = request.headers_mut();
            if let Some(reported) = reported {
                headers.insert("x-forwarded-for", HeaderValue::from_static(reported));
                headers.insert("x-forwarded-proto", HeaderValue::from_static("https"));
            }
            let answer = guarded("an answer", client.send(request, None, None)).await;
            assert_eq!(answer.unwrap().status, 200);
            let scheme = if reported.is_some() { "https" } else { "http" };
            assert_eq!(served.told("x-forwarded-for"), [expected]);
            assert_eq!(served.told("x-forwarded-proto"), [scheme]);
            served.logged(&format!("{scheme} {expected}")).await;
        }
    }
}

/// Longer than any guard.
const NEVER: Duration = Duration::from_secs(3600);

fn proxied(from: &str, limit: Duration) -> Listener {
    let protocol = ProxyProtocol::new([from.parse().unwrap()]);
    Listener::http(loopback()).with_proxy_protocol(protocol.with_timeout(limit))
}

const HEADER: &str = "PROXY TCP4 192.0.2.1 10.0.0.7 4711 80\r\n";
const GET: &str = "GET /a HTTP/1.1\r\nHost: h\r\n\r\n";

#[tokio::test]
async fn a_load_balancer_names_the_client_of_a_connection() {
    for is_typed in [false, true] {
        let served = Served::new(
            is_typed,
            proxied("127.0.0.1", NEVER),
            &json!({}),
            Limits::default(),
        );
        // In one piece, and byte by byte.
        for is_slow in [false, true] {
            let mut client = RawClient::connect(served.address()).await.unwrap();
            let bytes = [HEADER, GET, GET].concat();
            let pause = Duration::from_millis(1);
            match is_slow {
                false => client.write_all(&bytes).await.unwrap(),
                true => client.write_slowly(&bytes, 1, pause).await.unwrap(),
            }
            for _ in 0..2 {
                let answer = guarded("an answer", client.read_response()).await;
                assert_eq!(answer.unwrap().status(), 200);
                assert_eq!(served.told("x-forwarded-for"), ["192.0.2.1"]);
                served.logged("http 192.0.2.1").await;
            }
        }
        // A health check of the load balancer itself.
        let request = ["PROXY UNKNOWN\r\n", GET].concat();
        let answer = guarded("an answer", RawClient::exchange(served.address(), request)).await;
        assert_eq!(answer.unwrap().status(), 200);
        assert_eq!(served.told("x-forwarded-for"), ["127.0.0.1"]);
    }
}

#[tokio::test]
async fn without_a_valid_header_in_time_a_connection_is_closed() {
    let second = |from: &str| proxied(from, Duration::from_secs(1));
    let served = Served::new(false, second("127.0.0.1"), &json!({}), Limits::default());
    let strangers = Served::new(false, second("10.0.0.0/8"), &json!({}), Limits::default());
    let request = [HEADER, GET].concat();
    for (address, sent) in [
        (served.address(), GET),
        (
            served.address(),
            "\x16\x03\x01\x02\x00\x01\x00\x01\x00\x01\x03\x03",
        ),
        (served.address(), "PROXY TCP4 192.0.2.1 "),
        (served.address(), ""),
        (strangers.address(), &request),
    ] {
        let mut client = RawClient::connect(address).await.unwrap();
        client.write_all(sent).await.unwrap();
        guarded(sent, client.wait_for_close()).await.unwrap();
        assert_eq!(client.buffered(), b"", "nothing is said to {sent}");
    }
    let counted = |served: &Served| served.server.metrics().counts().proxy_header_failures;
    eventually("each is counted", async || {
        (counted(&served), counted(&strangers)) == (4, 1)
    })
    .await;
    assert!(served.origin.recordings().is_empty() && strangers.origin.recordings().is_empty());
}

#[tokio::test]
async fn whom_the_header_names_may_be_a_trusted_proxy() {
    let mut rules = ListenerRules::default();
    let networks = ["192.0.2.0/24".parse().unwrap()];
    rules.trusted_proxies = TrustedProxies::new(networks, ClientField::XForwardedFor);
    let served = Served::new(
        false,
        proxied("127.0.0.1", NEVER).with_rules(rules),
        &json!({}),
        Limits::default(),
    );
    for (header, client) in [
        (HEADER, "198.51.100.1"),
        // The load balancer itself is none.
        ("PROXY UNKNOWN\r\n", "127.0.0.1"),
    ] {
        let get = "GET /a HTTP/1.1\r\nHost: h\r\nX-Forwarded-For: 198.51.100.1\r\n\r\n";
        let request = [header, get].concat();
        let answer = guarded("an answer", RawClient::exchange(served.address(), request)).await;
        assert_eq!(answer.unwrap().status(), 200);
        assert_eq!(served.told("x-forwarded-for"), [client]);
    }
}

/// The limit of connections counts clients, not their load balancer.
#[tokio::test]
async fn connections_are_limited_by_the_client_that_the_header_names() {
    let mut limits = Limits::default();
    limits.connections_per_address = Some(1);
    let served = Served::new(false, proxied("127.0.0.1", NEVER), &json!({}), limits);
    let open = async |client: &str| {
        let header = format!("PROXY TCP4 {client} 10.0.0.7 4711 80\r\n");
        let mut connection = RawClient::connect(served.address()).await.unwrap();
        connection.write_all([&header, GET].concat()).await.unwrap();
        let answer = guarded("an answer", connection.read_response()).await;
        (answer.is_ok(), connection)
    };
    let (is_served, _first) = open("192.0.2.1").await;
    assert!(is_served);
    let (is_served, _) = open("192.0.2.1").await;
    assert!(!is_served);
    let (is_served, _other) = open("192.0.2.2").await;
    assert!(is_served);
}

#[cfg(all(feature = "tls", feature = "http2"))]
#[tokio::test]
async fn the_header_is_in_front_of_tls_and_of_http2() {
    use proxy_runtime::server::TlsServerConfig;
    use testkit::certs::{Alpn, CertificateAuthority, provider};
    use tokio::io::AsyncWriteExt;

    let authority = CertificateAuthority::new("test");
    let identity = authority.issue(&["a.example"]);
    let store = crate::server::tls::store(&[&identity]);
    let tls = TlsServerConfig::new(provider(), store).unwrap();
    let protocol = ProxyProtocol::new(["127.0.0.1".parse().unwrap()]);
    for listener in [Listener::https(loopback(), tls), Listener::http(loopback())] {
        let is_tls = format!("{listener:?}").contains("tls: Some");
        let listener = listener.with_proxy_protocol(protocol.clone());
        let served = Served::new(false, listener, &json!({}), Limits::default());
        let mut socket = tokio::net::TcpStream::connect(served.address())
            .await
            .unwrap();
        let header =
            b"\r\n\r\n\0\r\nQUIT\n\x21\x11\0\x0c\xc0\0\x02\x01\x0a\0\0\x07\x12\x67\x01\xbb";
        socket.write_all(header).await.unwrap();
        let status = match is_tls {
            false => stream_over(socket).await,
            true => {
                let config = authority.client_config(Alpn::Http2);
                let connector = tokio_rustls::TlsConnector::from(Arc::new(config));
                let name = "a.example".try_into().unwrap();
                stream_over(connector.connect(name, socket).await.unwrap()).await
            }
        };
        assert_eq!(status, 200);
        assert_eq!(served.told("x-forwarded-for"), ["192.0.2.1"]);
        let scheme = if is_tls { "https" } else { "http" };
        served.logged(&format!("{scheme} 192.0.2.1")).await;
    }
}

/// The status of one request over HTTP/2.
#[cfg(all(feature = "tls", feature = "http2"))]
async fn stream_over<S>(socket: S) -> u16
where
    S: tokio::io::AsyncRead + tokio::io::AsyncWrite + Unpin + Send + 'static,
{
    let (mut client, connection) = h2::client::handshake(socket).await.unwrap();
    tokio::spawn(async move { drop(connection.await) });
    let request = http::Request::get("https://a.example/a").body(()).unwrap();
    let (answer, _) = client.send_request(request, true).unwrap();
    guarded("an answer", answer)
        .await
        .unwrap()
        .status()
        .as_u16()
}
