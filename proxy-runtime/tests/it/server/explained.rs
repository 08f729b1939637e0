//! The result of `explain` equals the behaviour of a server.

use std::net::SocketAddr;
use std::num::NonZeroUsize;
use std::sync::{Arc, LazyLock};

use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};
use proxy_runtime::Proxy;
use proxy_runtime::explain::{Explanation, Listeners, Verdict, request_from_text};
use proxy_runtime::proxy_model::config::ProxyConfig;
use proxy_runtime::proxy_model::{CompileOptions, Snapshot};
use proxy_runtime::server::{Limits, Listener, ListenerRules, Server, ServerHandle};
use serde_json::json;
use testkit::origin::{Echo, Origin};
use testkit::raw::RawClient;

use crate::changed;
use crate::server::support::loopback;

/// A request as described by a user, and as sent.
#[derive(Clone, Debug)]
struct ParsedRequest {
    method: String,
    target: String,
    headers: Vec<String>,
}

/// The result of a request: the status, and the forwarded request, if any.
#[derive(Debug, PartialEq, Eq)]
struct Fate {
    status: u16,
    forwarded: Option<Seen>,
}

/// A request as a destination received it: its route, target, and the fields that rules of
/// listeners and routes concern.
#[derive(Debug, PartialEq, Eq)]
struct Seen {
    route: String,
    target: String,
    fields: Vec<(String, String)>,
}

/// Fields that a client may or may not set, or that the proxy sets.
const FIELDS: [&str; 6] = [
    "x-real-ip",
    "true-client-ip",
    "x-forwarded-port",
    "x_real_ip",
    "x-team",
    "x_team",
];

/// The listeners of a server, each with other rules.
const LISTENERS: [(&str, bool, bool); 4] = [
    ("open", false, false),
    ("strict", true, false),
    ("inner", false, true),
    ("both", true, true),
];

impl Fate {
    /// Returns true if the server rejects the request before routing.
    #[cfg(feature = "http2")]
    fn is_rejection(&self) -> bool {
        self.forwarded.is_none() && matches!(self.status, 400 | 405 | 414 | 417 | 431 | 501)
    }
}

struct Front {
    proxy: Proxy,
    server: ServerHandle,
    limits: Limits,
    listeners: Listeners,
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
        let limits = changed(|limits: &mut Limits| {
            limits.request_line = 300;
            limits.header_fields = 6;
        });
        let mut server = Server::for_proxy(&proxy)
            .with_limits(limits.clone())
            .with_workers(NonZeroUsize::MIN);
        let listeners = LISTENERS.map(|(name, strict, trusted)| {
            let rules = changed(|rules: &mut ListenerRules| {
                rules.strict_paths = strict;
                rules.trusts_senders = trusted;
            });
            (name.to_owned(), rules)
        });
        for (_, rules) in &listeners {
            server = server.with_listener(Listener::http(loopback()).with_rules(*rules));
        }
        let server = server.bind().unwrap().start().unwrap();
        Self {
            proxy,
            server,
            limits,
            listeners: listeners.into_iter().collect(),
            _origin: origin,
        }
    }

    /// The address of the listener with this index.
    fn address(&self, listener: usize) -> SocketAddr {
        self.server.local_addrs()[listener]
    }

    fn explained(&self, asked: &ParsedRequest, listener: usize) -> Fate {
        let url = format!("http://a.example{}", asked.target);
        let headers = asked.headers.iter().map(String::as_str);
        let rules = self.listeners.rules(Some(LISTENERS[listener].0)).unwrap();
        let read = request_from_text(&asked.method, &url, headers, &self.limits, rules, None);
        let read = read.unwrap_or_else(|error| panic!("{asked:?}: {error}"));
        let explanation = read.explain(|parts, connection| self.proxy.explain(parts, connection));
        Fate {
            status: explanation.status.map_or(200, |status| status.as_u16()),
            forwarded: forwarded(&explanation),
        }
    }

    async fn over_http1(&self, asked: &ParsedRequest, listener: usize) -> Fate {
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
        let mut client = RawClient::connect(self.address(listener)).await.unwrap();
        client.write_all(&head).await.unwrap();
        let answer = client.read_response_to(&asked.method).await;
        let answer = answer.unwrap_or_else(|error| panic!("{asked:?}: {error}"));
        let route = answer.header("x-route").map(str::to_owned);
        Fate {
            status: answer.status(),
            forwarded: route.map(|route| seen(route, &answer.body)),
        }
    }

    /// `None` if HTTP/2 cannot represent the request, or this client does not support it.
    #[cfg(feature = "http2")]
    async fn over_http2(&self, asked: &ParsedRequest, listener: usize) -> Option<Fate> {
        let client = testkit::client::Connection::http2(self.address(listener))
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
            forwarded: route.map(|route| seen(route, &answer.body)),
        })
    }
}

fn forwarded(explanation: &Explanation) -> Option<Seen> {
    let is_matched = explanation.outcome == Verdict::Matched;
    assert_eq!(
        is_matched,
        explanation.forwarded.is_some(),
        "{explanation:?}"
    );
    let forwarded = explanation.forwarded.as_ref()?;
    let uri: http::Uri = forwarded.uri.parse().unwrap();
    let route = explanation.route.as_ref().unwrap();
    let headers = forwarded.headers.iter();
    Some(Seen {
        route: route.as_str().to_owned(),
        target: uri.path_and_query().unwrap().to_string(),
        fields: chosen(headers.map(|(name, value)| (name.as_str(), value.as_str()))),
    })
}

/// The request that the destination received.
fn seen(route: String, body: &[u8]) -> Seen {
    let echo: Echo = serde_json::from_slice(body).unwrap();
    Seen {
        route,
        target: echo.path_and_query().to_owned(),
        fields: chosen(
            echo.headers
                .iter()
                .map(|(name, value)| (name.as_str(), value.as_str())),
        ),
    }
}

fn chosen<'a>(fields: impl Iterator<Item = (&'a str, &'a str)>) -> Vec<(String, String)> {
    let lower = fields.map(|(name, value)| (name.to_ascii_lowercase(), value.to_owned()));
    let mut chosen: Vec<_> = lower
        .filter(|(name, _)| FIELDS.contains(&name.as_str()))
        .collect();
    chosen.sort();
    chosen
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
            "strict": route("strict", "/a/{**rest}", json!({ "StrictPaths": true })),
            "team": route("team", "/team/{**rest}", json!({ "Transforms": [
                { "ResponseHeader": "X-Route", "Set": "team" },
                { "RequestHeader": "X-Team", "Set": "blue" },
            ] })),
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

/// Known and unknown methods.
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

/// Paths with dot segments, and ambiguous ones.
fn target() -> impl Strategy<Value = String> {
    let segment = prop::sample::select(vec![
        "a", "b", "admin", "pub", "few", "team", "%5c", "%3b", "a;b", "nowhere", "posted", "", ".",
        "..", "%2e", "%2E%2e", "..;", "..;x=y", ".%2e", "%00", "%zz", "%", "%4", "%2f", "%252e",
        "a%20b", ";", "\"", "\\", "<", ">", "{", "}", "|", "^", "`", "~", "x y", "...", ":", "@",
        "a..", "%c3%bc", "%ff", "+",
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
        "X-Team: 2",
        "X-Real-IP: 192.0.2.1",
        "X_Real_IP: 192.0.2.1",
        "True-Client-IP: 192.0.2.1",
        "X-Forwarded-Port: 1",
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

fn asked() -> impl Strategy<Value = ParsedRequest> {
    (method(), target(), headers()).prop_map(|(method, target, headers)| ParsedRequest {
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

async fn check(front: &Front, asked: &ParsedRequest) -> Result<(), TestCaseError> {
    for (listener, rules) in LISTENERS.iter().enumerate() {
        let explained = front.explained(asked, listener);
        let live = front.over_http1(asked, listener).await;
        prop_assert_eq!(&explained, &live, "{:?} {:?}", asked, rules);
        #[cfg(feature = "http2")]
        if let Some(live) = front.over_http2(asked, listener).await {
            // Several errors may be found in another order.
            let is_same = explained == live || explained.is_rejection() && live.is_rejection();
            prop_assert!(
                is_same,
                "{asked:?} over HTTP/2 {rules:?}: {live:?}, not {explained:?}"
            );
        }
    }
    Ok(())
}

#[test]
fn hostile_requests_are_explained_as_they_are_served() {
    let front = RUNTIME.block_on(async { Front::start() });
    let mut runner = TestRunner::new(Config {
        cases: 250,
        failure_persistence: None,
        ..Config::default()
    });
    let result = runner.run(&asked(), |asked| RUNTIME.block_on(check(&front, &asked)));
    result.unwrap_or_else(|error| panic!("{error}"));
}

/// Cases in which the two once differed.
#[test]
fn what_is_rejected_first_is_explained() {
    let front = RUNTIME.block_on(async { Front::start() });
    let request = |method: &str, target: &str, headers: &[&str]| ParsedRequest {
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
        let explained = front.explained(&asked, 0);
        assert_eq!(explained.status, status, "{asked:?}");
        assert_eq!(
            explained,
            RUNTIME.block_on(front.over_http1(&asked, 0)),
            "{asked:?}"
        );
    }
}

/// Rules of the listener, rules of the route, and combinations.
#[test]
fn strictness_is_that_of_the_listener_and_of_the_route() {
    let front = RUNTIME.block_on(async { Front::start() });
    // The result for each target over an open listener, and over a strict one: the route and the
    // forwarded target.
    for (target, open, strict) in [
        ("/pub//x", Ok(("rest", "/pub//x")), Ok(("rest", "/pub/x"))),
        ("/pub/x;y", Ok(("rest", "/pub/x;y")), Err(400)),
        ("/pub/%2Fx", Ok(("rest", "/pub/%2Fx")), Err(400)),
        ("/a/x", Ok(("strict", "/a/x")), Ok(("strict", "/a/x"))),
        ("/a//x", Err(400), Ok(("strict", "/a/x"))),
        ("/a/x//", Err(400), Ok(("strict", "/a/x/"))),
        ("/a/x;y", Err(400), Err(400)),
        ("/a/%2Fx", Err(400), Err(400)),
        ("/a/%5cx", Err(400), Err(400)),
        (
            "/a/x?a;b//%2f",
            Ok(("strict", "/a/x?a;b//%2f")),
            Ok(("strict", "/a/x?a;b//%2f")),
        ),
        // The matching route is not the strict one.
        (
            "/a/../pub//x",
            Ok(("rest", "/pub//x")),
            Ok(("rest", "/pub/x")),
        ),
        ("//admin/x", Err(404), Ok(("admin", "/admin/x"))),
    ] {
        let asked = ParsedRequest {
            method: "GET".to_owned(),
            target: target.to_owned(),
            headers: Vec::new(),
        };
        for (listener, (name, is_strict, _)) in LISTENERS.iter().enumerate() {
            let live = RUNTIME.block_on(front.over_http1(&asked, listener));
            let came = live.forwarded.as_ref();
            let came = came.map(|seen| (seen.route.as_str(), seen.target.as_str()));
            let expected = if *is_strict { strict } else { open };
            assert_eq!(came.ok_or(live.status), expected, "{target} {name}");
            assert_eq!(front.explained(&asked, listener), live, "{target} {name}");
            #[cfg(feature = "http2")]
            if let Some(http2) = RUNTIME.block_on(front.over_http2(&asked, listener)) {
                assert_eq!(http2, live, "{target} {name}");
            }
        }
    }
}
