//! The export against a collector that decodes with the official definitions of OTLP.

mod collector;
mod metrics;
mod settings;

use std::sync::Arc;
use std::time::{Duration, SystemTime};

use opentelemetry_proto::tonic::common::v1::any_value::Value;
use proxy_model::Snapshot;
use proxy_model::config::ProxyConfig;
use proxy_runtime::Proxy;
use proxy_runtime::server::{Listener, Server};
use testkit::client::Connection;
use testkit::origin::{Echo, Origin};
use testkit::time::guarded;

use self::collector::{Collector, Reply};
use crate::{Settings, Telemetry};

/// The variables of a program that exports to this collector.
fn variables(more: &[(&str, &str)]) -> impl Fn(&str) -> Option<String> + use<> {
    let all: Vec<(String, String)> = more
        .iter()
        .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()))
        .collect();
    move |name| {
        let found = all.iter().find(|(known, _)| known == name)?;
        Some(found.1.clone())
    }
}

fn settings(collector: &Collector, more: &[(&str, &str)]) -> Settings {
    let url = collector.url();
    let mut all = vec![
        ("OTEL_EXPORTER_OTLP_ENDPOINT", url.as_str()),
        ("OTEL_BSP_SCHEDULE_DELAY", "10"),
    ];
    all.extend(more);
    let settings = Settings::from_variables("shop", "1.2.3", &variables(&all));
    settings.unwrap().unwrap()
}

/// Forwards requests through a traced proxy, and returns what the destination got of the last.
async fn forward(telemetry: &Telemetry, requests: usize) -> Echo {
    let origin = Origin::echo();
    let config = format!(
        r#"{{
            "Routes": {{ "r": {{ "ClusterId": "c", "Match": {{ "Path": "/shop/{{**rest}}" }} }} }},
            "Clusters": {{ "c": {{ "Destinations": {{ "d": {{ "Address": "{}" }} }} }} }}
        }}"#,
        origin.url()
    );
    let builder = Proxy::builder().tracer(telemetry.tracer());
    let config = ProxyConfig::from_json(&config).unwrap();
    let compiled = Snapshot::compile(config, &builder.compile_options());
    let snapshot = Arc::new(compiled.unwrap().0);
    let (proxy, driver) = builder.snapshot(snapshot).build().unwrap();
    let driver = tokio::spawn(driver);
    let listener = Listener::http(([127, 0, 0, 1], 0).into());
    let server = Server::for_proxy(&proxy).with_listener(listener);
    let server = server.bind().unwrap().start().unwrap();
    let mut client = Connection::http1(server.local_addrs()[0]).await.unwrap();
    let mut echo = None;
    for _ in 0..requests {
        echo = Some(client.get("/shop/1").await.unwrap().json());
    }
    server.shutdown(Duration::from_secs(5)).await;
    driver.abort();
    echo.unwrap()
}

const PROTOCOLS: [&str; 2] = ["http/protobuf", "grpc"];

#[tokio::test(flavor = "multi_thread")]
async fn a_collector_reads_the_spans_of_requests() {
    for protocol in PROTOCOLS {
        for compression in ["none", "gzip"] {
            let collector = Collector::start(|_| Reply::Accept).await;
            let settings = settings(
                &collector,
                &[
                    ("OTEL_EXPORTER_OTLP_PROTOCOL", protocol),
                    ("OTEL_EXPORTER_OTLP_COMPRESSION", compression),
                    ("OTEL_EXPORTER_OTLP_HEADERS", "x-key=a%20b"),
                    ("OTEL_RESOURCE_ATTRIBUTES", "deployment.environment=test"),
                ],
            );
            let telemetry = Telemetry::start(&settings).unwrap();
            let echo = forward(&telemetry, 3).await;
            let dropped = telemetry.dropped_spans();
            assert!(telemetry.shutdown(Duration::from_secs(60)).await);
            assert_eq!(dropped(), 0);

            let case = format!("{protocol}, {compression}");
            let spans = collector.spans();
            assert_eq!(spans.len(), 6, "{case}");
            let request = collector.requests().pop().unwrap();
            assert_eq!(request.headers["x-key"], "a b", "{case}");
            let path = match protocol {
                "grpc" => "/opentelemetry.proto.collector.trace.v1.TraceService/Export",
                _ => "/v1/traces",
            };
            assert_eq!(request.path, path);
            let resource = request.message.resource_spans[0].resource.clone().unwrap();
            let text = |name: &str| {
                let found = resource.attributes.iter().find(|pair| pair.key == name)?;
                match found.value.clone()?.value? {
                    Value::StringValue(text) => Some(text),
                    _ => None,
                }
            };
            assert_eq!(text("service.name").as_deref(), Some("shop"), "{case}");
            assert_eq!(text("service.version").as_deref(), Some("1.2.3"), "{case}");
            assert_eq!(text("deployment.environment").as_deref(), Some("test"));

            // The destination knows its attempt by the ids of the last span of kind client.
            let told = echo.header("traceparent")[0].to_owned();
            let hex = |bytes: &[u8]| {
                bytes
                    .iter()
                    .map(|byte| format!("{byte:02x}"))
                    .collect::<String>()
            };
            let attempt = spans
                .iter()
                .find(|span| told.contains(&hex(&span.span_id)))
                .unwrap();
            assert_eq!(attempt.kind, 3, "{case}");
            assert!(told.contains(&hex(&attempt.trace_id)), "{case}");
            let parent = spans
                .iter()
                .find(|span| span.span_id == attempt.parent_span_id)
                .unwrap();
            assert_eq!(
                (parent.kind, parent.name.as_str()),
                (2, "GET /shop/{**rest}")
            );
            assert!(parent.parent_span_id.is_empty());
            assert!(parent.start_time_unix_nano <= attempt.start_time_unix_nano);
            assert!(attempt.end_time_unix_nano <= parent.end_time_unix_nano);
            let now = SystemTime::now()
                .duration_since(SystemTime::UNIX_EPOCH)
                .unwrap();
            let age = now - Duration::from_nanos(parent.start_time_unix_nano);
            assert!(age < Duration::from_secs(60), "{case}: {age:?}");
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_batch_that_is_refused_for_now_is_sent_again() {
    for protocol in PROTOCOLS {
        let collector = Collector::start(|number| match number {
            0 => Reply::Busy,
            _ => Reply::Accept,
        })
        .await;
        let settings = settings(&collector, &[("OTEL_EXPORTER_OTLP_PROTOCOL", protocol)]);
        let telemetry = Telemetry::start(&settings).unwrap();
        forward(&telemetry, 1).await;
        collector.wait_for_spans(2).await;
        assert_eq!(telemetry.dropped_spans()(), 0, "{protocol}");
        assert_eq!(collector.requests().len(), 2, "{protocol}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_collector_rejects_is_counted_and_not_sent_again() {
    for protocol in PROTOCOLS {
        let collector = Collector::start(|_| Reply::Reject).await;
        let settings = settings(&collector, &[("OTEL_EXPORTER_OTLP_PROTOCOL", protocol)]);
        let telemetry = Telemetry::start(&settings).unwrap();
        forward(&telemetry, 1).await;
        let dropped = telemetry.dropped_spans();
        assert!(telemetry.shutdown(Duration::from_secs(60)).await);
        assert_eq!(dropped(), 2, "{protocol}");
        assert_eq!(collector.requests().len(), 1, "{protocol}");
    }
}

/// Requests are forwarded as ever, and the end of the program does not wait for long.
#[tokio::test(flavor = "multi_thread")]
async fn a_collector_that_hangs_costs_spans_alone() {
    for protocol in PROTOCOLS {
        let collector = Collector::start(|_| Reply::Hang).await;
        let settings = settings(
            &collector,
            &[
                ("OTEL_EXPORTER_OTLP_PROTOCOL", protocol),
                ("OTEL_BSP_MAX_QUEUE_SIZE", "10"),
                ("OTEL_BSP_MAX_EXPORT_BATCH_SIZE", "2"),
                ("OTEL_BSP_EXPORT_TIMEOUT", "3600000"),
            ],
        );
        let telemetry = Telemetry::start(&settings).unwrap();
        forward(&telemetry, 50).await;
        let dropped = telemetry.dropped_spans();
        // Ten of a hundred fit.
        assert_eq!(dropped(), 90, "{protocol}");
        let ending = telemetry.shutdown(Duration::from_millis(100));
        let is_whole = guarded(format!("the end: {protocol}"), ending).await;
        assert!(!is_whole, "{protocol}");
    }
}
