//! What `explain` says of a request is what a server does with it.

use std::net::SocketAddr;
use std::num::NonZeroUsize;
use std::sync::{Arc, LazyLock};

use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};
use proxy_runtime::Proxy;
use proxy_runtime::explain::{Explanation, Verdict, request_from_text};
use proxy_runtime::proxy_model::config::ProxyConfig;
use proxy_runtime::proxy_model::{CompileOptions, Snapshot};
use proxy_runtime::server::{Limits, Listener, Server, ServerHandle};
use serde_json::json;
use testkit::origin::{Echo, Origin};
use testkit::raw::RawClient;

use crate::server::support::loopback;

/// A request as a person describes it, and as it is sent.
#[derive(Clone, Debug)]
struct Asked {
    method: String,
    target: String,
    headers: Vec<String>,
}

/// What became of a request: the status, and if it was forwarded, the route that took it and the target that the destination saw.
#[derive(Debug, PartialEq, Eq)]
struct Fate {
    status: u16,
    forwarded: Option<(String, String)>,
}

impl Fate {
    /// Whether the server refuses it, before a route is asked.
    #[cfg(feature = "http2")]
    fn is_refusal(&self) -> bool {
        self.forwarded.is_none() && matches!(self.status, 400 | 405 | 414 | 417 | 431 | 501)
    }
}

struct Front {
    proxy: Proxy,
    server: ServerHandle,
    limits: Limits,
    _origin: Origin,
}

impl Front {
    fn start() -> Self {
        let origin = Origin::echo();
        let (proxy, driver) = Proxy::builder()
            .snapshot(snapshot(&origin))
            .max_request_body(1_000)
            .build()
            .unwrap();
        tokio::spawn(driver);
        let limits = Limits::default()
            .with_request_line(300)
            .with_header_fields(6);
        let server = Server::for_proxy(&proxy)
            .with_limits(limits.clone())
            .with_workers(NonZeroUsize::MIN)
            .with_listener(Listener::http(loopback()));
        let server = server.bind().unwrap().start().unwrap();
        Self {
            proxy,
            server,
            limits,
            _origin: origin,
        }
    }

    fn address(&self) -> SocketAddr {
        self.server.local_addrs()[0]
    }

    fn explained(&self, asked: &Asked) -> Fate {
        let url = format!("http://a.example{}", asked.target);
        let headers = asked.headers.iter().map(String::as_str);
        let read = request_from_text(&asked.method, &url, headers, &self.limits);
        let read = read.unwrap_or_else(|error| panic!("{asked:?}: {error}"));
        let explanation = read.explain(|parts, connection| self.proxy.explain(parts, connection));
        Fate {
            status: explanation.status.map_or(200, |status| status.as_u16()),
            forwarded: forwarded(&explanation),
        }
    }

    async fn over_http1(&self, asked: &Asked) -> Fate {
        let mut head = format!("{} {} HTTP/1.1\r\n", asked.method, asked.target);
        if !asked
            .headers
            .iter()
            .any(|header| header.starts_with("Host:"))
        {
            head.push_str("Host: a.example\r\n");
        }
        for header in &asked.headers {
            head.push_str(header);
            head.push_str("\r\n");
        }
        head.push_str("\r\n");
        let mut client = RawClient::connect(self.address()).await.unwrap();
        client.write_all(&head).await.unwrap();
        let answer = client.read_response_to(&asked.method).await;
        let answer = answer.unwrap_or_else(|error| panic!("{asked:?}: {error}"));
        let route = answer.header("x-route").map(str::to_owned);
        Fate {
            status: answer.status(),
            forwarded: route.map(|route| (route, seen(&answer.body))),
        }
    }

    /// `None` if the request cannot be said in HTTP/2, or this client does not say it.
    #[cfg(feature = "http2")]
    async fn over_http2(&self, asked: &Asked) -> Option<Fate> {
        let client = testkit::client::Connection::http2(self.address())
            .await
            .unwrap();
        let method: http::Method = asked.method.parse().ok()?;
        if method == http::Method::CONNECT {
            return None;
        }
        let uri = format!("http://a.example{}", asked.target)
            .parse::<http::Uri>()
            .ok()?;
        let same = uri
            .path_and_query()
            .is_some_and(|target| *target == *asked.target);
        let mut request = http::Request::builder().method(method).uri(uri);
        for header in &asked.headers {
            let (name, value) = header.split_once(':')?;
            if [
                "connection",
                "upgrade",
                "transfer-encoding",
                "host",
                "content-length",
            ]
            .iter()
            .any(|not| name.eq_ignore_ascii_case(not))
            {
                return None;
            }
            request = request.header(name, value.trim());
        }
        let request = request.body(testkit::body::empty()).ok().filter(|_| same)?;
        let mut client = client;
        let answer = client.send(request).await;
        let answer = answer.unwrap_or_else(|error| panic!("{asked:?}: {}", error.chain()));
        let route = answer.header("x-route").map(str::to_owned);
        Some(Fate {
            status: answer.status.as_u16(),
            forwarded: route.map(|route| (route, seen(&answer.body))),
        })
    }
}

fn forwarded(explanation: &Explanation) -> Option<(String, String)> {
    let is_matched = explanation.outcome == Verdict::Matched;
    assert_eq!(
        is_matched,
        explanation.forwarded.is_some(),
        "{explanation:?}"
    );
    let forwarded = explanation.forwarded.as_ref()?;
    let uri: http::Uri = forwarded.uri.parse().unwrap();
    let route = explanation.route.as_ref().unwrap();
    Some((
        route.as_str().to_owned(),
        uri.path_and_query().unwrap().to_string(),
    ))
}

/// The target that the destination saw.
fn seen(body: &[u8]) -> String {
    let echo: Echo = serde_json::from_slice(body).unwrap();
    echo.path_and_query().to_owned()
}

fn snapshot(origin: &Origin) -> Arc<Snapshot> {
    let route = |id: &str, path: &str, more: serde_json::Value| {
        let mut route = json!({
            "ClusterId": "c",
            "Match": { "Path": path },
            "Transforms": [{ "ResponseHeader": "X-Route", "Set": id }],
        });
        for (key, value) in more.as_object().unwrap() {
            route[key] = value.clone();
        }
        route
    };
    let config = json!({
        "Routes": {
            "admin": route("admin", "/admin/{**rest}", json!({ "Order": -1 })),
            "exact": route("exact", "/a/b", json!({})),
            "few": route("few", "/few/{x}", json!({ "MaxRequestBodySize": 10 })),
            "rest": route("rest", "/pub/{**rest}", json!({})),
            "nowhere": { "Match": { "Path": "/nowhere" } },
            "posted": { "ClusterId": "c", "Match": { "Path": "/posted", "Methods": ["POST"] } },
        },
        "Clusters": { "c": { "Destinations": { "d": { "Address": origin.url() } } } },
    });
    let config = ProxyConfig::from_json(&config.to_string()).unwrap();
    Arc::new(
        Snapshot::compile(config, &CompileOptions::default())
            .unwrap()
            .0,
    )
}

/// Methods, as they are told apart and as they are not.
fn method() -> impl Strategy<Value = String> {
    prop::sample::select(vec![
        "GET",
        "GET",
        "GET",
        "DELETE",
        "OPTIONS",
        "TRACE",
        "CONNECT",
        "get",
        "PURGE",
        "M!$%&'*+-.^_`|~",
    ])
    .prop_map(str::to_owned)
}

/// Paths that go up and down, and those that have no single reading.
fn target() -> impl Strategy<Value = String> {
    let segment = prop::sample::select(vec![
        "a", "b", "admin", "pub", "few", "nowhere", "posted", "", ".", "..", "%2e", "%2E%2e",
        "..;", "..;x=y", ".%2e", "%00", "%zz", "%", "%4", "%2f", "%252e", "a%20b", ";", "\"", "\\",
        "<", ">", "{", "}", "|", "^", "`", "~", "x y", "...", ":", "@", "a..", "%c3%bc", "%ff",
        "+",
    ]);
    let query = prop::sample::select(vec![
        "", "", "?", "?q=1", "?/../x", "?a=%zz", "?\"", "?a b", "?{}",
    ]);
    (prop::collection::vec(segment, 1..5), query)
        .prop_map(|(segments, query)| format!("/{}{query}", segments.join("/")))
}

fn headers() -> impl Strategy<Value = Vec<String>> {
    let header = prop::sample::select(vec![
        "X-A: b",
        "Accept: */*",
        "Expect: foo",
        "X_Forwarded_For: 1",
        "x-forwarded-for: 1",
        "X_Team: 1",
        "Content-Length: abc",
        "Content-Length: 0",
        "Name : v",
        ": v",
        "X-Empty:",
        "Host: b.example",
        "Connection: close",
        "Transfer-Encoding: gzip",
        "Upgrade: websocket",
        "Cookie: a=b",
        "X-Bin: \u{e9}",
        "Content_Length: 3",
        "TE: trailers",
        "X-Long: xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx",
    ]);
    prop::collection::vec(header.prop_map(str::to_owned), 0..4)
}

fn asked() -> impl Strategy<Value = Asked> {
    (method(), target(), headers()).prop_map(|(method, target, headers)| Asked {
        method,
        target,
        headers,
    })
}

static RUNTIME: LazyLock<tokio::runtime::Runtime> = LazyLock::new(|| {
    tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
        .unwrap()
});

async fn check(front: &Front, asked: &Asked) -> Result<(), TestCaseError> {
    let explained = front.explained(asked);
    let live = front.over_http1(asked).await;
    prop_assert_eq!(&explained, &live, "{:?}", asked);
    #[cfg(feature = "http2")]
    if let Some(live) = front.over_http2(asked).await {
        // Of several mistakes another one may be found first.
        let is_same = explained == live || explained.is_refusal() && live.is_refusal();
        prop_assert!(
            is_same,
            "{asked:?} over HTTP/2: {live:?}, not {explained:?}"
        );
    }
    Ok(())
}

#[test]
fn hostile_requests_are_explained_as_they_are_served() {
    let front = RUNTIME.block_on(async { Front::start() });
    let mut runner = TestRunner::new(Config {
        cases: 400,
        failure_persistence: None,
        ..Config::default()
    });
    let result = runner.run(&asked(), |asked| RUNTIME.block_on(check(&front, &asked)));
    result.unwrap_or_else(|error| panic!("{error}"));
}

/// Those of which it was known that the two differed.
#[test]
fn what_is_refused_first_is_explained() {
    let front = RUNTIME.block_on(async { Front::start() });
    let request = |method: &str, target: &str, headers: &[&str]| Asked {
        method: method.to_owned(),
        target: target.to_owned(),
        headers: headers.iter().map(|header| (*header).to_owned()).collect(),
    };
    let long = format!("/pub/{}", "x".repeat(400));
    let many = ["A: 1", "B: 1", "C: 1", "D: 1", "E: 1", "F: 1", "G: 1"];
    for (asked, status) in [
        (request("GET", "/pub/../admin/secret", &[]), 200),
        (request("GET", "/pub/%2e%2e/admin/secret?x=/../y", &[]), 200),
        (request("GET", "/pub/..;/admin", &[]), 400),
        (request("GET", "/pub/%00", &[]), 400),
        (request("GET", "/pub/%zz", &[]), 400),
        (request("TRACE", "/pub/a", &[]), 405),
        (request("CONNECT", "/pub/a", &[]), 405),
        (request("GET", "/pub/a", &["Expect: foo"]), 417),
        (request("GET", "/pub/a", &["X_Forwarded_For: 1"]), 400),
        (request("GET", "/pub/a", &["Content-Length: abc"]), 400),
        (
            request(
                "GET",
                "/pub/a",
                &["Connection: upgrade", "Upgrade: websocket"],
            ),
            400,
        ),
        (request("POST", "/few/a", &["Content-Length: 11"]), 413),
        (request("POST", "/pub/a", &["Content-Length: 1001"]), 413),
        (request("GET", "/posted", &[]), 405),
        (request("GET", "/nowhere", &[]), 503),
        (request("GET", &long, &[]), 414),
        (request("GET", "/pub/a", &many), 431),
    ] {
        let explained = front.explained(&asked);
        assert_eq!(explained.status, status, "{asked:?}");
        assert_eq!(
            explained,
            RUNTIME.block_on(front.over_http1(&asked)),
            "{asked:?}"
        );
    }
}
