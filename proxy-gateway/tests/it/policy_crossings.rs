//! Policies of the gateway where they meet other rules: the client behind a proxy, probes, retries, affinity,
//! redirects, and all kinds of requests.

use std::net::SocketAddr;

use serde_json::{Value, json};
use testkit::body;
use testkit::client::{ClientError, Connection, WebSocket};
use testkit::origin::Origin;
use testkit::peers::{PeerProcess, free_port};
use testkit::raw::{RawClient, RawOrigin};
use testkit::time::eventually;

use crate::common::{ConfigFile, address_after, start};

/// The last line that `run` prints at its start.
const READY: &str = "a second Ctrl-C stops at once";

const EMPTY: &str = "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n";

struct Gateway {
    _process: PeerProcess,
    _file: ConfigFile,
    address: SocketAddr,
}

impl Gateway {
    /// Starts one with the sections of `config`; its only listener has the keys of `listener`.
    async fn start(listener: Value, mut config: Value) -> Self {
        config["Listeners"]["web"] = listener;
        config["Listeners"]["web"]["Address"] = "127.0.0.1:0".into();
        config["Admin"]["Address"] = "127.0.0.1:0".into();
        let file = ConfigFile::new(&config.to_string());
        let process = start(&["run", "--config", &file.argument()], READY).await;
        let address = address_after(&process.output(), "listening on http://");
        Self {
            _process: process,
            _file: file,
            address,
        }
    }

    /// The status and the head of the response to a GET with these headers, after `first` on the connection.
    async fn get(&self, first: &str, path: &str, headers: &[&str]) -> (u16, String) {
        let headers: String = headers.iter().map(|line| format!("{line}\r\n")).collect();
        let text = format!("{first}GET {path} HTTP/1.1\r\n{headers}Connection: close\r\n\r\n");
        let response = RawClient::exchange(self.address, text)
            .await
            .expect("it answers");
        let head = String::from_utf8_lossy(&response.head.bytes).to_lowercase();
        (response.status(), head)
    }
}

fn destination(address: SocketAddr) -> Value {
    json!({ "Destinations": { "1": { "Address": format!("http://{address}/") } } })
}

/// Ways in which a proxy in front says who the client is.
#[derive(Clone, Copy, Debug)]
enum Proxy {
    Header,
    Connection,
}

impl Proxy {
    fn listener(self) -> Value {
        match self {
            Self::Header => json!({ "TrustedProxies": { "Networks": ["127.0.0.0/8"] } }),
            Self::Connection => json!({ "ProxyProtocol": { "From": ["127.0.0.0/8"] } }),
        }
    }

    /// Requests `path` for this client. It claims to be another one as well.
    async fn get(self, gateway: &Gateway, client: &str, path: &str) -> (u16, String) {
        match self {
            Self::Header => {
                let forwarded = format!("X-Forwarded-For: 203.0.113.200, {client}");
                gateway.get("", path, &["Host: a", &forwarded]).await
            }
            Self::Connection => {
                let first = format!("PROXY TCP4 {client} 127.0.0.1 4000 80\r\n");
                let forwarded = "X-Forwarded-For: 203.0.113.200";
                gateway.get(&first, path, &["Host: a", forwarded]).await
            }
        }
    }
}

#[tokio::test]
async fn policies_see_the_client_behind_a_proxy() {
    for proxy in [Proxy::Header, Proxy::Connection] {
        let origin = RawOrigin::answering(EMPTY);
        let service = RawOrigin::answering("HTTP/1.1 204 No Content\r\n\r\n");
        let config = json!({
            "Policies": {
                "RateLimiter": { "once": {
                    "Kind": "FixedWindow", "PermitLimit": 1, "Window": "1h", "Partition": { "By": "Address" }
                } },
                "Authorization": {
                    "near": { "Networks": { "Allow": ["203.0.113.0/24"] } },
                    "ask": { "ForwardAuth": { "Address": format!("http://{}/verify", service.addr()) } }
                }
            },
            "ReverseProxy": {
                "Routes": {
                    "once": { "ClusterId": "c", "Match": { "Path": "/once" }, "RateLimiterPolicy": "once" },
                    "near": { "ClusterId": "c", "Match": { "Path": "/near" }, "AuthorizationPolicy": "near" },
                    "ask": { "ClusterId": "c", "Match": { "Path": "/ask" }, "AuthorizationPolicy": "ask" }
                },
                "Clusters": { "c": destination(origin.addr()) }
            }
        });
        let gateway = Gateway::start(proxy.listener(), config).await;
        for client in ["203.0.113.1", "198.51.100.1"] {
            for status in [200, 429] {
                let (found, head) = proxy.get(&gateway, client, "/once").await;
                assert_eq!(found, status, "{proxy:?} {client}: {head}");
            }
        }
        for (client, status) in [("203.0.113.1", 200), ("198.51.100.1", 403)] {
            let (found, head) = proxy.get(&gateway, client, "/near").await;
            assert_eq!(found, status, "{proxy:?} {client}: {head}");
        }
        assert_eq!(proxy.get(&gateway, "198.51.100.1", "/ask").await.0, 200);
        let asked = service.recordings()[0].text().to_lowercase();
        assert!(
            asked.contains("\r\nx-forwarded-for: 198.51.100.1\r\n"),
            "{proxy:?}: {asked}"
        );
    }
}

#[tokio::test]
async fn probes_are_not_limited_and_a_retry_counts_once() {
    let origin = Origin::named("alive");
    let alive = origin.addr();
    let dead = free_port();
    let config = json!({
        "Policies": { "RateLimiter": {
            "Global": { "Kind": "FixedWindow", "PermitLimit": 2, "Window": "1h" }
        } },
        "ReverseProxy": {
            "Routes": {
                "retried": { "ClusterId": "retried", "Match": { "Path": "/retried" } },
                "probed": { "ClusterId": "probed", "Match": { "Path": "/probed" } }
            },
            "Clusters": {
                "retried": {
                    "LoadBalancingPolicy": "FirstAlphabetical",
                    "Destinations": {
                        "a": { "Address": format!("http://127.0.0.1:{dead}/") },
                        "b": { "Address": format!("http://{alive}/") }
                    }
                },
                "probed": {
                    "HealthCheck": { "Active": { "Enabled": true, "Interval": "100ms", "Path": "/health" } },
                    "Destinations": { "1": { "Address": format!("http://{alive}/") } }
                }
            }
        }
    });
    let gateway = Gateway::start(json!({}), config).await;
    // More probes than the limit permits requests.
    eventually("the destination is probed", async || {
        origin.traffic().requests() > 4
    })
    .await;
    let mut statuses = Vec::new();
    for path in ["/retried", "/retried", "/probed"] {
        statuses.push(gateway.get("", path, &["Host: a"]).await.0);
    }
    assert_eq!(statuses, [200, 200, 429]);
    let before = origin.traffic().requests();
    eventually("probes go on behind the limit", async || {
        origin.traffic().requests() > before + 2
    })
    .await;
}

#[tokio::test]
async fn a_rejected_request_gets_no_affinity_key_and_loses_none() {
    let origin = Origin::named("only");
    let mut cluster = destination(origin.addr());
    cluster["SessionAffinity"] =
        json!({ "Enabled": true, "Policy": "HashCookie", "AffinityKeyName": "k" });
    let config = json!({
        "Policies": { "RateLimiter": { "two": { "Kind": "FixedWindow", "PermitLimit": 2, "Window": "1h" } } },
        "ReverseProxy": {
            "Routes": { "r": { "ClusterId": "c", "Match": { "Path": "/" }, "RateLimiterPolicy": "two" } },
            "Clusters": { "c": cluster }
        }
    });
    let gateway = Gateway::start(json!({}), config).await;
    let (status, head) = gateway.get("", "/", &["Host: a"]).await;
    assert_eq!(status, 200);
    let (_, cookie) = head.split_once("\r\nset-cookie: ").expect("a key is given");
    let key = format!("Cookie: {}", cookie.split(';').next().unwrap_or_default());
    // Of the response the name was made lower case; the value of this policy is hexadecimal.
    for (headers, status) in [
        (&["Host: a", &key][..], 200),
        (&["Host: a", &key], 429),
        (&["Host: a"], 429),
    ] {
        let (found, head) = gateway.get("", "/", headers).await;
        assert_eq!(found, status, "{head}");
        assert!(!head.contains("set-cookie"), "{head}");
    }
}

#[tokio::test]
async fn a_redirect_follows_the_scheme_that_a_trusted_proxy_names() {
    let origin = RawOrigin::answering(EMPTY);
    let config = json!({ "ReverseProxy": {
        "Routes": {
            "secure": {
                "Order": -1, "Match": { "Hosts": ["*:80"] }, "Redirect": { "Scheme": "https", "Status": 308 }
            },
            "web": { "ClusterId": "c", "Match": { "Path": "/{**rest}" } }
        },
        "Clusters": { "c": destination(origin.addr()) }
    } });
    let trusted = Gateway::start(Proxy::Header.listener(), config.clone()).await;
    let (plain, secure) = ("X-Forwarded-Proto: http", "X-Forwarded-Proto: https");
    let (status, head) = trusted
        .get("", "/a?b", &["Host: shop.example", plain])
        .await;
    assert_eq!(status, 308, "{head}");
    assert!(
        head.contains("\r\nlocation: https://shop.example/a?b\r\n"),
        "{head}"
    );
    let (status, head) = trusted
        .get("", "/a?b", &["Host: shop.example", secure])
        .await;
    assert_eq!(status, 200, "where it leads there is no other one: {head}");

    // A client that is not trusted does not get around the redirect.
    let open = Gateway::start(json!({}), config).await;
    let (status, head) = open.get("", "/a?b", &["Host: shop.example", secure]).await;
    assert_eq!(status, 308, "{head}");
}

/// The ways in which a request comes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Http1,
    Http2,
    Grpc,
    SocketOverHttp1,
    SocketOverHttp2,
}

impl Kind {
    const ALL: [Self; 5] = [
        Self::Http1,
        Self::Http2,
        Self::Grpc,
        Self::SocketOverHttp1,
        Self::SocketOverHttp2,
    ];

    /// The status of a request that reaches the destination, which only accepts WebSockets.
    fn admitted(self) -> (u16, Option<&'static str>) {
        match self {
            Self::Http1 | Self::Http2 | Self::Grpc => (426, None),
            Self::SocketOverHttp1 => (101, None),
            Self::SocketOverHttp2 => (200, None),
        }
    }

    /// The response to a request that is rejected with `status`, which is `grpc` to clients of gRPC.
    fn rejected(self, status: u16, grpc: &'static str) -> (u16, Option<&'static str>) {
        match self {
            Self::Grpc => (200, Some(grpc)),
            _ => (status, None),
        }
    }

    async fn connect(self, gateway: SocketAddr) -> Connection {
        let connection = match self {
            Self::Http1 | Self::SocketOverHttp1 => Connection::http1(gateway).await,
            Self::Http2 | Self::Grpc | Self::SocketOverHttp2 => Connection::http2(gateway).await,
        };
        connection.expect("it listens")
    }

    /// The status and `grpc-status` of the response to a request with these credentials.
    async fn send(
        self,
        gateway: SocketAddr,
        path: &str,
        authorization: Option<&str>,
    ) -> (u16, Option<String>) {
        let mut client = self.connect(gateway).await;
        let request = match self {
            Self::Http1 | Self::Http2 => client.request("GET", path),
            Self::Grpc => client
                .request("POST", path)
                .header("content-type", "application/grpc")
                .header("te", "trailers"),
            Self::SocketOverHttp1 => client
                .request("GET", path)
                .header("connection", "Upgrade")
                .header("upgrade", "websocket")
                .header("sec-websocket-version", "13")
                .header("sec-websocket-key", "dGhlIHNhbXBsZSBub25jZQ=="),
            Self::SocketOverHttp2 => client
                .request("CONNECT", path)
                .extension(hyper::ext::Protocol::from_static("websocket"))
                .header("sec-websocket-version", "13"),
        };
        let request = match authorization {
            Some(value) => request.header("authorization", value),
            None => request,
        };
        let request = request.body(body::empty()).expect("it is a request");
        let answer = match self {
            Self::SocketOverHttp1 | Self::SocketOverHttp2 => match client.upgrade(request).await {
                Ok((response, _)) => return (response.status().as_u16(), None),
                Err(ClientError::NotUpgraded(answer)) => *answer,
                Err(error) => panic!("{self:?} {path}: {error}"),
            },
            _ => {
                let answer = client.send(request).await;
                answer.unwrap_or_else(|error| panic!("{self:?} {path}: {error:?}"))
            }
        };
        let grpc = answer.header("grpc-status").map(str::to_owned);
        (answer.status.as_u16(), grpc)
    }
}

/// Every kind of policy admits and rejects requests of every kind.
#[tokio::test]
async fn policies_judge_all_kinds_of_requests() {
    let origin = Origin::upgrade_echo();
    let service = RawOrigin::script(|mut connection| async move {
        loop {
            let head = connection.read_request().await?;
            let uri = head.header("x-forwarded-uri").unwrap_or_default();
            let response = match uri.contains("pass") {
                true => "HTTP/1.1 204 No Content\r\n\r\n",
                false => "HTTP/1.1 401 Unauthorized\r\nContent-Length: 0\r\n\r\n",
            };
            connection.write_all(response).await?;
        }
    });
    let route = |path: &str, kind: &str, policy: &str| json!({ "ClusterId": "c", "Match": { "Path": path }, kind: policy });
    let config = json!({
        "Policies": {
            "Authorization": {
                "known": { "Basic": { "Realm": "staff", "Users": {
                    "ann": "$2b$04$qkrbn6vpAWkcZyG9mTSkouxvnWckGj9p9zipKfj.gJxT2RkWITV7q"
                } } },
                "near": { "Networks": { "Allow": ["127.0.0.0/8"] } },
                "far": { "Networks": { "Deny": ["127.0.0.0/8"] } },
                "ask": { "ForwardAuth": { "Address": format!("http://{}/", service.addr()) } }
            },
            "RateLimiter": { "once": {
                "Kind": "FixedWindow", "PermitLimit": 1, "Window": "1h",
                "Partition": { "By": "RouteValue", "Name": "kind" }
            } }
        },
        "ReverseProxy": {
            "Routes": {
                "known": route("/known", "AuthorizationPolicy", "known"),
                "near": route("/near", "AuthorizationPolicy", "near"),
                "far": route("/far", "AuthorizationPolicy", "far"),
                "ask": route("/ask", "AuthorizationPolicy", "ask"),
                "once": route("/once/{kind}", "RateLimiterPolicy", "once")
            },
            "Clusters": { "c": { "Destinations": { "1": { "Address": origin.url() } } } }
        }
    });
    let running = Gateway::start(json!({}), config).await;
    let gateway = running.address;
    // `ann:secret` and `ann:wrong`.
    let (right, wrong) = (Some("Basic YW5uOnNlY3JldA=="), Some("Basic YW5uOndyb25n"));
    for kind in Kind::ALL {
        let once = format!("/once/{kind:?}");
        for (path, authorization, expected) in [
            ("/known", None, kind.rejected(401, "16")),
            ("/known", wrong, kind.rejected(401, "16")),
            ("/known", right, kind.admitted()),
            ("/near", None, kind.admitted()),
            ("/far", right, kind.rejected(403, "7")),
            ("/ask", None, kind.rejected(401, "16")),
            ("/ask?pass", None, kind.admitted()),
            (&once, None, kind.admitted()),
            (&once, None, kind.rejected(429, "8")),
        ] {
            let (status, grpc) = kind.send(gateway, path, authorization).await;
            assert_eq!((status, grpc.as_deref()), expected, "{kind:?} {path}");
        }
    }
    // What was admitted carries messages.
    for kind in [Kind::SocketOverHttp1, Kind::SocketOverHttp2] {
        let connection = kind.connect(gateway).await;
        let opened = WebSocket::over(connection, "/ask?pass").await;
        let mut socket = opened.expect("it is admitted");
        socket.send("hello".into()).await.expect("it is open");
        let echo = socket.receive().await.expect("it is open");
        assert_eq!(echo, Some("hello".into()), "{kind:?}");
    }
}
