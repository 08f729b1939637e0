//! The operator's test: each cause of a failure is made in a running proxy, and access log, metrics, spans, verdict
//! and problems name it alike, on every way through the proxy.

mod faults;

use std::collections::BTreeSet;
use std::num::NonZeroUsize;
use std::sync::Arc;

use bytes::Bytes;
use http::{Request, StatusCode};
use parking_lot::Mutex;
use proxy_runtime::admin::Admin;
use proxy_runtime::filter::{Filter, FilterContext, Flow, Reply, RequestEdit};
use proxy_runtime::health::Health;
use proxy_runtime::layer::RouteService;
use proxy_runtime::policy::{FailingPolicy, PolicyDecision, PolicySource, RoutePolicies};
use proxy_runtime::proxy_model::compiled::Route;
use proxy_runtime::proxy_model::config::{PolicyKind, ProxyConfig};
use proxy_runtime::proxy_model::{Problems, Snapshot};
use proxy_runtime::server::{AccessLogSink, AccessRecord, Listener, Server, ServerHandle};
use proxy_runtime::trace::{Decision, SpanKind, SpanValue, TraceSpan, Tracer};
use proxy_runtime::upstream::UpstreamOptions;
use proxy_runtime::{Cause, ConnectionInfo, Proxy, ProxyBuilder, Side};
use serde_json::{Value, json};
use testkit::raw::RawClient;
use testkit::time::{eventually, guarded};
use tower_layer::layer_fn;

use crate::server::causes::faults::{Act, Fault, Peers, fault, without_client_certificate};
use crate::server::support::loopback;
use crate::server::ways::Disguised;

/// The causes in the lines of an access log.
#[derive(Debug, Default)]
struct Causes(Mutex<Vec<(Option<u16>, Option<Cause>)>>);

impl AccessLogSink for Causes {
    fn log(&self, record: &AccessRecord<'_>) {
        let status = record.status.map(|status| status.as_u16());
        self.0.lock().push((status, record.cause()));
    }
}

/// The finished spans of requests, without those of attempts.
#[derive(Default)]
struct Spans(Mutex<Vec<TraceSpan>>);

impl Tracer for Spans {
    fn decide(&self, _: [u8; 16], _: Option<bool>) -> Decision {
        Decision::Record
    }

    fn finished(&self, spans: Vec<TraceSpan>) {
        let of_requests = spans
            .into_iter()
            .filter(|span| span.kind == SpanKind::Server);
        self.0.lock().extend(of_requests);
    }
}

impl Spans {
    /// Returns true if a request ended with this cause.
    fn have(&self, cause: Cause) -> bool {
        let expected = [
            ("proxy.cause", cause.as_str()),
            ("proxy.side", cause.side().as_str()),
        ];
        let spans = self.0.lock();
        spans.iter().any(|span| {
            expected.iter().all(|(name, value)| {
                let mut found = span.attributes.iter().filter(|(known, _)| known == name);
                let value = SpanValue::Text((*value).to_owned());
                found.next().is_some_and(|(_, found)| *found == value)
            })
        })
    }
}

/// Replies with this status.
struct Answers(u16);

impl Filter for Answers {
    fn on_request(&self, _: &mut RequestEdit<'_>, _: &FilterContext<'_>) -> Flow {
        Reply::new(StatusCode::from_u16(self.0).unwrap()).into()
    }
}

struct Panics;

impl Filter for Panics {
    fn on_request(&self, _: &mut RequestEdit<'_>, _: &FilterContext<'_>) -> Flow {
        panic!("as the test wants")
    }
}

/// A policy of routes with the metadata `Asks`, the kind of the policy, whose service is dead.
struct Asks(PolicyKind);

impl PolicySource for Asks {
    fn of_routes(
        &self,
        snapshot: &Snapshot,
    ) -> Result<Vec<Option<Arc<dyn RoutePolicies>>>, Problems> {
        let policies = |route: &Route| {
            let metadata = route.config().metadata.as_ref();
            let asks = metadata.is_some_and(|metadata| metadata.contains_key("Asks"));
            asks.then(|| Arc::new(Self(self.0)) as Arc<dyn RoutePolicies>)
        };
        Ok(snapshot.routes().iter().map(policies).collect())
    }

    fn failing(&self) -> Vec<FailingPolicy> {
        vec![FailingPolicy {
            kind: self.0,
            name: Arc::from("staff"),
            detail: "http://auth.example/: connection refused".to_owned(),
        }]
    }
}

impl RoutePolicies for Asks {
    fn judge(&self, _: &mut RequestEdit<'_>, _: &Route, _: ConnectionInfo) -> PolicyDecision {
        let (status, cause) = match self.0 {
            PolicyKind::RateLimiter => (StatusCode::TOO_MANY_REQUESTS, Cause::OverShare),
            _ => (
                StatusCode::SERVICE_UNAVAILABLE,
                Cause::AuthorizationUnavailable,
            ),
        };
        PolicyDecision::Respond(Reply::new(status).because(cause))
    }
}

/// The way of a request through the proxy.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Way {
    Bytes,
    Types,
    Layer,
}

fn builder(options: UpstreamOptions, asks: Option<PolicyKind>) -> ProxyBuilder {
    let builder = match asks {
        Some(kind) => Proxy::builder().policies(Arc::new(Asks(kind))),
        None => Proxy::builder(),
    };
    builder
        .filter("deny", Answers(403))
        .filter("limit", Answers(429))
        .filter("panic", Panics)
        .layer("pass", layer_fn(|rest: RouteService| rest))
        .upstream(options)
}

fn compiled(config: &Value, way: Way) -> Arc<Snapshot> {
    let mut config = config.clone();
    if way == Way::Layer {
        config["Routes"]["r"]["Layers"] = json!(["pass"]);
    }
    let config = ProxyConfig::from_json(&config.to_string()).unwrap();
    let options = builder(UpstreamOptions::default(), None).compile_options();
    Arc::new(Snapshot::compile(config, &options).unwrap().0)
}

/// A proxy in a server, with all that an operator looks at.
struct Scene {
    way: Way,
    config: Value,
    proxy: Proxy,
    server: ServerHandle,
    admin: Admin,
    log: Arc<Causes>,
    spans: Arc<Spans>,
    _peers: Peers,
}

impl Scene {
    fn start(way: Way, config: Value, options: UpstreamOptions, peers: Peers) -> Self {
        Self::telling(way, config, options, peers, &[])
    }

    /// Starts a proxy that gives clients of these networks the causes of errors.
    fn telling(
        way: Way,
        config: Value,
        options: UpstreamOptions,
        peers: Peers,
        networks: &[&str],
    ) -> Self {
        let asks = match config["Routes"]["r"]["Metadata"]["Asks"].as_str() {
            Some("RateLimiter") => Some(PolicyKind::RateLimiter),
            Some(_) => Some(PolicyKind::Authorization),
            None => None,
        };
        let spans = Arc::new(Spans::default());
        let networks = networks.iter().map(|network| network.parse().unwrap());
        let (proxy, driver) = builder(options, asks)
            .cause_header(networks)
            .tracer(Arc::clone(&spans) as Arc<dyn Tracer>)
            .snapshot(compiled(&config, way))
            .build()
            .unwrap();
        tokio::spawn(driver);
        let log = Arc::new(Causes::default());
        let sink = Arc::clone(&log) as Arc<dyn AccessLogSink>;
        let served = proxy.clone();
        let server = match way {
            Way::Types => Server::builder(move || Disguised(served.service())),
            Way::Bytes | Way::Layer => Server::for_proxy(&proxy),
        };
        let server = server.with_workers(NonZeroUsize::MIN).with_access_log(sink);
        let server = server.with_listener(Listener::http(loopback()));
        Self {
            way,
            config,
            server: server.bind().unwrap().start().unwrap(),
            admin: Admin::builder(proxy.clone()).build(),
            proxy,
            log,
            spans,
            _peers: peers,
        }
    }

    fn asked(&self, path: &str) -> Bytes {
        let request = Request::get(path).header("host", "localhost").body(());
        self.admin.respond(&request.unwrap()).into_body()
    }

    fn json(&self, path: &str) -> Value {
        serde_json::from_slice(&self.asked(path)).unwrap()
    }

    /// Waits for a line of the access log.
    async fn logged(&self, count: usize) {
        eventually("the request is logged", async || {
            self.log.0.lock().len() >= count
        })
        .await;
    }

    async fn play(&self, cause: Cause, acts: Vec<Act>) {
        let address = self.server.local_addrs()[0];
        let mut held = Vec::new();
        for act in acts {
            match act {
                Act::Ask(request, expected) => {
                    let before = self.log.0.lock().len();
                    let mut client = RawClient::connect(address).await.unwrap();
                    client.write_all(&request).await.unwrap();
                    // A reset ends it as well.
                    let said = guarded("the end of the response", client.read_to_end()).await;
                    let said = said.unwrap_or_default();
                    let status = said.get(9..12).map(String::from_utf8_lossy);
                    assert_eq!(status.as_deref(), Some(expected), "{cause} {:?}", self.way);
                    self.logged(before + 1).await;
                }
                Act::Hold(request) => {
                    let mut client = RawClient::connect(address).await.unwrap();
                    client.write_all(&request).await.unwrap();
                    held.push(client);
                }
                Act::Until(is_ready) => eventually("the peer is ready", async || is_ready()).await,
                Act::Leave => {
                    held.clear();
                    self.logged(1).await;
                }
                Act::Unhealthy => {
                    let (cluster, destination) = ("c".into(), "d".into());
                    assert!(
                        self.proxy
                            .set_health(&cluster, &destination, Health::Unhealthy)
                    );
                }
                Act::LeadBack => {
                    let mut config = self.config.clone();
                    config["Clusters"]["c"]["Destinations"]["d"]["Address"] =
                        json!(format!("http://{address}/"));
                    self.proxy.publish(compiled(&config, self.way)).unwrap();
                }
            }
        }
    }

    /// All that an operator looks at names the cause.
    async fn check(&self, cause: Cause) {
        let case = format!("{cause} {:?}", self.way);
        let lines = self.log.0.lock().clone();
        // Where a request follows itself in a loop, one of the two lines is about the other.
        let mut named = lines.iter().filter_map(|(_, cause)| *cause);
        assert!(named.any(|named| named == cause), "{case}: {lines:?}");
        eventually(format!("{case} is in a span"), async || {
            // The server rejects these before there is a request of the proxy.
            cause == Cause::MalformedRequest || self.spans.have(cause)
        })
        .await;
        let series = format!("cause=\"{cause}\",side=\"{}\"", cause.side().as_str());
        // The end of a tunnel is counted by a task of its own.
        eventually(format!("{case} is counted"), async || {
            let metrics = self.asked("/metrics");
            let metrics = String::from_utf8_lossy(&metrics);
            let mut counted = metrics
                .lines()
                .filter(|line| line.starts_with("proxy_failures_total"));
            counted.any(|line| line.contains(&series))
        })
        .await;
        let overview = self.json("/api/v1/overview");
        let problems = self.json("/api/v1/problems");
        if cause.side() == Side::Client {
            assert_eq!(overview["state"], "ok", "{case}: {overview}");
            return;
        }
        let problems = problems["problems"].as_array().unwrap();
        let codes: Vec<_> = problems.iter().map(|problem| &problem["code"]).collect();
        if cause == Cause::LoopDetected {
            // It fails before the cluster is known, so that a problem of the route is all that there is.
            assert!(codes.contains(&&json!(cause.as_str())), "{case}: {codes:?}");
            return;
        }
        let concern = &overview["concerns"][0];
        assert_eq!(concern["cause"], cause.as_str(), "{case}: {overview}");
        assert_eq!(concern["side"], cause.side().as_str(), "{case}");
        if concern["kind"] == "route" {
            return;
        }
        if concern["kind"] == "policy" {
            let what = match cause {
                Cause::OverShare => "Granting shares of limits",
                _ => "Unable to authorize",
            };
            let sentence = format!("{what}: staff (http://auth.example/: connection refused).");
            assert_eq!(overview["sentence"], *sentence, "{case}");
            assert!(codes.contains(&&json!(cause.as_str())), "{case}: {codes:?}");
            return;
        }
        let sentence = overview["sentence"].as_str().unwrap();
        assert!(
            sentence.contains(&cause.as_str().replace('_', " ")),
            "{case}: {sentence}"
        );
        let is_listed = problems.iter().any(|problem| {
            problem["code"] == cause.as_str() && problem["pointer"] == "/Clusters/c"
        });
        assert!(is_listed, "{case}: {problems:?}");
    }
}

/// The causes that no peer can make at will; tests beside their code make them.
const NOT_INJECTED: &[Cause] = &[
    // Another error of the system than those with names of their own.
    Cause::ConnectFailed,
    // Out of descriptors, ports or memory.
    Cause::Exhausted,
    // Files of certificates that cannot be read keep the configuration from serving.
    Cause::TlsSettings,
    // Many clients, or a server that is stopping.
    Cause::ClientMemory,
    Cause::Overloaded,
    Cause::DrainTimeout,
    // The server rejects these before the proxy sees them.
    Cause::FieldsTooLarge,
];

#[tokio::test]
async fn all_that_operators_look_at_names_the_same_cause() {
    let mut injected = BTreeSet::new();
    let mut failed = Vec::new();
    for cause in Cause::ALL {
        for way in [Way::Bytes, Way::Types, Way::Layer] {
            let Some(Fault {
                config,
                options,
                peers,
                acts,
            }) = fault(*cause)
            else {
                continue;
            };
            injected.insert(cause.as_str());
            let played = tokio::spawn(async move {
                let scene = Scene::start(way, config, options, peers);
                scene.play(*cause, acts).await;
                scene.check(*cause).await;
            });
            if played.await.is_err() {
                failed.push((cause.as_str(), way));
            }
        }
    }
    assert!(failed.is_empty(), "their panics are above: {failed:?}");
    let left: Vec<_> = Cause::ALL
        .iter()
        .filter(|cause| !injected.contains(cause.as_str()))
        .collect();
    assert_eq!(left.len(), NOT_INJECTED.len(), "{left:?}");
    assert!(
        left.iter().all(|cause| NOT_INJECTED.contains(cause)),
        "{left:?}"
    );
    assert!(injected.len() >= 30, "{}", injected.len());
}

/// The handshake of TLS 1.3 has ended for the proxy before the destination rejects it.
#[tokio::test]
async fn a_client_certificate_that_is_missing_is_a_failed_handshake() {
    for version in ["1.1", "2"] {
        for way in [Way::Bytes, Way::Types, Way::Layer] {
            let fault = without_client_certificate(version);
            let scene = Scene::start(way, fault.config, fault.options, fault.peers);
            scene.play(Cause::TlsFailed, fault.acts).await;
            scene.check(Cause::TlsFailed).await;
        }
    }
}

/// The access log has a cause for what the server rejects before a route is looked for; so do the metrics.
#[tokio::test]
async fn what_is_rejected_before_routing_is_counted() {
    let (config, options) = (
        json!({ "Clusters": { "c": {} } }),
        UpstreamOptions::default(),
    );
    let scene = Scene::start(Way::Bytes, config, options, Peers::default());
    let address = scene.server.local_addrs()[0];
    let large = "x".repeat(1 << 20);
    for (number, (request, status, cause)) in [
        (
            "GET / HTTP/1.1\r\n\r\n".to_owned(),
            "400",
            Cause::MalformedRequest,
        ),
        (
            "CONNECT h HTTP/1.1\r\nHost: h\r\n\r\n".to_owned(),
            "405",
            Cause::MalformedRequest,
        ),
        (
            "GET / HTTP/1.1\r\nHost: h\r\nA b\r\n\r\n".to_owned(),
            "400",
            Cause::MalformedRequest,
        ),
        (
            format!("GET / HTTP/1.1\r\nHost: h\r\nX: {large}\r\n\r\n"),
            "431",
            Cause::FieldsTooLarge,
        ),
    ]
    .into_iter()
    .enumerate()
    {
        let mut client = RawClient::connect(address).await.unwrap();
        // The server may close before all of it is read.
        let _ = client.write_all(&request).await;
        let said = client.read_to_end().await.unwrap_or_default();
        let said = said.get(9..12).map(String::from_utf8_lossy);
        assert!(said.is_none_or(|said| said == status), "{status}");
        scene.logged(number + 1).await;
        let line = scene.log.0.lock()[number];
        assert_eq!(line, (status.parse().ok(), Some(cause)));
    }
    let metrics = scene.asked("/metrics");
    let metrics = String::from_utf8_lossy(&metrics);
    for line in [
        r#"proxy_failures_total{cluster="",cause="malformed_request",side="client"} 3"#,
        r#"proxy_failures_total{cluster="",cause="fields_too_large",side="client"} 1"#,
    ] {
        assert!(
            metrics.lines().any(|found| found == line),
            "{line}\n{metrics}"
        );
    }
}

/// Only clients of trusted networks get the cause in a header.
#[tokio::test]
async fn trusted_clients_get_the_cause_in_a_header() {
    for cause in [
        Cause::ConnectionRefused,
        Cause::ResetBeforeResponse,
        Cause::NoRoute,
        Cause::NoCluster,
        Cause::NoDestination,
        Cause::BodyTooLarge,
        Cause::RejectedByPolicy,
        Cause::AuthorizationUnavailable,
        Cause::OverShare,
        Cause::PolicyMissing,
    ] {
        for way in [Way::Bytes, Way::Types, Way::Layer] {
            for (network, is_told) in [("127.0.0.0/8", true), ("10.0.0.0/8", false)] {
                let fault = fault(cause).unwrap();
                let (options, peers) = (fault.options, fault.peers);
                let scene = Scene::telling(way, fault.config, options, peers, &[network]);
                let Some(Act::Ask(request, status)) = fault.acts.first() else {
                    panic!("{cause} begins with a request");
                };
                let address = scene.server.local_addrs()[0];
                let mut client = RawClient::connect(address).await.unwrap();
                client.write_all(request).await.unwrap();
                let said = guarded("the response", client.read_to_end()).await.unwrap();
                let said = String::from_utf8_lossy(&said).to_ascii_lowercase();
                assert!(said.starts_with(&format!("http/1.1 {status}")), "{said}");
                let header = format!("\r\nx-proxy-cause: {cause}\r\n");
                assert_eq!(
                    said.contains(&header),
                    is_told,
                    "{cause} {way:?} {network}: {said}"
                );
                assert_eq!(said.contains("x-proxy-cause"), is_told, "{cause} {way:?}");
            }
        }
    }
}
