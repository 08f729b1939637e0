//! Traces on every way through the proxy: clients of both versions of HTTP, as bytes and over `http` types, with and
//! without layers, to destinations of both versions.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use discovery_core::{DiscoverError, Discoverer, Discovery, Merge, Runner};
use http::StatusCode;
use proxy_runtime::Proxy;
use proxy_runtime::layer::RouteService;
use proxy_runtime::proxy_model::Snapshot;
use proxy_runtime::proxy_model::config::ProxyConfig;
use proxy_runtime::server::ServerHandle;
use proxy_runtime::trace::{Decision, SpanKind, SpanValue, TraceSpan, Tracer, trace_cycles};
use serde_json::{Value, json};
use testkit::body;
use testkit::client::{Answer, Connection};
use testkit::faults::{RefusingPort, closes_at_next_request};
use testkit::origin::{Echo, Origin};
use tokio::sync::mpsc;
use tower_layer::layer_fn;

use crate::server::support::connections;
use crate::server::ways::{as_bytes, over_types};

const CALLER: &str = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";
const UNSAMPLED: &str = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-00";

/// Decides as it is told about requests without a caller, and as the caller about others.
struct Script {
    root: Decision,
    spans: mpsc::UnboundedSender<Vec<TraceSpan>>,
}

impl Tracer for Script {
    fn decide(&self, _: [u8; 16], caller: Option<bool>) -> Decision {
        match caller {
            Some(true) => Decision::Record,
            Some(false) => Decision::Drop,
            None => self.root,
        }
    }

    fn finished(&self, spans: Vec<TraceSpan>) {
        let _ = self.spans.send(spans);
    }
}

/// A way through the proxy.
struct Way {
    name: String,
    client: Connection,
    spans: mpsc::UnboundedReceiver<Vec<TraceSpan>>,
    _server: ServerHandle,
}

fn config(urls: &[String], route: &Value, cluster: &Value) -> Value {
    let named = urls.iter().enumerate();
    let named = named.map(|(number, url)| (format!("d{number}"), json!({ "Address": url })));
    let mut config = json!({
        "Routes": { "r": { "ClusterId": "c", "Match": { "Path": "/shop/{**rest}" } } },
        "Clusters": { "c": { "LoadBalancingPolicy": "FirstAlphabetical" } },
    });
    for (place, more) in [("/Routes/r", route), ("/Clusters/c", cluster)] {
        let place = config.pointer_mut(place).unwrap().as_object_mut().unwrap();
        place.extend(more.as_object().unwrap().clone());
    }
    config["Clusters"]["c"]["Destinations"] = Value::Object(named.collect());
    config
}

async fn ways(config: &Value, root: Decision) -> Vec<Way> {
    let mut ways = Vec::new();
    for is_layered in [false, true] {
        for (lane, serve) in [
            ("bytes", as_bytes as fn(&Proxy) -> ServerHandle),
            ("types", over_types),
        ] {
            for version in 0..if cfg!(feature = "http2") { 2 } else { 1 } {
                let (sender, spans) = mpsc::unbounded_channel();
                let tracer = Script {
                    root,
                    spans: sender,
                };
                let builder = Proxy::builder()
                    .layer("pass", layer_fn(|rest: RouteService| rest))
                    .tracer(Arc::new(tracer));
                let mut config = config.clone();
                if is_layered {
                    config["Routes"]["r"]["Layers"] = json!(["pass"]);
                }
                let config = ProxyConfig::from_json(&config.to_string()).unwrap();
                let compiled = Snapshot::compile(config, &builder.compile_options());
                let snapshot = Arc::new(compiled.unwrap().0);
                let (proxy, driver) = builder.snapshot(snapshot).build().unwrap();
                tokio::spawn(driver);
                let server = serve(&proxy);
                let client = connections(server.local_addrs()[0]).await.remove(version);
                ways.push(Way {
                    name: format!("{lane}, {:?}, layered: {is_layered}", client.protocol()),
                    client,
                    spans,
                    _server: server,
                });
            }
        }
    }
    ways
}

impl Way {
    async fn ask(&mut self, fields: &[(&str, &str)]) -> Answer {
        self.ask_for("/shop/1?secret=x", fields).await
    }

    async fn ask_for(&mut self, path: &str, fields: &[(&str, &str)]) -> Answer {
        let mut request = self.client.request("GET", path);
        for (name, value) in fields {
            request = request.header(*name, *value);
        }
        let request = request.body(body::empty()).unwrap();
        self.client.send(request).await.unwrap()
    }

    /// The span of the next request, and those of its attempts.
    async fn spans(&mut self, attempts: usize) -> (TraceSpan, Vec<TraceSpan>) {
        let mut all: Vec<TraceSpan> = Vec::new();
        while all.len() < attempts + 1 {
            let next = tokio::time::timeout(Duration::from_secs(120), self.spans.recv()).await;
            let next = next.unwrap_or_else(|_| panic!("{}: only {all:#?}", self.name));
            all.extend(next.unwrap());
        }
        let (of_request, of_attempts): (Vec<_>, Vec<_>) = all
            .into_iter()
            .partition(|span| span.kind == SpanKind::Server);
        assert_eq!(of_request.len(), 1, "{}", self.name);
        assert_eq!(of_attempts.len(), attempts, "{}", self.name);
        let request = of_request.into_iter().next().unwrap();
        for attempt in &of_attempts {
            assert_eq!(attempt.trace_id, request.trace_id, "{}", self.name);
            assert_eq!(attempt.parent, Some(request.span_id), "{}", self.name);
            assert!(attempt.start >= request.start && attempt.end >= attempt.start);
        }
        (request, of_attempts)
    }

    fn expect_no_spans(&mut self) {
        assert!(self.spans.try_recv().is_err(), "{}", self.name);
    }
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn text(span: &TraceSpan, name: &str) -> Option<String> {
    let (_, value) = span.attributes.iter().find(|(known, _)| *known == name)?;
    Some(match value {
        SpanValue::Text(text) => text.clone(),
        SpanValue::Integer(number) => number.to_string(),
    })
}

/// The traceparent of a recorded attempt, as its destination must get it.
fn parent_of(attempt: &TraceSpan, flags: &str) -> String {
    let (trace, span) = (hex(&attempt.trace_id), hex(&attempt.span_id));
    format!("00-{trace}-{span}-{flags}")
}

/// Settings of a cluster for each version of HTTP to its destinations.
fn versions() -> Vec<Value> {
    let mut versions = vec![json!({})];
    if cfg!(feature = "http2") {
        let http2 = json!({ "Version": "2", "VersionPolicy": "RequestVersionExact" });
        versions.push(json!({ "HttpRequest": http2 }));
    }
    versions
}

#[tokio::test]
async fn a_trace_goes_on_from_the_caller_to_the_destination() {
    let origin = Origin::echo();
    for cluster in versions() {
        let config = config(&[origin.url()], &json!({}), &cluster);
        for mut way in ways(&config, Decision::Ignore).await {
            let fields = [("traceparent", CALLER), ("tracestate", "a=1,b=2")];
            let answer = way.ask(&fields).await;
            assert_eq!(answer.status, StatusCode::OK, "{}", way.name);
            let echo: Echo = answer.json();
            let (request, attempts) = way.spans(1).await;
            let name = &way.name;
            assert_eq!(hex(&request.trace_id), &CALLER[3..35], "{name}");
            assert_eq!(hex(&request.parent.unwrap()), &CALLER[36..52], "{name}");
            assert_eq!(request.trace_state, "a=1,b=2", "{name}");
            assert_eq!(request.name, "GET /shop/{**rest}", "{name}");
            let expected = [
                ("http.request.method", "GET"),
                ("http.response.status_code", "200"),
                ("http.route", "/shop/{**rest}"),
                ("proxy.route", "r"),
                ("url.path", "/shop/1"),
                ("url.scheme", "http"),
            ];
            for (attribute, value) in expected {
                assert_eq!(text(&request, attribute).as_deref(), Some(value), "{name}");
            }
            assert!(!request.is_error, "{name}");
            assert!(!format!("{request:?}").contains("secret"), "{name}");
            let attempt = &attempts[0];
            assert_eq!(text(attempt, "proxy.destination").as_deref(), Some("d0"));
            assert_eq!(
                text(attempt, "http.response.status_code").as_deref(),
                Some("200")
            );
            assert_eq!(
                echo.header("traceparent"),
                [parent_of(attempt, "01")],
                "{name}"
            );
            assert_eq!(echo.header("tracestate"), ["a=1,b=2"], "{name}");
        }
    }
}

#[tokio::test]
async fn a_trace_that_begins_here_takes_nothing_from_invalid_fields() {
    let origin = Origin::echo();
    let config = config(&[origin.url()], &json!({}), &json!({}));
    for mut way in ways(&config, Decision::Record).await {
        let invalid: [&[(&str, &str)]; 3] = [
            &[],
            &[("traceparent", "00-0-0-01"), ("tracestate", "a=1")],
            // Two of them have no one meaning.
            &[("traceparent", CALLER), ("traceparent", CALLER)],
        ];
        for fields in invalid {
            let echo: Echo = way.ask(fields).await.json();
            let (request, attempts) = way.spans(1).await;
            assert_eq!(request.parent, None, "{}", way.name);
            assert_ne!(hex(&request.trace_id), &CALLER[3..35], "{}", way.name);
            assert_eq!(echo.header("traceparent"), [parent_of(&attempts[0], "03")]);
            assert!(echo.header("tracestate").is_empty(), "{}", way.name);
        }
    }
}

#[tokio::test]
async fn destinations_are_told_what_was_decided_elsewhere() {
    let origin = Origin::echo();
    let config = config(&[origin.url()], &json!({}), &json!({}));
    for root in [Decision::Ignore, Decision::Drop] {
        for mut way in ways(&config, root).await {
            let echo: Echo = way
                .ask(&[("traceparent", UNSAMPLED), ("tracestate", "a=1")])
                .await
                .json();
            assert_eq!(echo.header("traceparent"), [UNSAMPLED], "{}", way.name);
            assert_eq!(echo.header("tracestate"), ["a=1"], "{}", way.name);
            let echo: Echo = way.ask(&[]).await.json();
            let told = echo.header("traceparent");
            match root {
                Decision::Drop => assert!(told[0].ends_with("-02"), "{}: {told:?}", way.name),
                _ => assert!(told.is_empty(), "{}: {told:?}", way.name),
            }
            way.expect_no_spans();
        }
    }
}

#[tokio::test]
async fn each_destination_that_is_tried_has_a_span() {
    let (closed, origin) = (RefusingPort::new(), Origin::echo());
    for cluster in versions() {
        let config = config(&[closed.url(), origin.url()], &json!({}), &cluster);
        for mut way in ways(&config, Decision::Record).await {
            let echo: Echo = way.ask(&[]).await.json();
            let (request, attempts) = way.spans(2).await;
            let name = &way.name;
            assert!(!request.is_error, "{name}");
            let [first, second] = &attempts[..] else {
                panic!("{name}");
            };
            assert_eq!(
                text(first, "proxy.destination").as_deref(),
                Some("d0"),
                "{name}"
            );
            assert_eq!(
                text(first, "error.type").as_deref(),
                Some("Request"),
                "{name}"
            );
            assert!(first.is_error && !second.is_error, "{name}");
            assert_eq!(
                text(second, "http.request.resend_count").as_deref(),
                Some("1")
            );
            assert_eq!(
                echo.header("traceparent"),
                [parent_of(second, "03")],
                "{name}"
            );
        }
    }
}

/// A connection that was closed while it was idle is no attempt of its own.
#[tokio::test]
async fn a_request_over_a_new_connection_to_the_same_destination_has_one_span() {
    let closing = closes_at_next_request();
    let config = config(&[closing.url()], &json!({}), &json!({}));
    for mut way in ways(&config, Decision::Record).await {
        for _ in 0..2 {
            assert_eq!(way.ask(&[]).await.status, StatusCode::OK, "{}", way.name);
            let (request, _) = way.spans(1).await;
            assert!(!request.is_error, "{}", way.name);
        }
    }
}

#[tokio::test]
async fn failures_and_rejections_have_spans() {
    let closed = RefusingPort::new();
    let config = config(&[closed.url()], &json!({}), &json!({}));
    for mut way in ways(&config, Decision::Record).await {
        assert_eq!(way.ask(&[]).await.status, StatusCode::BAD_GATEWAY);
        let (request, attempts) = way.spans(1).await;
        for span in [&request, &attempts[0]] {
            assert_eq!(
                text(span, "error.type").as_deref(),
                Some("Request"),
                "{}",
                way.name
            );
            let cause = text(span, "proxy.cause");
            assert_eq!(cause.as_deref(), Some("connection_refused"), "{}", way.name);
            assert!(span.is_error, "{}", way.name);
        }
        assert_eq!(
            text(&request, "http.response.status_code").as_deref(),
            Some("502")
        );
        assert_eq!(
            way.ask_for("/elsewhere", &[]).await.status,
            StatusCode::NOT_FOUND
        );
        let (request, _) = way.spans(0).await;
        assert_eq!(request.name, "GET", "{}", way.name);
        assert_eq!(
            text(&request, "http.response.status_code").as_deref(),
            Some("404")
        );
        assert!(!request.is_error, "it is the client's: {}", way.name);
    }
}

#[tokio::test]
async fn a_route_may_hide_its_trace() {
    let origin = Origin::echo();
    let hides = json!({ "Transforms": [{ "RequestHeaderRemove": "traceparent" }] });
    for cluster in versions() {
        let config = config(&[origin.url()], &hides, &cluster);
        for mut way in ways(&config, Decision::Record).await {
            let echo: Echo = way.ask(&[]).await.json();
            way.spans(1).await;
            assert!(echo.header("traceparent").is_empty(), "{}", way.name);
        }
    }
}

/// A source that answers each other poll, after 2 s.
struct EveryOther(AtomicUsize);

#[async_trait::async_trait]
impl Discoverer for EveryOther {
    fn name(&self) -> &str {
        "registry"
    }

    async fn discover(&self) -> Result<Discovery, DiscoverError> {
        tokio::time::sleep(Duration::from_secs(2)).await;
        match self.0.fetch_add(1, Ordering::Relaxed) % 2 {
            0 => Ok(Discovery::default()),
            _ => Err(DiscoverError::permanent("the token is not valid")),
        }
    }
}

/// Polls are traces of their own, with their beginning and end, and the kind of a failure.
#[tokio::test(start_paused = true)]
async fn a_poll_of_a_source_is_a_span() {
    let source = Runner::new(EveryOther(AtomicUsize::new(0)));
    let merged = Merge::new().provider(source.start()).start();
    let (sender, mut spans) = mpsc::unbounded_channel();
    let tracer: Arc<dyn Tracer> = Arc::new(Script {
        root: Decision::Record,
        spans: sender,
    });
    for (name, cycles) in merged.cycles() {
        tokio::spawn(trace_cycles(Arc::clone(&tracer), name, cycles));
    }
    let mut traces = Vec::new();
    for number in 1..=4 {
        let [span] = <[_; 1]>::try_from(spans.recv().await.unwrap()).unwrap();
        assert_eq!(
            (span.kind, &*span.name),
            (SpanKind::Internal, "discovery poll")
        );
        let fields = ["proxy.source", "proxy.source.poll", "error.type"];
        let failed = number % 2 == 0;
        let expected = [
            Some("registry".to_owned()),
            Some(number.to_string()),
            failed.then(|| "permanent".to_owned()),
        ];
        assert_eq!(fields.map(|name| text(&span, name)), expected);
        assert_eq!(span.is_error, failed);
        let took = span.end.duration_since(span.start).unwrap();
        assert_eq!(took, Duration::from_secs(2));
        traces.push(span.trace_id);
    }
    traces.sort_unstable();
    traces.dedup();
    assert_eq!(traces.len(), 4);
}
