//! Readiness and status of a proxy after failed requests.

use discovery_core::merge::MergeSource;
use http_body_util::BodyExt;
use tower_service::Service;

use super::*;

const TWO: &str = r#"{
    "Routes": {
        "dead": { "ClusterId": "dead", "Match": { "Path": "/dead" } },
        "none": { "ClusterId": "none", "Match": { "Path": "/none" } }
    },
    "Clusters": {
        "dead": { "Destinations": { "d": { "Address": "http://127.0.0.1:PORT/" } } },
        "none": {}
    }
}"#;

pub(super) async fn get(proxy: &Proxy, path: &str) -> StatusCode {
    let body = http_body_util::Empty::<bytes::Bytes>::new();
    let request = Request::get(path)
        .header(HOST, "a.example")
        .body(body)
        .unwrap();
    let response = proxy.service().call(request).await.unwrap();
    let status = response.status();
    let _ = response.into_body().collect().await;
    status
}

pub(super) fn proxy_of(config: &str) -> (Proxy, Admin) {
    let (proxy, driver) = Proxy::builder()
        .snapshot(crate::fixtures::snapshot(config))
        .build()
        .unwrap();
    drop(driver);
    let admin = Admin::builder(proxy.clone()).build();
    (proxy, admin)
}

fn sentence(admin: &Admin) -> (String, String) {
    let overview = json(admin, "/api/v1/overview");
    let text = |field: &str| overview[field].as_str().unwrap().to_owned();
    (text("state"), text("sentence"))
}

#[tokio::test]
async fn all_is_not_well_while_every_request_fails() {
    let port = testkit::faults::RefusingPort::new();
    let config = TWO.replace("PORT", &port.addr().port().to_string());
    let (proxy, admin) = proxy_of(&config);
    assert_eq!(sentence(&admin).0, "ok");
    for _ in 0..3 {
        assert_eq!(get(&proxy, "/dead").await, 502);
    }
    let (state, said) = sentence(&admin);
    assert_eq!(state, "down");
    assert!(
        said.starts_with("Down: dead (3 of 3 requests failed: connection refused)"),
        "{said}"
    );
    let overview = json(&admin, "/api/v1/overview");
    let concern = &overview["concerns"][0];
    assert_eq!(concern["kind"], "cluster");
    assert_eq!(concern["id"], "dead");
    assert_eq!(concern["state"], "down");
    assert_eq!(concern["cause"], "connection_refused");
    assert_eq!(concern["side"], "destination");
    let problems = json(&admin, "/api/v1/problems");
    let problem = &problems["problems"][0];
    assert_eq!(problem["code"], "connection_refused");
    assert_eq!(problem["pointer"], "/Clusters/dead");
    assert_eq!(problem["severity"], "error");
    let cluster = json(&admin, "/api/v1/clusters/dead");
    assert_eq!(cluster["failing"]["failures"], 3);
    assert_eq!(cluster["failing"]["requests"], 3);
    assert_eq!(cluster["destinations"][0]["failing"]["failures"], 3);
    let listed = json(&admin, "/api/v1/clusters?state=down");
    assert_eq!(listed["clusters"][0]["id"], "dead");
    assert_eq!(proxy.overview().clusters_failing, 1);
}

#[test]
fn metrics_are_compressed_for_those_who_take_it() {
    use std::io::Read as _;

    let (_, admin) = proxy_of(&TWO.replace("PORT", "1"));
    let ask = |encoding: &str| {
        let request = Request::get("/metrics")
            .header(HOST, "localhost")
            .header("accept-encoding", encoding);
        admin.respond(&request.body(()).unwrap())
    };
    let plain = ask("identity, gzip;q=0");
    assert!(!plain.headers().contains_key("content-encoding"));
    let packed = ask("deflate, gzip;q=0.9");
    assert_eq!(packed.headers()["content-encoding"], "gzip");
    assert_eq!(packed.headers()["vary"], "Accept-Encoding");
    assert!(packed.body().len() < plain.body().len());
    let mut text = String::new();
    let mut decoder = flate2::read::GzDecoder::new(&packed.body()[..]);
    decoder.read_to_string(&mut text).unwrap();
    assert_eq!(text.as_bytes(), &plain.body()[..]);
}

#[test]
fn an_explained_request_can_have_a_client() {
    let (_, admin) = proxy_of(&TWO.replace("PORT", "1"));
    let explained = json(
        &admin,
        "/api/v1/explain?url=http://a.example/dead&remote=192.0.2.7",
    );
    let headers = explained["forwarded"]["headers"].to_string();
    assert!(
        headers.contains(r#"["X-Forwarded-For","192.0.2.7"]"#),
        "{headers}"
    );
}

#[tokio::test]
async fn a_cluster_without_destinations_is_down_once_it_is_asked() {
    let (proxy, admin) = proxy_of(&TWO.replace("PORT", "1"));
    assert_eq!(sentence(&admin).0, "ok");
    assert_eq!(get(&proxy, "/none").await, 503);
    let (state, said) = sentence(&admin);
    assert_eq!(state, "down");
    assert_eq!(said, "Down: none (1 of 1 requests failed: no destination).");
    // It has one now, of which nothing is known.
    let repaired = TWO.replace(
        r#""none": {}"#,
        r#""none": {"Destinations": {"d": {"Address": "http://127.0.0.1:1/"}}}"#,
    );
    proxy
        .publish(crate::fixtures::snapshot(&repaired.replace("PORT", "1")))
        .unwrap();
    assert_eq!(sentence(&admin).0, "ok");
}

#[tokio::test]
async fn failures_go_with_the_address_that_failed() {
    let port = testkit::faults::RefusingPort::new();
    let config = TWO.replace("PORT", &port.addr().port().to_string());
    let (proxy, admin) = proxy_of(&config);
    get(&proxy, "/dead").await;
    // A reload that changes something else keeps what is known.
    let other = config.replace(r#""none": {}"#, r#""other": {}"#);
    proxy.publish(crate::fixtures::snapshot(&other)).unwrap();
    assert_eq!(sentence(&admin).0, "down");
    proxy
        .publish(crate::fixtures::snapshot(&TWO.replace("PORT", "1")))
        .unwrap();
    assert_eq!(sentence(&admin).0, "ok");
}

#[tokio::test]
async fn one_of_two_destinations_that_fails_is_partly_down() {
    let port = testkit::faults::RefusingPort::new();
    let origin = testkit::faults::closes_after_answer();
    let two = format!(
        r#""Destinations": {{ "a": {{ "Address": "http://{}/" }}, "b": {{ "Address": "http://{}/" }} }}, "LoadBalancingPolicy": "FirstAlphabetical""#,
        port.addr(),
        origin.addr()
    );
    let config = TWO.replace(
        r#""Destinations": { "d": { "Address": "http://127.0.0.1:PORT/" } }"#,
        &two,
    );
    let (proxy, admin) = proxy_of(&config);
    assert_eq!(get(&proxy, "/dead").await, 200, "the other one is tried");
    let (state, said) = sentence(&admin);
    assert_eq!(state, "degraded");
    assert!(
        said.starts_with("Partly down: dead (1 of 2 failing: connection refused"),
        "{said}"
    );
}

#[tokio::test]
async fn routes_that_serve_nothing_are_named() {
    let (_, admin) = proxy_of(
        r#"{"Routes":{
            "sealed":{"ClusterId":"c","AuthorizationPolicy":"default","Match":{"Path":"/a"}},
            "lost":{"ClusterId":"missing","Match":{"Path":"/b"}}},
        "Clusters":{"c":{"Destinations":{"d":{"Address":"http://127.0.0.1:1/"}}}}}"#,
    );
    let (state, said) = sentence(&admin);
    assert_eq!(state, "degraded");
    assert_eq!(
        said,
        "Refusing every request: sealed (its AuthorizationPolicy cannot be enforced); Leading nowhere: lost."
    );
}

#[tokio::test]
async fn a_failure_within_a_layer_counts_once() {
    let port = testkit::faults::RefusingPort::new();
    let config = TWO
        .replace("PORT", &port.addr().port().to_string())
        .replace(
            r#""Path": "/dead" }"#,
            r#""Path": "/dead" }, "Layers": ["plain"]"#,
        );
    let builder = Proxy::builder().layer(
        "plain",
        tower_layer::layer_fn(|inner: crate::layer::RouteService| inner),
    );
    let config = crate::fixtures::config(&config);
    let (snapshot, _) = proxy_model::Snapshot::compile(config, &builder.compile_options()).unwrap();
    let (proxy, driver) = builder.snapshot(Arc::new(snapshot)).build().unwrap();
    drop(driver);
    let admin = Admin::builder(proxy.clone()).build();
    assert_eq!(get(&proxy, "/dead").await, 502);
    let cluster = json(&admin, "/api/v1/clusters/dead");
    assert_eq!(cluster["failing"]["failures"], 1, "{cluster}");
    assert_eq!(sentence(&admin).0, "down");
}

#[tokio::test]
async fn routes_that_answer_themselves_are_well() {
    let (proxy, admin) = proxy_of(
        r#"{"Routes":{
            "secure":{"Match":{"Path":"/{**rest}"},"Redirect":{"Scheme":"https"}},
            "closed":{"Match":{"Path":"/closed"},"Respond":{"Status":503}}}}"#,
    );
    assert_eq!(get(&proxy, "/closed").await, 503);
    let well = "All is well: 2 routes answer themselves.".to_owned();
    assert_eq!(sentence(&admin), ("ok".to_owned(), well));
    assert_eq!(
        json(&admin, "/api/v1/overview")["concerns"],
        serde_json::json!([])
    );
    let listed = json(&admin, "/api/v1/routes?sort=name");
    let answers: Vec<_> = listed["routes"].as_array().unwrap().iter().collect();
    let states: Vec<_> = answers.iter().map(|route| &route["state"]).collect();
    assert_eq!(states, ["healthy", "healthy"]);
    assert_eq!(answers[0]["answers"], "fixed response 503");
    assert_eq!(answers[1]["answers"], "redirect 307");
    // Alerts on 5xx leave out what the route is configured to answer with.
    let metrics = ask(&admin, "/metrics");
    let metrics = String::from_utf8_lossy(metrics.body()).into_owned();
    let line =
        r#"proxy_route_fixed_response{http_route="closed",http_response_status_code="503"} 1"#;
    assert!(metrics.lines().any(|found| found == line), "{metrics}");
    // Neither do charts count it as failed.
    crate::status::chart(proxy.shared()).await;
    let history = json(&admin, "/api/v1/history?route=closed");
    let sum = |key: &str| -> u64 {
        let points = history[key].as_array().unwrap().iter();
        points.map(|point| point.as_u64().unwrap()).sum()
    };
    assert_eq!((sum("requests"), sum("failures")), (1, 0));
}

/// A source that has never answered, or whose services cannot be used, is not what nobody has configured.
#[tokio::test]
async fn sources_without_an_answer_are_no_empty_configuration() {
    let merged = Merge::new()
        .source(MergeSource::new(StaticProvider::waiting("late")).with_required(false))
        .start();
    merged.ready().await;
    let (proxy, driver) = Proxy::builder()
        .snapshots(merged.snapshots())
        .build()
        .unwrap();
    drop(driver);
    let admin = Admin::builder(proxy).merged(Arc::new(merged)).build();
    let (state, said) = sentence(&admin);
    assert_eq!(
        (&*state, &*said),
        (
            "degraded",
            "1 source has not answered yet, nothing of it serves: late."
        )
    );
    let concern = json(&admin, "/api/v1/overview")["concerns"][0].clone();
    assert_eq!(concern["kind"], "source");
    assert_eq!(concern["state"], "starting");
}

/// Failures count for as long as the responses that they are compared with.
#[tokio::test(start_paused = true)]
async fn the_verdict_forgets_failures_after_half_a_minute() {
    let (proxy, admin) = proxy_of(&TWO.replace("PORT", "1"));
    assert_eq!(get(&proxy, "/none").await, 503);
    for (seconds, state) in [(29, "down"), (1, "ok")] {
        tokio::time::advance(std::time::Duration::from_secs(seconds)).await;
        assert_eq!(sentence(&admin).0, state, "after {seconds} more seconds");
    }
    assert_eq!(
        json(&admin, "/api/v1/problems")["problems"],
        serde_json::json!([])
    );
    // It is told again as soon as it happens again.
    assert_eq!(get(&proxy, "/none").await, 503);
    assert_eq!(sentence(&admin).0, "down");
}

/// A request of the past is explained by its number.
#[tokio::test]
async fn a_kept_request_is_explained_by_its_number() {
    use crate::server::{AccessLogSink as _, AccessRecord, RequestTail};
    let (proxy, _) = proxy_of(&TWO.replace("PORT", "1"));
    let tail = Arc::new(RequestTail::new(10));
    let admin = Admin::builder(proxy).requests(Arc::clone(&tail)).build();
    let record = AccessRecord {
        path: "/dead",
        query: None,
        tls: false,
        ..crate::server::access_log_record()
    };
    tail.log(&record);
    let listed = json(&admin, "/api/v1/requests");
    assert_eq!(
        (&listed["latest"], &listed["requests"][0]["id"]),
        (&1.into(), &1.into())
    );
    assert_eq!(listed["requests"][0]["path"], "/dead");
    assert_eq!(
        json(&admin, "/api/v1/requests?after=1")["requests"],
        serde_json::json!([])
    );
    let explained = json(&admin, "/api/v1/explain?request=1");
    assert_eq!(
        (&explained["outcome"], &explained["route"]),
        (&"matched".into(), &"dead".into())
    );
    let headers = explained["forwarded"]["headers"].to_string();
    assert!(
        headers.contains("192.0.2.7"),
        "the client of then: {headers}"
    );
    for (request, said) in [("2", "not kept"), ("x", "no number")] {
        let answer = ask(&admin, &format!("/api/v1/explain?request={request}"));
        assert_eq!(answer.status(), 400);
        assert!(
            String::from_utf8_lossy(answer.body()).contains(said),
            "{request}"
        );
    }
}
