use std::time::Duration;

use http::{Method, StatusCode, Version};
use proxy_model::compiled::{ClusterIndex, RouteIndex};

use crate::fixtures::snapshot;
use crate::prometheus::*;
use crate::{ForwardErrorKind, Proxy};

const CONFIG: &str = r#"{"Routes":{"r\"1":{"ClusterId":"c","Match":{"Path":"/"}}},
    "Clusters":{"c":{"HealthCheck":{"Active":{"Enabled":true}},"Destinations":{
        "a":{"Address":"http://h1/"},"b":{"Address":"http://h2/"}}}}}"#;

fn text(proxy: &Proxy) -> String {
    proxy.collector().to_text()
}

#[test]
fn what_was_counted_is_exposed() {
    let (proxy, _driver) = Proxy::builder().snapshot(snapshot(CONFIG)).build().unwrap();
    let _in_flight = {
        let generation = proxy.shared().load();
        let labels = Labels::new(&Method::GET, Version::HTTP_11, StatusCode::OK);
        let route = generation.route(RouteIndex(0));
        route.metrics().served(labels, Duration::from_millis(3));
        let cluster = generation.cluster(ClusterIndex(0));
        cluster
            .live()
            .metrics()
            .errors
            .increment(ForwardErrorKind::RequestTimedOut);
        let a = &cluster.destinations()[0];
        a.health()
            .update(|record| record.health = Health::Unhealthy);
        cluster.live().health_changed();
        a.metrics().requested();
        a.enter().sent(12);
        a.metrics()
            .responded(StatusCode::OK, Duration::from_millis(3));
        a.enter()
    };
    let text = text(&proxy);
    for line in [
        r#"http_server_request_duration_seconds_bucket{le="0.0025",http_route="r\"1",http_request_method="GET",network_protocol_version="1.1",http_response_status_code="200"} 0"#,
        r#"http_server_request_duration_seconds_bucket{le="0.005",http_route="r\"1",http_request_method="GET",network_protocol_version="1.1",http_response_status_code="200"} 1"#,
        r#"http_server_request_duration_seconds_count{http_route="r\"1",http_request_method="GET",network_protocol_version="1.1",http_response_status_code="200"} 1"#,
        "http_server_active_requests 0",
        "proxy_config_generation 1",
        r#"proxy_config_reload_total{result="success"} 0"#,
        r#"proxy_errors_total{cluster="c",error_type="RequestTimedOut"} 1"#,
        r#"proxy_cluster_available_destinations{cluster="c"} 1"#,
        r#"proxy_destination_health{cluster="c",destination="a"} -1"#,
        r#"proxy_destination_health{cluster="c",destination="b"} 0"#,
        r#"proxy_destination_inflight{cluster="c",destination="a"} 1"#,
        r#"proxy_destination_requests_total{cluster="c",destination="a"} 1"#,
        r#"proxy_destination_sent_bytes_total{cluster="c",destination="a"} 12"#,
        r#"proxy_pool_connections{cluster="c",destination="a"} 0"#,
        r#"proxy_destination_duration_seconds_bucket{le="0.0025",cluster="c",destination="a"} 0"#,
        r#"proxy_destination_duration_seconds_bucket{le="0.005",cluster="c",destination="a"} 1"#,
        r#"proxy_destination_duration_seconds_count{cluster="c",destination="a"} 1"#,
        "# TYPE http_client_request_duration_seconds histogram",
        "# EOF",
    ] {
        assert!(
            text.lines().any(|found| found == line),
            "no `{line}` in:\n{text}"
        );
    }
    // What was not used has one series.
    let of_other = text
        .lines()
        .filter(|line| line.contains(r#"destination="b""#));
    assert_eq!(of_other.count(), 1, "{text}");
}

#[test]
fn what_is_removed_takes_its_series_along() {
    let (proxy, _driver) = Proxy::builder().snapshot(snapshot(CONFIG)).build().unwrap();
    assert!(text(&proxy).contains(r#"destination="b""#));
    let without = CONFIG.replace(r#","b":{"Address":"http://h2/"}"#, "");
    proxy.publish(snapshot(&without)).unwrap();
    let text = text(&proxy);
    assert!(!text.contains(r#"destination="b""#) && text.contains(r#"destination="a""#));
    assert!(text.contains(r#"proxy_config_reload_total{result="success"} 1"#));
}
