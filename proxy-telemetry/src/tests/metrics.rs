//! The export of metrics against a collector that decodes with the official definitions of OTLP.

use std::time::{Duration, Instant};

use opentelemetry_proto::tonic::common::v1::any_value::Value;
use opentelemetry_proto::tonic::metrics::v1::metric::Data;
use opentelemetry_proto::tonic::metrics::v1::{AggregationTemporality, number_data_point};

use super::collector::{Collector, Reply};
use super::{PROTOCOLS, variables};
use crate::{MetricsExport, MetricsSettings};

const TEXT: &str = "\
# HELP http_server_request_duration_seconds From here to there.
# TYPE http_server_request_duration_seconds histogram
http_server_request_duration_seconds_sum{http_route=\"r\"} 1.5
http_server_request_duration_seconds_count{http_route=\"r\"} 3
http_server_request_duration_seconds_bucket{le=\"0.5\",http_route=\"r\"} 2
http_server_request_duration_seconds_bucket{le=\"+Inf\",http_route=\"r\"} 3
# TYPE proxy_errors counter
proxy_errors_total{cluster=\"c\"} 7
# TYPE http_server_active_requests gauge
http_server_active_requests 0
# EOF
";

fn settings(collector: &Collector, more: &[(&str, &str)]) -> MetricsSettings {
    let url = collector.url();
    let mut all = vec![
        ("OTEL_EXPORTER_OTLP_ENDPOINT", url.as_str()),
        ("OTEL_METRICS_EXPORTER", "otlp"),
    ];
    all.extend(more);
    let settings = MetricsSettings::from_variables("shop", "1.2.3", &variables(&all));
    settings.unwrap().unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_collector_reads_the_metrics_of_an_exposition() {
    for protocol in PROTOCOLS {
        for compression in ["none", "gzip"] {
            let collector = Collector::start(|_| Reply::Accept).await;
            let more = [
                ("OTEL_EXPORTER_OTLP_PROTOCOL", protocol),
                ("OTEL_EXPORTER_OTLP_COMPRESSION", compression),
                ("OTEL_EXPORTER_OTLP_METRICS_HEADERS", "x-key=a"),
            ];
            let export = MetricsExport::start(&settings(&collector, &more), || TEXT.to_owned());
            // Nothing is due before an hour has passed; the end sends the last values.
            assert!(export.unwrap().shutdown(Duration::from_secs(60)).await);
            let case = format!("{protocol}, {compression}");
            let [request] = &collector.requests()[..] else {
                panic!("{case}: one message");
            };
            assert_eq!(request.headers["x-key"], "a", "{case}");
            let path = match protocol {
                "grpc" => "/opentelemetry.proto.collector.metrics.v1.MetricsService/Export",
                _ => "/v1/metrics",
            };
            assert_eq!(request.path, path);
            let message = request.metrics.clone().unwrap();
            let resource = message.resource_metrics[0].resource.clone().unwrap();
            let mut attributes = resource.attributes.iter();
            let service = attributes.find(|pair| pair.key == "service.name").unwrap();
            let name = Some(Value::StringValue("shop".to_owned()));
            assert_eq!(service.value.clone().unwrap().value, name, "{case}");
            let metrics = &message.resource_metrics[0].scope_metrics[0].metrics;
            let [durations, errors, active] = &metrics[..] else {
                panic!("{case}: {metrics:?}");
            };
            assert_eq!(
                (&*durations.name, &*durations.unit),
                ("http.server.request.duration", "s")
            );
            let Some(Data::Histogram(histogram)) = &durations.data else {
                panic!("{case}: {durations:?}");
            };
            let cumulative = AggregationTemporality::Cumulative as i32;
            assert_eq!(histogram.aggregation_temporality, cumulative);
            let point = &histogram.data_points[0];
            assert_eq!((point.count, point.sum), (3, Some(1.5)), "{case}");
            assert_eq!(
                (&point.bucket_counts[..], &point.explicit_bounds[..]),
                (&[2, 1][..], &[0.5][..])
            );
            assert_eq!(point.attributes[0].key, "http.route");
            assert!(point.start_time_unix_nano <= point.time_unix_nano);
            let Some(Data::Sum(sum)) = &errors.data else {
                panic!("{case}: {errors:?}");
            };
            assert!(sum.is_monotonic && sum.aggregation_temporality == cumulative);
            assert_eq!(errors.name, "proxy_errors");
            assert_eq!(
                sum.data_points[0].value,
                Some(number_data_point::Value::AsDouble(7.0))
            );
            let Some(Data::Gauge(gauge)) = &active.data else {
                panic!("{case}: {active:?}");
            };
            assert_eq!(
                gauge.data_points[0].value,
                Some(number_data_point::Value::AsDouble(0.0))
            );
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn values_are_sent_at_each_interval_and_a_collector_that_hangs_holds_up_nothing() {
    let collector = Collector::start(|number| match number {
        0 => Reply::Hang,
        _ => Reply::Accept,
    })
    .await;
    let more = [
        ("OTEL_METRIC_EXPORT_INTERVAL", "20"),
        ("OTEL_METRIC_EXPORT_TIMEOUT", "50"),
    ];
    let export = MetricsExport::start(&settings(&collector, &more), || TEXT.to_owned()).unwrap();
    let enough = async {
        while collector.requests().len() < 3 {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    let waited = tokio::time::timeout(testkit::time::GUARD, enough).await;
    waited.expect("it sends again after the limit of the first");
    let begun = Instant::now();
    drop(export);
    assert!(begun.elapsed() < testkit::time::GUARD);
}

#[test]
fn metrics_are_exported_on_request_alone() {
    let read = |all: &[(&str, &str)]| MetricsSettings::from_variables("s", "1", &variables(all));
    let general = ("OTEL_EXPORTER_OTLP_ENDPOINT", "http://c:4318");
    assert!(read(&[general]).unwrap().is_none(), "traces alone");
    let endpoint = |all: &[(&str, &str)]| read(all).unwrap().unwrap().endpoint().to_owned();
    let otlp = ("OTEL_METRICS_EXPORTER", "otlp");
    assert_eq!(endpoint(&[general, otlp]), "http://c:4318/v1/metrics");
    assert_eq!(endpoint(&[otlp]), "http://localhost:4318/v1/metrics");
    let own = ("OTEL_EXPORTER_OTLP_METRICS_ENDPOINT", "http://m:1/x");
    assert_eq!(endpoint(&[general, own]), "http://m:1/x");
    for off in [
        ("OTEL_METRICS_EXPORTER", "none"),
        ("OTEL_SDK_DISABLED", "true"),
    ] {
        assert!(read(&[general, own, off]).unwrap().is_none());
    }
    let error = read(&[("OTEL_METRICS_EXPORTER", "prometheus")]).unwrap_err();
    assert!(
        error
            .to_string()
            .contains("OTEL_METRICS_EXPORTER: `prometheus`"),
        "{error}"
    );
    let error = read(&[otlp, ("OTEL_METRIC_EXPORT_INTERVAL", "0")]).unwrap_err();
    assert!(
        error.to_string().contains("OTEL_METRIC_EXPORT_INTERVAL"),
        "{error}"
    );
}
