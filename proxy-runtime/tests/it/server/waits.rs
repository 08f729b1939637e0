//! Policies that wait for their decision: clients see what they see of others, and those who leave are noticed.

use std::net::SocketAddr;
use std::num::NonZeroUsize;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::time::Duration;

use http::StatusCode;
use http::header::{HeaderName, HeaderValue};
use parking_lot::Mutex;
use proxy_runtime::filter::{Reply, RequestEdit};
use proxy_runtime::layer::RouteService;
use proxy_runtime::policy::{Decide, PolicyDecision, PolicySource, RoutePolicies};
use proxy_runtime::proxy_model::compiled::Route;
use proxy_runtime::proxy_model::config::ProxyConfig;
use proxy_runtime::proxy_model::{Problems, Snapshot};
use proxy_runtime::server::{AccessLogSink, AccessRecord, Listener, Server, ServerHandle};
use proxy_runtime::{ConnectionInfo, Proxy};
use serde_json::{Value, json};
use testkit::raw::{RawClient, RawOrigin};
use testkit::time::{eventually, guarded};
use tower_layer::layer_fn;

use crate::server::support::loopback;
use crate::server::ways::{OK, as_bytes, origin, over_types};

/// The policies of every route: the path says what they do.
#[derive(Clone)]
pub(super) struct Scripted {
    waits: bool,
    /// Requests that wait for ever.
    waiting: Arc<AtomicUsize>,
    /// Values that requests hold.
    pub(super) held: Arc<AtomicUsize>,
}

/// Counts itself while it is there.
struct Counted(Arc<AtomicUsize>);

impl Counted {
    fn new(count: &Arc<AtomicUsize>) -> Self {
        count.fetch_add(1, Relaxed);
        Self(Arc::clone(count))
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Relaxed);
    }
}

impl Scripted {
    pub(super) fn new(waits: bool) -> Self {
        Self {
            waits,
            waiting: Arc::default(),
            held: Arc::default(),
        }
    }

    fn decide(&self, head: &mut RequestEdit<'_>) -> PolicyDecision {
        head.hold(Counted::new(&self.held));
        head.set("x-user", "ann").unwrap();
        head.remove("x-secret").unwrap();
        head.append_on_response("x-left", "7").unwrap();
        head.set_on_response("x-gone", "by transform").unwrap();
        head.remove_on_response("x-private").unwrap();
        match head.path() {
            "/denied" => PolicyDecision::Respond(
                Reply::new(StatusCode::FORBIDDEN)
                    .with_header(
                        HeaderName::from_static("x-why"),
                        HeaderValue::from_static("no"),
                    )
                    .with_body("Forbidden.\n"),
            ),
            "/over-limit" => PolicyDecision::Respond(Reply::new(StatusCode::TOO_MANY_REQUESTS)),
            "/unknown" => PolicyDecision::Respond(Reply::new(StatusCode::UNAUTHORIZED)),
            "/panic" => panic!("as the path says"),
            _ => PolicyDecision::Pass,
        }
    }
}

impl RoutePolicies for Scripted {
    fn judge(&self, head: &mut RequestEdit<'_>, _: &Route, _: ConnectionInfo) -> PolicyDecision {
        let this = self.clone();
        if head.path() == "/for-ever" {
            let waits = Counted::new(&self.waiting);
            return PolicyDecision::Wait(Box::pin(async move {
                std::future::pending::<()>().await;
                drop(waits);
                unreachable!("it waits for ever")
            }));
        }
        if !self.waits {
            return this.decide(head);
        }
        // Twice, as two policies.
        PolicyDecision::Wait(Box::pin(async move {
            tokio::time::sleep(Duration::from_millis(1)).await;
            let first: Decide = Box::new(|_, _| {
                PolicyDecision::Wait(Box::pin(async move {
                    tokio::task::yield_now().await;
                    Box::new(move |head: &mut RequestEdit<'_>, _: &Route| this.decide(head))
                        as Decide
                }))
            });
            first
        }))
    }
}

impl PolicySource for Scripted {
    fn of_routes(
        &self,
        snapshot: &Snapshot,
    ) -> Result<Vec<Option<Arc<dyn RoutePolicies>>>, Problems> {
        let policies = || Some(Arc::new(self.clone()) as Arc<dyn RoutePolicies>);
        Ok(snapshot.routes().iter().map(|_| policies()).collect())
    }
}

pub(super) fn proxy(policies: &Scripted, destination: &str, route: &Value) -> Proxy {
    let mut route = route.clone();
    route["Match"] = json!({ "Path": "/{**rest}" });
    if route.get("Respond").is_none() {
        route["ClusterId"] = json!("c1");
    }
    let config = json!({
        "Routes": { "r1": route },
        "Clusters": { "c1": { "Destinations": { "d1": { "Address": destination } } } },
    });
    let config = ProxyConfig::from_json(&config.to_string()).unwrap();
    let builder = Proxy::builder()
        .layer("pass", layer_fn(|rest: RouteService| rest))
        .policies(Arc::new(policies.clone()));
    let (snapshot, _) = Snapshot::compile(config, &builder.compile_options()).unwrap();
    let (proxy, driver) = builder.snapshot(Arc::new(snapshot)).build().unwrap();
    tokio::spawn(driver);
    proxy
}

/// A way of requests to the exchange.
pub(super) struct Way {
    pub(super) way: &'static str,
    pub(super) serve: fn(&Proxy) -> ServerHandle,
    pub(super) route: Value,
}

pub(super) fn ways() -> [Way; 3] {
    let plain = || json!({});
    let way = |way, serve, route| Way { way, serve, route };
    [
        way("bytes", as_bytes, plain()),
        way("service", over_types, plain()),
        way("layer", as_bytes, json!({ "Layers": ["pass"] })),
    ]
}

/// Returns the response to a client of HTTP/1.1, without the date.
async fn bytes(address: SocketAddr, request: &str) -> String {
    let mut client = RawClient::connect(address).await.unwrap();
    client.write_all(request).await.unwrap();
    let text = guarded(request, client.read_to_end()).await.unwrap();
    let text = String::from_utf8(text).unwrap();
    let lines = text.split("\r\n");
    let lines = lines.filter(|line| !line.to_ascii_lowercase().starts_with("date:"));
    lines.collect::<Vec<_>>().join("\r\n")
}

const ODD: &str = "HTTP/1.1 103 Early Hints\r\nLink: </a.css>\r\n\r\n\
    HTTP/1.1 200 Fine\r\nX-ODD-Case: 1\r\nx-private: 1\r\nTrailer: X-End\r\nTransfer-Encoding: chunked\r\n\r\n\
    2\r\nok\r\n0\r\nX-END: whole\r\n\r\n";

/// A client cannot name fields of a policy as ones of its connection, and so have them removed.
#[tokio::test]
async fn no_client_takes_away_what_a_policy_sets() {
    for Way { way, serve, route } in ways() {
        for waits in [false, true] {
            let origin = origin(OK);
            let server = serve(&proxy(&Scripted::new(waits), &origin.url(), &route));
            let request = "GET /x HTTP/1.1\r\nHost: h\r\nX-User: root\r\nX-Hop: 1\r\n\
                Connection: close, X-User, X-Hop\r\n\r\n";
            let response = bytes(server.local_addrs()[0], request).await;
            assert!(response.starts_with("HTTP/1.1 200"), "{way}: {response}");
            let received = origin.recording(0).text().to_lowercase();
            assert!(
                received.contains("\r\nx-user: ann\r\n"),
                "{way}: {received}"
            );
            assert!(!received.contains("root"), "{way}: {received}");
            assert!(!received.contains("x-hop"), "{way}: {received}");
        }
    }
}

/// The form of the policies of a route makes no difference that a client or a destination can see.
#[tokio::test]
async fn a_policy_that_waits_changes_nothing() {
    let transforms = json!([
        { "ResponseHeader": "X-Route", "Set": "r1", "When": "Always" },
        { "ResponseHeaderRemove": "X-Gone", "When": "Always" },
    ]);
    let plain = json!({ "Transforms": transforms });
    let respond = json!({ "Respond": { "Status": 410, "Body": "gone" }, "Transforms": transforms });
    let too_large = json!({ "MaxRequestBodySize": 1, "Transforms": transforms });
    let nowhere = json!({ "ClusterId": "c1", "Transforms": transforms });
    let get = |path: &str| {
        format!(
            "GET {path} HTTP/1.1\r\nHost: h\r\nTE: trailers\r\nX-Secret: 1\r\nConnection: close, te\r\n\r\n"
        )
    };
    let post = "POST /x HTTP/1.1\r\nHost: h\r\nConnection: close\r\nContent-Length: 3\r\n\r\nabc";
    for (name, route, request, answer, told) in [
        (
            "passes",
            &plain,
            get("/x"),
            ODD,
            &["x-left: 7", "X-ODD-Case: 1"][..],
        ),
        ("upload", &plain, post.to_owned(), OK, &["x-left: 7"]),
        (
            "denied",
            &plain,
            get("/denied"),
            OK,
            &["403", "x-why: no", "x-left: 7", "x-route: r1"],
        ),
        ("panic", &plain, get("/panic"), OK, &["500"]),
        (
            "own",
            &respond,
            get("/x"),
            OK,
            &["410", "x-left: 7", "x-route: r1"],
        ),
        (
            "own denied",
            &respond,
            get("/denied"),
            OK,
            &["403", "x-why: no", "x-route: r1"],
        ),
        (
            "too large",
            &too_large,
            post.to_owned(),
            OK,
            &["413", "x-left: 7", "x-route: r1"],
        ),
        (
            "no response",
            &nowhere,
            get("/x"),
            "bad\r\n\r\n",
            &["502", "x-left: 7", "x-route: r1"],
        ),
        (
            "upgrade",
            &plain,
            "GET /denied HTTP/1.1\r\nHost: h\r\nConnection: upgrade\r\nUpgrade: x\r\n\r\n"
                .to_owned(),
            OK,
            &["403", "x-why: no", "x-route: r1"],
        ),
    ] {
        for serve in [as_bytes as fn(&Proxy) -> ServerHandle, over_types] {
            let mut seen = Vec::new();
            for waits in [false, true] {
                let origin = origin(answer);
                let policies = Scripted::new(waits);
                let server = serve(&proxy(&policies, &origin.url(), route));
                let address = server.local_addrs()[0];
                let request = match name {
                    "upgrade" => request.replace("upgrade\r\nU", "close, upgrade\r\nU"),
                    _ => request.clone(),
                };
                let response = bytes(address, &request).await;
                for line in told {
                    let is_told = response.to_lowercase().contains(&line.to_lowercase());
                    assert!(is_told, "{name}: {line} is not in {response}");
                }
                assert!(
                    !response.to_lowercase().contains("x-private"),
                    "{name}: {response}"
                );
                assert!(
                    !response.to_lowercase().contains("x-gone"),
                    "{name}: {response}"
                );
                eventually("nothing is held any more", || async {
                    policies.held.load(Relaxed) == 0
                })
                .await;
                let received: String = origin.recordings().iter().map(|r| r.text()).collect();
                let received = received.replace(&origin.addr().to_string(), "destination");
                // Its name for itself is another one each time.
                let lines = received.split("\r\n");
                let lines = lines.filter(|line| !line.starts_with("CDN-Loop:"));
                let received = lines.collect::<Vec<_>>().join("\r\n");
                let is_sent = matches!(name, "passes" | "upload" | "no response");
                assert_eq!(!received.is_empty(), is_sent, "{name}: {received}");
                assert_eq!(
                    received.contains("x-user: ann"),
                    is_sent,
                    "{name}: {received}"
                );
                assert!(
                    !received.to_lowercase().contains("x-secret"),
                    "{name}: {received}"
                );
                seen.push((response, received));
            }
            assert_eq!(seen[0], seen[1], "{name}");
        }
    }
}

/// Requests as far as a client sends them before it leaves.
fn unfinished() -> Vec<(&'static str, String)> {
    let head = "POST /for-ever HTTP/1.1\r\nHost: h\r\n";
    // More than the buffer of a connection, and more than those of its socket.
    let (medium, large) = ("x".repeat(60_000), "x".repeat(8 << 20));
    vec![
        (
            "no body",
            "GET /for-ever HTTP/1.1\r\nHost: h\r\n\r\n".to_owned(),
        ),
        (
            "half a body",
            format!("{head}Content-Length: 1000\r\n\r\nabc"),
        ),
        (
            "a whole body",
            format!("{head}Content-Length: 3\r\n\r\nabc"),
        ),
        (
            "much of a body",
            format!("{head}Content-Length: 90000\r\n\r\n{medium}"),
        ),
        (
            LARGE,
            format!("{head}Content-Length: 9000000\r\n\r\n{large}"),
        ),
        (
            "chunks",
            format!("{head}Transfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n"),
        ),
        (
            "no chunk",
            format!("{head}Transfer-Encoding: chunked\r\n\r\n"),
        ),
        (
            "expect",
            format!("{head}Expect: 100-continue\r\nContent-Length: 1000\r\n\r\n"),
        ),
        (
            "upgrade",
            "GET /for-ever HTTP/1.1\r\nHost: h\r\nConnection: upgrade\r\nUpgrade: x\r\n\r\n"
                .to_owned(),
        ),
    ]
}

/// A body whose end does not fit into the buffers of the socket. That it was closed stands behind it, and is known when
/// it is read: after its wait.
const LARGE: &str = "a large body";

/// Two connections could keep a limit closed otherwise, each with half a request.
#[tokio::test]
async fn a_client_that_leaves_while_a_policy_waits_frees_its_place() {
    for Way { way, serve, route } in ways() {
        let origin = RawOrigin::answering(OK);
        let policies = Scripted::new(true);
        let server = serve(&proxy(&policies, &origin.url(), &route));
        for (name, request) in unfinished() {
            for resets in [false, true] {
                if name == LARGE && !resets {
                    continue;
                }
                let mut client = RawClient::connect(server.local_addrs()[0]).await.unwrap();
                // Not all of a large body is taken.
                let _ =
                    tokio::time::timeout(Duration::from_millis(300), client.write_all(&request))
                        .await;
                let label = format!("{way}, {name}: it waits");
                eventually(&label, || async { policies.waiting.load(Relaxed) == 1 }).await;
                match resets {
                    true => client.reset(),
                    false => client.close(),
                }
                let label = format!("{way}, {name}: its place is free");
                eventually(&label, || async { policies.waiting.load(Relaxed) == 0 }).await;
            }
        }
        assert_eq!(origin.traffic().requests(), 0, "{way}: none was forwarded");
    }
}

/// A reset of a stream, and the end of its connection.
#[cfg(feature = "http2")]
#[tokio::test]
async fn a_stream_that_ends_while_a_policy_waits_frees_its_place() {
    use crate::server::streams::Client;
    for Way { way, serve, route } in ways() {
        let origin = RawOrigin::answering(OK);
        let policies = Scripted::new(true);
        let server = serve(&proxy(&policies, &origin.url(), &route));
        for (has_body, resets) in [(false, true), (true, true), (false, false), (true, false)] {
            let client = Client::connect(server.local_addrs()[0]).await;
            let mut sender = client.sender.clone().ready().await.unwrap();
            let request = http::Request::post("http://h/for-ever").body(()).unwrap();
            let (response, mut stream) = sender.send_request(request, !has_body).unwrap();
            if has_body {
                stream.send_data("abc".into(), false).unwrap();
            }
            let label = format!("{way}: it waits");
            eventually(&label, || async { policies.waiting.load(Relaxed) == 1 }).await;
            match resets {
                true => stream.send_reset(h2::Reason::CANCEL),
                false => drop((client, sender)),
            }
            drop((response, stream));
            let label = format!("{way}, {has_body}: its place is free");
            eventually(&label, || async { policies.waiting.load(Relaxed) == 0 }).await;
        }
        assert_eq!(origin.traffic().requests(), 0, "{way}: none was forwarded");
    }
}

/// The time limit of the route is around its policies.
#[tokio::test]
async fn a_wait_ends_with_the_time_limit_of_the_route() {
    for serve in [as_bytes as fn(&Proxy) -> ServerHandle, over_types] {
        for route in [
            json!({ "Timeout": "00:00:00.05" }),
            json!({ "Timeout": "00:00:00.05", "Layers": ["pass"] }),
        ] {
            let origin = RawOrigin::answering(OK);
            let policies = Scripted::new(true);
            let server = serve(&proxy(&policies, &origin.url(), &route));
            for request in [
                "GET /for-ever HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n",
                "POST /for-ever HTTP/1.1\r\nHost: h\r\nConnection: close\r\nContent-Length: 9\r\n\r\nabc",
            ] {
                let response = bytes(server.local_addrs()[0], request).await;
                assert!(response.starts_with("HTTP/1.1 504 "), "{response}");
                assert_eq!(policies.waiting.load(Relaxed), 0);
            }
        }
    }
}

/// Route, cluster and cause of each request.
#[derive(Clone, Debug, Default)]
struct Log(Arc<Mutex<Vec<[String; 3]>>>);

impl AccessLogSink for Log {
    fn log(&self, record: &AccessRecord<'_>) {
        let exchange = record.exchange;
        let route = exchange.and_then(|exchange| exchange.route.as_ref());
        let cluster = exchange.and_then(|exchange| exchange.cluster.as_ref());
        let line = [
            route.map(ToString::to_string).unwrap_or_default(),
            cluster.map(ToString::to_string).unwrap_or_default(),
            record.cause().map(|c| c.to_string()).unwrap_or_default(),
        ];
        self.0.lock().push(line);
    }
}

/// The route matters most in the line of a request that did not arrive.
#[tokio::test]
async fn requests_of_clients_that_leave_are_logged_with_their_route() {
    for route in [json!({}), json!({ "Layers": ["pass"] })] {
        for request in [
            "GET /for-ever HTTP/1.1\r\nHost: h\r\n\r\n",
            "POST /for-ever HTTP/1.1\r\nHost: h\r\nContent-Length: 9\r\n\r\nabc",
        ] {
            let origin = RawOrigin::answering(OK);
            let policies = Scripted::new(true);
            let log = Log::default();
            let server = Server::for_proxy(&proxy(&policies, &origin.url(), &route))
                .with_workers(NonZeroUsize::MIN)
                .with_listener(Listener::http(loopback()))
                .with_access_log(Arc::new(log.clone()));
            let server = server.bind().unwrap().start().unwrap();
            let mut client = RawClient::connect(server.local_addrs()[0]).await.unwrap();
            client.write_all(request).await.unwrap();
            eventually("it waits", || async { policies.waiting.load(Relaxed) == 1 }).await;
            client.close();
            eventually("it is logged", || async { !log.0.lock().is_empty() }).await;
            let line = ["r1", "c1", "client_gone"].map(str::to_owned);
            assert_eq!(*log.0.lock(), [line], "{route} {request}");
        }
    }
}

/// Clients of gRPC get the answers of policies in their own words, whatever way the request goes.
#[cfg(feature = "http2")]
#[tokio::test]
async fn clients_of_grpc_get_a_status_of_grpc() {
    use crate::server::streams::Client;
    for Way { serve, route, .. } in ways() {
        for waits in [false, true] {
            let origin = RawOrigin::answering(OK);
            let policies = Scripted::new(waits);
            let server = serve(&proxy(&policies, &origin.url(), &route));
            let mut client = Client::connect(server.local_addrs()[0]).await;
            for (path, expected) in [("/denied", "7"), ("/over-limit", "8"), ("/unknown", "16")] {
                let request = http::Request::post(format!("http://h{path}"))
                    .header("content-type", "application/grpc")
                    .header("te", "trailers")
                    .body(());
                let answer = client.send(request.unwrap(), Some("abc".into()), None);
                let answer = guarded(path, answer).await.unwrap();
                assert_eq!((answer.status, &*answer.body), (200, &b""[..]), "{path}");
                assert_eq!(answer.fields["grpc-status"], expected, "{path}");
                assert_eq!(answer.fields["content-type"], "application/grpc");
                assert_eq!(answer.fields["x-left"], "7");
            }
            // Others get the status of HTTP.
            let request = http::Request::get("http://h/denied").body(()).unwrap();
            let answer = guarded("/denied", client.send(request, None, None))
                .await
                .unwrap();
            assert_eq!((answer.status, &*answer.body), (403, &b"Forbidden.\n"[..]));
        }
    }
}
