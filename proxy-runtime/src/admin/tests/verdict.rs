//! Readiness and status of a proxy after failed requests.

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
        said.starts_with("Down: dead (the connection cannot be opened: "),
        "{said}"
    );
    assert!(said.contains("refused"), "{said}");
    let cluster = json(&admin, "/api/v1/clusters/dead");
    assert_eq!(cluster["failing"]["failures"], 3);
    assert_eq!(cluster["failing"]["requests"], 3);
    assert_eq!(cluster["destinations"][0]["failing"]["failures"], 3);
    let listed = json(&admin, "/api/v1/clusters?state=down");
    assert_eq!(listed["clusters"][0]["id"], "dead");
    assert_eq!(proxy.overview().clusters_failing, 1);
}

#[tokio::test]
async fn a_cluster_without_destinations_is_down_once_it_is_asked() {
    let (proxy, admin) = proxy_of(&TWO.replace("PORT", "1"));
    assert_eq!(sentence(&admin).0, "ok");
    assert_eq!(get(&proxy, "/none").await, 503);
    let (state, said) = sentence(&admin);
    assert_eq!(state, "down");
    assert_eq!(said, "Down: none (no destination is available).");
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
        said.starts_with("Partly down: dead (1 of 2 failing: the connection"),
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
