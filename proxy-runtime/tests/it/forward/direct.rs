//! Forwarding to destinations that no configuration names, and the choice of one without a request to it.

use std::net::SocketAddr;
use std::sync::Arc;

use http::{HeaderValue, Request, StatusCode};
use http_body_util::BodyExt;
use proxy_model::config::{ForwarderRequestConfig, HttpVersion, VersionPolicy};
use proxy_runtime::direct::{Forwarder, ForwarderOptions};
use proxy_runtime::filter::{Filter, FilterContext, Flow, Reply, RequestEdit, ResponseEdit};
use proxy_runtime::forward::ExchangeInfo;
use proxy_runtime::health::Health;
use proxy_runtime::{ConnectionInfo, ForwardErrorKind, Proxy};
use serde_json::json;
use testkit::body;
use testkit::faults;
use testkit::origin::{Echo, Origin};
use tower_service::Service;

use crate::forward::front::{config, config_with, snapshot};

/// Answers `/closed` itself, and marks the others.
struct Guard;

impl Filter for Guard {
    fn on_request(&self, head: &mut RequestEdit<'_>, _: &FilterContext<'_>) -> Flow {
        if head.path() == "/closed" {
            return Reply::new(StatusCode::FORBIDDEN).into();
        }
        head.set("x-guard", "passed").unwrap();
        Flow::Continue
    }

    fn on_response(&self, head: &mut ResponseEdit<'_>, _: &FilterContext<'_>) {
        head.set("x-guard", "seen").unwrap();
    }
}

fn options() -> ForwarderOptions {
    let mut options = ForwarderOptions::default();
    let prefix = [("PathPrefix".to_owned(), "/prefix".to_owned())];
    options.route.transforms = Some(vec![prefix.into_iter().collect()]);
    options.transform = Some(Arc::new(Guard));
    options
}

#[tokio::test]
async fn requests_go_where_the_caller_says() {
    let origins = [Origin::echo(), Origin::echo()];
    for version in [HttpVersion::Http11, HttpVersion::Http2] {
        let mut options = options();
        options.cluster.http_request = Some(ForwarderRequestConfig {
            version: Some(version),
            version_policy: Some(VersionPolicy::RequestVersionExact),
            ..ForwarderRequestConfig::default()
        });
        let forwarder = Forwarder::new(options).unwrap();
        for origin in &origins {
            let destination = format!("{}/base/", origin.url());
            let mut request = Request::post("http://shop.example/a?b=c");
            let client = SocketAddr::from(([10, 1, 2, 3], 4));
            request = request.extension(ConnectionInfo::new(client));
            let request = request.body(body::full("hello")).unwrap();
            let response = forwarder.send(request, &destination).await.unwrap();
            assert_eq!(response.status(), 200);
            assert_eq!(response.headers()["x-guard"], "seen");
            let text = response.into_body().collect().await.unwrap().to_bytes();
            let echo: Echo = serde_json::from_slice(&text).unwrap();
            assert_eq!(echo.path_and_query(), "/base/prefix/a?b=c");
            assert_eq!(echo.header("x-guard"), ["passed"]);
            assert_eq!(echo.header("x-forwarded-for"), ["10.1.2.3"]);
            assert_eq!(echo.header("x-forwarded-host"), ["shop.example"]);
            assert_eq!(echo.body_length, 5);
        }
    }
}

#[tokio::test]
async fn a_transform_may_reply_and_errors_are_responses() {
    let forwarder = Forwarder::new(options()).unwrap();
    let get = |path: &str| Request::get(path).body(body::empty()).unwrap();
    let closed = forwarder
        .send(get("http://h/closed"), "http://127.0.0.1:1/")
        .await
        .unwrap();
    assert_eq!(closed.status(), StatusCode::FORBIDDEN);
    let dead = faults::closes_before_answer();
    let failed = forwarder.send(get("http://h/"), &dead.url()).await.unwrap();
    assert_eq!(failed.status(), StatusCode::BAD_GATEWAY);
    let info = failed.extensions().get::<ExchangeInfo>().unwrap();
    assert_eq!(info.error.map(ForwardErrorKind::as_str), Some("Request"));
    let wrong = forwarder
        .send(get("http://h/"), "ftp://h/")
        .await
        .map(drop)
        .unwrap_err();
    assert!(wrong.to_string().contains("ftp"), "{wrong}");
    let mut options = ForwarderOptions::default();
    options.route.timeout = Some(std::time::Duration::ZERO.into());
    assert!(
        Forwarder::new(options).is_err(),
        "options are checked at once"
    );
}

#[tokio::test]
async fn the_service_of_a_destination_keeps_its_connections() {
    let origin = Origin::echo();
    let forwarder = Forwarder::new(ForwarderOptions::default()).unwrap();
    for _ in 0..3 {
        let mut service = forwarder.service(&origin.url()).unwrap();
        let request = Request::get("http://h/").body(body::empty()).unwrap();
        let response = service
            .call(request)
            .await
            .unwrap_or_else(|never| match never {});
        response.into_body().collect().await.unwrap();
    }
    assert_eq!(origin.traffic().counts().accepted, 1);
}

#[tokio::test]
async fn a_destination_is_picked_and_nothing_is_sent() {
    let origin = Origin::echo();
    let affinity = json!({
        "LoadBalancingPolicy": "LeastRequests",
        "SessionAffinity": { "Enabled": true, "AffinityKeyName": "k" },
    });
    let config = config_with(&[&origin.url(), "http://10.0.0.2/"], &affinity);
    let (proxy, _driver) = Proxy::builder()
        .snapshot(snapshot(&config))
        .build()
        .unwrap();
    let head = |cookie: Option<&str>| {
        let (mut parts, ()) = Request::get("http://h/a").body(()).unwrap().into_parts();
        if let Some(cookie) = cookie {
            parts
                .headers
                .insert("cookie", HeaderValue::from_str(cookie).unwrap());
        }
        parts
    };
    // Each counts as in flight while it is held, so that the next goes elsewhere.
    let first = proxy.pick(&head(None)).unwrap();
    let second = proxy.pick(&head(None)).unwrap();
    assert_eq!(first.route().id().as_str(), "all");
    assert_eq!(first.cluster().id().as_str(), "c");
    assert_eq!(first.destination().id().as_str(), "d0");
    assert_eq!(
        second.destination().address().to_string(),
        "http://10.0.0.2/"
    );
    drop((first, second));
    assert_eq!(proxy.clusters()[0].in_flight, 0);
    let kept = proxy.pick(&head(Some("k=no-such-key"))).unwrap();
    assert_eq!(
        kept.destination().id().as_str(),
        "d0",
        "the key is of no use"
    );
    assert_eq!(origin.traffic().counts().accepted, 0);
    for id in ["d0", "d1"] {
        proxy.set_health(&"c".into(), &id.into(), Health::Unhealthy);
    }
    assert!(proxy.pick(&head(None)).is_ok(), "HealthyOrPanic");
    let mut nowhere = self::config(&[]);
    proxy.publish(snapshot(&nowhere)).unwrap();
    assert_eq!(
        proxy.pick(&head(None)).map(drop),
        Err(StatusCode::SERVICE_UNAVAILABLE)
    );
    nowhere["Routes"]["all"]["Match"] = json!({ "Path": "/b" });
    proxy.publish(snapshot(&nowhere)).unwrap();
    assert_eq!(
        proxy.pick(&head(None)).map(drop),
        Err(StatusCode::NOT_FOUND)
    );
    nowhere["Routes"]["all"]["Match"] = json!({ "Path": "/a", "Methods": ["POST"] });
    proxy.publish(snapshot(&nowhere)).unwrap();
    assert_eq!(
        proxy.pick(&head(None)).map(drop),
        Err(StatusCode::METHOD_NOT_ALLOWED)
    );
}
