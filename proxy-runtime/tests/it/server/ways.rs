//! Requests on the byte path, requests of the tower service and requests through layers have the same result.

use std::convert::Infallible;
use std::net::SocketAddr;
use std::num::NonZeroUsize;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use http::{Request, Response};
use proxy_runtime::layer::RouteService;
use proxy_runtime::proxy_model::Snapshot;
use proxy_runtime::proxy_model::config::ProxyConfig;
use proxy_runtime::server::{Limits, Listener, RequestBody, Server, ServerHandle};
use proxy_runtime::{Proxy, ProxyBody, ProxyService};
use serde_json::{Value, json};
use testkit::raw::{RawClient, RawOrigin, RawResponse, Recording};
use tower_layer::layer_fn;
use tower_service::Service;

use crate::server::destinations::Scripted;
use crate::server::support::loopback;
use crate::server::{filtered, own_transforms};

/// The proxy's service in a wrapper, so that the server does not recognise it.
#[derive(Clone)]
pub(crate) struct Disguised(pub(crate) ProxyService);

type Answer = Pin<Box<dyn Future<Output = Result<Response<ProxyBody>, Infallible>>>>;

impl Service<Request<RequestBody>> for Disguised {
    type Response = Response<ProxyBody>;
    type Error = Infallible;
    type Future = Answer;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<RequestBody>) -> Answer {
        Box::pin(self.0.call(request))
    }
}

/// The messages that a destination and a client received.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Seen {
    pub(crate) request: Message,
    pub(crate) response: Message,
}

/// A message without differences of framing and field order.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Message {
    pub(crate) start: String,
    pub(crate) fields: Vec<String>,
    pub(crate) body: String,
}

impl Message {
    pub(crate) fn new<'a>(
        start: String,
        fields: impl Iterator<Item = (&'a str, &'a str)>,
        body: &[u8],
    ) -> Self {
        let mut fields: Vec<_> = fields
            .map(|(name, value)| match name.to_ascii_lowercase() {
                // The presence counts, not the value.
                name if name == "date" => name,
                name if name == "cdn-loop" && value.starts_with("proxy-") => name,
                name => format!("{name}: {value}"),
            })
            .collect();
        fields.sort_unstable();
        Self {
            start,
            fields,
            body: String::from_utf8_lossy(body).into_owned(),
        }
    }
}

impl Seen {
    /// The same without what depends on the version of the destination.
    fn meaning(self) -> Self {
        Self {
            request: self.request.meaning(),
            response: self.response.meaning(),
        }
    }
}

impl Message {
    fn of(response: &RawResponse) -> Self {
        let head = &response.head;
        let fields = head.headers.iter().chain(&response.trailers);
        Self::new(
            format!("{} {}", head.status, head.reason),
            fields.map(|(name, value)| (name.as_str(), value.as_str())),
            &response.body,
        )
    }
}

pub(crate) fn proxy(origin: &RawOrigin, route: &Value, address: &str) -> Proxy {
    proxy_to(&format!("{}{address}", origin.url()), false, route)
}

/// A proxy with a route to a destination.
fn proxy_to(address: &str, is_http2: bool, route: &Value) -> Proxy {
    let mut route = route.clone();
    route["ClusterId"] = json!("c1");
    if route.get("Match").is_none() {
        route["Match"] = json!({ "Path": "/{**rest}" });
    }
    let mut cluster = json!({ "Destinations": { "d1": { "Address": address } } });
    if is_http2 {
        cluster["HttpRequest"] = json!({ "Version": "2", "VersionPolicy": "RequestVersionExact" });
    }
    let config = json!({ "Routes": { "r1": route }, "Clusters": { "c1": cluster } });
    let config = ProxyConfig::from_json(&config.to_string()).unwrap();
    let builder = own_transforms::registered(filtered::registered(Proxy::builder()))
        .layer("pass", layer_fn(|rest: RouteService| rest));
    let (snapshot, _) = Snapshot::compile(config, &builder.compile_options()).unwrap();
    let (proxy, driver) = builder.snapshot(Arc::new(snapshot)).build().unwrap();
    tokio::spawn(driver);
    proxy
}

/// A way of a request through the proxy.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Way {
    pub(crate) name: &'static str,
    serve: fn(&Proxy) -> ServerHandle,
    /// The layers of the route.
    layers: &'static [&'static str],
}

/// The byte path, the service in a server that does not know it, and a layer.
pub(crate) const WAYS: [Way; 3] = [
    Way {
        name: "bytes",
        serve: as_bytes,
        layers: &[],
    },
    Way {
        name: "service",
        serve: over_types,
        layers: &[],
    },
    Way {
        name: "layer",
        serve: as_bytes,
        layers: &["pass"],
    },
];

impl Way {
    /// A server for a route to a destination, at this path of its address.
    pub(crate) fn server(self, origin: &Scripted, route: &Value, base: &str) -> ServerHandle {
        let mut route = route.clone();
        if !self.layers.is_empty() {
            route["Layers"] = json!(self.layers);
        }
        let address = format!("{}{base}", origin.url());
        (self.serve)(&proxy_to(&address, origin.is_http2(), &route))
    }
}

pub(crate) fn as_bytes(proxy: &Proxy) -> ServerHandle {
    as_bytes_within(proxy, Limits::default())
}

pub(crate) fn over_types(proxy: &Proxy) -> ServerHandle {
    over_types_within(proxy, Limits::default())
}

pub(crate) fn as_bytes_within(proxy: &Proxy, limits: Limits) -> ServerHandle {
    let server = Server::for_proxy(proxy).with_workers(NonZeroUsize::MIN);
    let server = server.with_limits(limits);
    let server = server.with_listener(Listener::http(loopback()));
    server.bind().unwrap().start().unwrap()
}

pub(crate) fn over_types_within(proxy: &Proxy, limits: Limits) -> ServerHandle {
    let proxy = proxy.clone();
    let server = Server::builder(move || Disguised(proxy.service()));
    let server = server.with_workers(NonZeroUsize::MIN).with_limits(limits);
    let server = server.with_listener(Listener::http(loopback()));
    server.bind().unwrap().start().unwrap()
}

/// Sends `request` twice over one connection. Returns the result of the second time.
async fn exchange(address: SocketAddr, origin: &Scripted, request: &str) -> Seen {
    let mut client = RawClient::connect(address).await.unwrap();
    let method = request.split(' ').next().unwrap();
    let mut response = None;
    for _ in 0..2 {
        client.write_all(request).await.unwrap();
        response = Some(client.read_response_to(method).await.unwrap());
    }
    let response = response.unwrap();
    Seen {
        request: origin.received_twice(),
        response: Message::of(&response),
    }
}

/// The request that a destination got twice; empty if it got none.
pub(crate) fn received_twice(origin: &RawOrigin) -> Message {
    // A rejected response may close the connection.
    let recordings = origin.recordings();
    let sent: String = recordings.iter().map(Recording::text).collect();
    let second = sent.len() / 2;
    assert_eq!(sent[..second], sent[second..], "both times the same");
    let Some((head, body)) = sent[second..].split_once("\r\n\r\n") else {
        return Message::default();
    };
    let mut lines = head.split("\r\n");
    let start = lines.next().unwrap().to_owned();
    let fields = lines.map(|line| line.split_once(':').unwrap());
    // Ports differ, and so does the host of the destination.
    let fields = fields.map(|(name, value)| match value.trim() {
        value if value.starts_with("127.0.0.1:") => (name, "of the destination"),
        value => (name, value),
    });
    Message::new(start, fields, body.as_bytes())
}

/// Responds to each request with the same bytes.
pub(crate) fn origin(answer: &'static str) -> RawOrigin {
    RawOrigin::script(move |mut connection| async move {
        while connection.read_whole_request().await.is_ok() {
            connection.write_all(answer).await?;
        }
        Ok(())
    })
}

/// Like [`compare`], for a request that reaches a destination.
pub(crate) async fn compare_forwarded(
    name: &str,
    route: &Value,
    base: &str,
    request: &str,
    answer: &'static str,
) {
    let seen = compare(name, route, base, request, answer).await;
    let nothing = format!("{:?}", Message::default());
    assert!(!seen.contains(&nothing), "{name}: {seen}");
}

/// Asserts that all ways have the same result. Returns the client's response.
pub(crate) async fn compare(
    name: &str,
    route: &Value,
    base: &str,
    request: &str,
    answer: &'static str,
) -> String {
    let seen = each_way(name, answer, async |way, origin| {
        let server = way.server(origin, route, base);
        exchange(server.local_addrs()[0], origin, request).await
    });
    format!("{:?}", seen.await)
}

/// Asserts that an exchange has the same result on all ways, to a destination of each version of HTTP that can give the
/// answer. Returns the result with HTTP/1.1.
pub(crate) async fn each_way(
    name: &str,
    answer: &'static str,
    exchange: impl AsyncFn(Way, &Scripted) -> Seen,
) -> Seen {
    let mut first: Option<Seen> = None;
    for is_http2 in [false, cfg!(feature = "http2")] {
        let mut first_of_version: Option<Seen> = None;
        for way in WAYS {
            let Some(origin) = Scripted::start(answer, is_http2).await else {
                break;
            };
            let label = format!("{name} by {}, destination of HTTP/2: {is_http2}", way.name);
            let exchanged = exchange(way, &origin);
            let seen = testkit::time::guarded(label.clone(), exchanged).await;
            match &first_of_version {
                Some(first) => assert_eq!(*first, seen, "{label}"),
                None => first_of_version = Some(seen),
            }
        }
        match (&first, first_of_version) {
            (None, seen) => first = seen,
            (Some(first), Some(seen)) => {
                assert_eq!(first.clone().meaning(), seen.meaning(), "{name}: {answer}");
            }
            (Some(_), None) => {}
        }
    }
    first.expect("there is a way")
}

pub(crate) const OK: &str =
    "HTTP/1.1 200 OK\r\nContent-Length: 2\r\nX-A: 1\r\nX-A: 2\r\nServer: o\r\n\r\nok";

#[tokio::test]
async fn requests_are_the_same_both_ways() {
    let plain = json!({});
    for (name, request) in [
        (
            "GET",
            "GET /a/b?c=d&e HTTP/1.1\r\nHost: shop.example\r\n\r\n",
        ),
        (
            "POST",
            "POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 3\r\n\r\nabc",
        ),
        (
            "no content",
            "POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 0\r\n\r\n",
        ),
        (
            "chunks",
            "POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n",
        ),
        ("OPTIONS *", "OPTIONS * HTTP/1.1\r\nHost: h\r\n\r\n"),
        ("odd method", "PURGE /x HTTP/1.1\r\nHost: h\r\n\r\n"),
        (
            "absolute",
            "GET http://other.example:81/x HTTP/1.1\r\nHost: h\r\n\r\n",
        ),
        (
            "absolute, no path",
            "GET http://other.example HTTP/1.1\r\nHost: h\r\n\r\n",
        ),
        (
            "encoded",
            "GET /a%20b/%7e?x=%2f HTTP/1.1\r\nHost: h\r\n\r\n",
        ),
        ("dots", "GET /a/../b HTTP/1.1\r\nHost: h\r\n\r\n"),
        (
            "hop by hop",
            "GET / HTTP/1.1\r\nHost: h\r\nConnection: x-hop, keep-alive\r\nX-Hop: 1\r\nKeep-Alive: timeout=5\r\nProxy-Authorization: \
             secret\r\nTE: trailers\r\nX-Stays: 1\r\n\r\n",
        ),
        (
            "forwarded",
            "GET / HTTP/1.1\r\nHost: h\r\nX-Forwarded-For: 1.2.3.4\r\nX-Forwarded-Proto: https\r\nX-Forwarded-Host: \
             evil\r\nX-Forwarded-Prefix: /x\r\nForwarded: for=1.2.3.4\r\n\r\n",
        ),
        (
            "cookies",
            "GET / HTTP/1.1\r\nHost: h\r\nCookie: a=b\r\nAuthorization: Basic xyz\r\nX-Empty:\r\nX-L: \u{e9}\r\n\r\n",
        ),
        (
            "padded length",
            "POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 003\r\n\r\nabc",
        ),
    ] {
        compare_forwarded(name, &plain, "", request, OK).await;
    }
}

/// Recipients disagree on the meaning of several lines.
#[tokio::test]
async fn several_lines_of_cookies_become_one() {
    let request = "GET / HTTP/1.1\r\nHost: h\r\nCookie: a=1\r\nX: y\r\ncookie: b=2; c=3\r\n\r\n";
    let seen = compare("cookies", &json!({}), "", request, OK).await;
    assert!(seen.contains("\"cookie: a=1; b=2; c=3\""), "{seen}");
}

/// Responses of destinations, for every version of the request.
pub(crate) const ANSWERS: [(&str, &str); 11] = [
    (
        "chunks",
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n2\r\nde\r\n0\r\n\r\n",
    ),
    ("204", "HTTP/1.1 204 No Content\r\nX: 1\r\n\r\n"),
    ("304", "HTTP/1.1 304 Not Modified\r\nETag: \"x\"\r\n\r\n"),
    (
        "205",
        "HTTP/1.1 205 Reset Content\r\nContent-Length: 0\r\n\r\n",
    ),
    ("empty", "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n"),
    (
        "odd status",
        "HTTP/1.1 599 Odd\r\nContent-Length: 1\r\n\r\nx",
    ),
    (
        "reason",
        "HTTP/1.1 404 Nowhere to be found\r\nContent-Length: 1\r\n\r\nx",
    ),
    (
        "dated",
        "HTTP/1.1 200 OK\r\nDate: Sun, 06 Nov 1994 08:49:37 GMT\r\nContent-Length: 0\r\n\r\n",
    ),
    (
        "dated for one connection",
        "HTTP/1.1 200 OK\r\nConnection: date\r\nDate: Sun, 06 Nov 1994 08:49:37 GMT\r\nContent-Length: 0\r\n\r\n",
    ),
    (
        "of one connection",
        "HTTP/1.1 200 OK\r\nConnection: x-hop\r\nX-Hop: 1\r\nKeep-Alive: timeout=5\r\nAlt-Svc: h3\r\nTE: \
         x\r\nContent-Length: 0\r\n\r\n",
    ),
    (
        "cookies",
        "HTTP/1.1 200 OK\r\nSet-Cookie: a\r\nSet-Cookie: b\r\nX-L: \u{e9}\r\nContent-Length: 0\r\n\r\n",
    ),
];

/// The target of requests for [`changed_routes`].
pub(crate) const CHANGED: &str = "/api/items/7?q=1&drop=2";

/// Routes that change requests and responses, with the end of their destinations' addresses.
pub(crate) fn changed_routes() -> Vec<(Value, &'static str)> {
    let matched = json!({ "Path": "/api/{kind}/{**rest}" });
    let transforms = [
        json!([{ "PathPrefix": "/prefix" }]),
        json!([{ "PathRemovePrefix": "/api" }]),
        json!([{ "PathSet": "/other" }]),
        json!([{ "PathPattern": "/x/{kind}/{**rest}" }]),
        json!([{ "QueryRemoveParameter": "drop" }]),
        json!([{ "QueryValueParameter": "new", "Append": "a b" }]),
        json!([{ "QueryRouteParameter": "kind", "Set": "kind" }]),
        json!([{ "HttpMethodChange": "GET", "Set": "POST" }]),
        json!([{ "RequestHeader": "X-Old", "Set": "new" }]),
        json!([{ "RequestHeader": "X-Old", "Append": "more" }, { "RequestHeaderRemove": "X-Keep" }]),
        json!([{ "RequestHeader": "Host", "Set": "named.example" }]),
        json!([{ "RequestHeaderOriginalHost": "true" }]),
        json!([{ "RequestHeadersCopy": "false" }]),
        json!([{ "RequestHeadersAllowed": "X-Keep;Accept" }]),
        json!([{ "X-Forwarded": "Append" }]),
        json!([{ "X-Forwarded": "Remove" }]),
        json!([{ "X-Forwarded": "Off" }]),
        json!([{ "Forwarded": "for,proto,host", "ForFormat": "Ip" }]),
        json!([{ "Forwarded": "proto", "Action": "Append" }]),
        json!([{ "Forwarded": "proto", "Action": "Remove" }]),
        json!([{ "RequestHeaderRouteValue": "X-Old", "Set": "kind" }]),
        json!([{ "RequestHeaderRouteValue": "X-Old", "Append": "rest" }]),
        json!([{ "RequestHeaderRouteValue": "X-Old", "Set": "nothing" }]),
        json!([{ "RequestHeaderRouteValue": "Host", "Set": "kind" }]),
        json!([{ "RequestHeader": "Proxy-Authorization", "Set": "ours" }]),
        json!([{ "RequestHeader": "TE", "Set": "gzip" }, { "RequestHeader": "Upgrade", "Set": "h2c" }]),
        json!([{ "RequestHeadersAllowed": "X-Keep;Proxy-Authorization;TE;Keep-Alive" }]),
        json!([{ "RequestHeader": "X-Keep", "Append": "named by the client's `Connection`" }]),
        (1..=40)
            .map(|number| json!({ "RequestHeader": format!("X-{number}"), "Set": "1" }))
            .collect(),
        (1..=40)
            .map(|number| json!({ "ResponseHeader": format!("X-{number}"), "Set": "1" }))
            .collect(),
        json!([{ "ResponseHeadersAllowed": "X-A;Proxy-Authenticate;Connection;Upgrade" }]),
        json!([{ "ResponseHeader": "Keep-Alive", "Set": "1" }, { "ResponseHeader": "TE", "Set": "1" }]),
        json!([{ "ResponseHeader": "X-Added", "Set": "1", "When": "Always" }]),
        json!([{ "ResponseHeader": "X-A", "Append": "3" }]),
        json!([{ "ResponseHeader": "X-Failure", "Set": "1", "When": "Failure" }]),
        json!([{ "ResponseHeaderRemove": "Server" }]),
        json!([{ "ResponseHeadersCopy": "false" }]),
        json!([{ "ResponseHeadersAllowed": "X-A" }]),
        json!([{ "ResponseTrailer": "X-T", "Set": "1" }]),
        json!([{ "HttpMethodChange": "get", "Set": "PURGE" }, { "HttpMethodChange": "PURGE", "Set": "DELETE" }, { "PathSet": "/b" }]),
        json!([{ "HttpMethodChange": "POST", "Set": "HEAD" }]),
        json!([{ "RequestHeader": "Host", "Set": "named.example" }, { "RequestHeaderRouteValue": "Host", "Set": "nothing" }]),
        json!([{ "RequestHeaderOriginalHost": "true" }, { "RequestHeaderRouteValue": "Host", "Set": "rest" }]),
    ];
    let routes = transforms.into_iter().map(|transforms| {
        let route = json!({ "Match": matched, "Transforms": transforms });
        (route, "")
    });
    routes
        .chain([(json!({ "Match": matched }), "/base/")])
        .collect()
}

#[tokio::test]
async fn responses_are_the_same_both_ways() {
    for (name, answer) in ANSWERS {
        let get = "GET / HTTP/1.1\r\nHost: h\r\n\r\n";
        compare_forwarded(name, &json!({}), "", get, answer).await;
    }
    let head = "HEAD / HTTP/1.1\r\nHost: h\r\n\r\n";
    let answer = "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n";
    compare_forwarded("HEAD", &json!({}), "", head, answer).await;
}

/// A route that sets the date of local replies, and an invalid response of a destination.
pub(crate) fn dated() -> (Value, &'static str) {
    let date = json!({ "ResponseHeader": "Date", "Set": "today", "When": "Always" });
    (json!({ "Transforms": [date] }), "no HTTP\r\n\r\n")
}

#[tokio::test]
async fn answers_of_the_proxy_have_one_date() {
    let (route, answer) = dated();
    let get = "GET / HTTP/1.1\r\nHost: h\r\n\r\n";
    let seen = compare("dated", &route, "", get, answer).await;
    assert_eq!(seen.matches("\"date\"").count(), 1, "{seen}");
}

#[tokio::test]
async fn changes_are_the_same_both_ways() {
    let request =
        format!("GET {CHANGED} HTTP/1.1\r\nHost: shop.example\r\nX-Old: 1\r\nX-Keep: 2\r\n\r\n");
    let odd = format!(
        "GET {CHANGED} HTTP/1.1\r\nHost: shop.example\r\nX-Old: 1\r\nX_Old: imitated\r\nX-Keep: 2\r\nTE: gzip, trailers\r\n\
         Forwarded: for=1.2.3.4\r\nKeep-Alive: timeout=5\r\nProxy-Authorization: theirs\r\nConnection: x-keep, te\r\n\r\n"
    );
    let answer = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\nX-A: 1\r\nUpgrade: h2c\r\nProxy-Authenticate: Basic\r\n\
                  Connection: x-a, upgrade\r\n\r\nok";
    for (route, base) in changed_routes() {
        compare_forwarded(&route.to_string(), &route, base, &request, OK).await;
        compare_forwarded(&route.to_string(), &route, base, &odd, answer).await;
    }
    // The response is to another method than the client's: its body must not reach the client.
    let route = json!({ "Transforms": [{ "HttpMethodChange": "HEAD", "Set": "GET" }] });
    let head = "HEAD / HTTP/1.1\r\nHost: h\r\n\r\n";
    compare_forwarded("HEAD as GET", &route, "", head, OK).await;
}

/// Routes that change trailers of responses.
pub(crate) fn trailed_routes() -> Vec<Value> {
    let transforms = [
        json!([{ "ResponseTrailer": "X-T", "Set": "1" }]),
        json!([{ "ResponseTrailer": "X-Sum", "Append": "8" }, { "ResponseTrailer": "Host", "Set": "h" }]),
        json!([{ "ResponseTrailer": "X-Sum", "Set": "8", "When": "Failure" }]),
        json!([{ "ResponseTrailerRemove": "X-Sum" }]),
        json!([{ "ResponseTrailersCopy": "false" }]),
        json!([{ "ResponseTrailersAllowed": "x-other" }, { "ResponseTrailer": "X-T", "Append": "1", "When": "Always" }]),
    ];
    let transforms = transforms.into_iter();
    let route = |transforms| json!({ "Transforms": transforms });
    transforms.map(route).collect()
}

/// Responses with trailers, without, and with a body that ends in another way than in chunks.
pub(crate) const TRAILED: [&str; 7] = [
    "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n0\r\nX-Sum: 7\r\nX-Other: 2\r\nAuthorization: x\r\n\r\n",
    "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n0\r\n\r\n",
    "HTTP/1.1 404 Not Found\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nno\r\n0\r\nX-Sum: 7\r\n\r\n",
    "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok",
    "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n",
    "HTTP/1.1 204 No Content\r\n\r\n",
    "HTTP/1.1 304 Not Modified\r\n\r\n",
];

#[tokio::test]
async fn trailers_are_the_same_both_ways() {
    let plain = "GET / HTTP/1.1\r\nHost: h\r\n\r\n";
    let asking = "GET / HTTP/1.1\r\nHost: h\r\nTE: trailers\r\nConnection: te\r\n\r\n";
    for route in trailed_routes() {
        for answer in TRAILED {
            let name = format!("{route} {answer}");
            compare_forwarded(&name, &route, "", asking, answer).await;
            compare_forwarded(&name, &route, "", plain, answer).await;
        }
    }
    let route = &trailed_routes()[0];
    let seen = compare("added", route, "", asking, TRAILED[1]).await;
    assert!(seen.to_lowercase().contains("x-t: 1"), "{seen}");
    let seen = compare("not asked for", route, "", plain, TRAILED[0]).await;
    assert!(!seen.to_lowercase().contains("x-sum"), "{seen}");
}

/// A body that ends with its connection goes on in chunks, behind which trailers may come.
#[tokio::test]
async fn a_body_that_ends_with_its_connection_gets_trailers() {
    let asking = "GET / HTTP/1.1\r\nHost: h\r\nTE: trailers\r\nConnection: te\r\n\r\n";
    for answer in ["HTTP/1.1 200 OK\r\n\r\nok", "HTTP/1.1 200 OK\r\n\r\n"] {
        let origin = RawOrigin::script(move |mut connection| async move {
            connection.read_whole_request().await?;
            connection.write_all(answer).await
        });
        let own = own_transforms::summed_routes().swap_remove(0);
        let (set, made) = ([("x-t", "1")], [("x-by", "a"), ("x-sum", "1")]);
        let routes = [(trailed_routes().swap_remove(0), &set[..]), (own, &made)];
        for ((route, expected), serve) in routes
            .iter()
            .flat_map(|route| [as_bytes, over_types].map(|serve| (route, serve)))
        {
            let server = serve(&proxy(&origin, route, ""));
            let mut client = RawClient::connect(server.local_addrs()[0]).await.unwrap();
            client.write_all(asking).await.unwrap();
            let response = client.read_response().await.unwrap();
            assert_eq!(response.status(), 200);
            let trailers = response.trailers.iter();
            let mut trailers: Vec<_> = trailers
                .map(|(name, value)| (name.to_lowercase(), value.as_str()))
                .collect();
            trailers.sort_unstable();
            let trailers: Vec<_> = trailers
                .iter()
                .map(|(name, value)| (&**name, *value))
                .collect();
            assert_eq!(trailers, *expected, "{answer}");
        }
    }
}
