//! Bodies, names and timeouts of layers, without a network.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use bytes::Bytes;
use http::{Request, StatusCode};
use http_body::{Body, Frame};
use http_body_util::{BodyExt, Empty, Full, StreamBody};
use proxy_model::Snapshot;
use tokio::time::Instant;
use tower_layer::layer_fn;
use tower_service::Service;

use super::*;
use crate::build::ProxyBuilder;
use crate::filter::{Filter, FilterContext, Flow, RequestEdit};
use crate::fixtures::config;
use crate::response::ExchangeInfo;
use crate::{ForwardError, ForwardErrorKind, Proxy};

/// A route without a cluster, with these settings, for what `builder` knows.
fn compiled(builder: &ProxyBuilder, route: &str) -> Arc<Snapshot> {
    let json = format!(r#"{{ "Routes": {{ "r": {{ "Match": {{ "Path": "/" }}, {route} }} }} }}"#);
    let compiled = Snapshot::compile(config(&json), &builder.compile_options());
    Arc::new(compiled.unwrap_or_else(|problems| panic!("{problems}")).0)
}

async fn all(body: ProxyRequestBody) -> Result<Bytes, ForwardErrorKind> {
    let collected = body.collect().await.map_err(|error| {
        let error = error
            .downcast::<ForwardError>()
            .expect("it says whose fault it is");
        error.kind()
    })?;
    Ok(collected.to_bytes())
}

#[tokio::test]
async fn a_body_in_memory_can_be_had_twice() {
    let body = ProxyRequestBody::from(Bytes::from_static(b"abc"));
    let twin = body.try_clone().unwrap();
    assert_eq!(body.size_hint().exact(), Some(3));
    assert_eq!(all(body).await.unwrap(), "abc");
    assert_eq!(all(twin).await.unwrap(), "abc");
    let empty = ProxyRequestBody::new(Empty::<Bytes>::new());
    assert!(empty.is_end_stream() && empty.try_clone().is_some());
    let streamed = ProxyRequestBody::new(Full::new(Bytes::from_static(b"abc")));
    assert!(streamed.try_clone().is_none());
    let same = ProxyRequestBody::new(ProxyRequestBody::from(Bytes::from_static(b"abc")));
    assert!(same.try_clone().is_some(), "it is not boxed once more");
}

#[tokio::test]
async fn the_clients_body_is_bounded() {
    let content = || Full::new(Bytes::from_static(b"12345"));
    let body = ProxyRequestBody::of_client(content(), Some(5));
    assert_eq!(all(body).await.unwrap(), "12345");
    let body = ProxyRequestBody::of_client(content(), Some(4));
    let error = body.collect().await.unwrap_err();
    let error = error.downcast::<ForwardError>().unwrap();
    assert_eq!(error.kind(), ForwardErrorKind::RequestBodyClient);
    assert_eq!(error.status(), StatusCode::PAYLOAD_TOO_LARGE);

    let gone: Result<Frame<Bytes>, _> = Err("gone");
    let broken = StreamBody::new(futures_util::stream::iter([gone]));
    let body = ProxyRequestBody::of_client(broken, None);
    assert_eq!(all(body).await, Err(ForwardErrorKind::RequestBodyClient));
}

/// The timeout of the route limits a layer that never responds.
#[tokio::test(start_paused = true)]
async fn the_routes_timeout_bounds_its_layers() {
    let builder = Proxy::builder().layer(
        "stuck",
        layer_fn(|_: RouteService| {
            RouteService::from_fn(|_| RouteFuture::unfailing(std::future::pending))
        }),
    );
    let snapshot = compiled(&builder, r#""Layers": ["stuck"], "Timeout": "30s""#);
    let (proxy, _driver) = builder.snapshot(snapshot).build().unwrap();
    let started = Instant::now();
    let request = Request::get("/").body(Empty::<Bytes>::new()).unwrap();
    let response = proxy.service().call(request).await.unwrap();
    assert_eq!(response.status(), StatusCode::GATEWAY_TIMEOUT);
    assert_eq!(started.elapsed(), Duration::from_secs(30));
    let info = response.extensions().get::<ExchangeInfo>().unwrap();
    assert_eq!(info.error, Some(ForwardErrorKind::RequestTimedOut));
    assert_eq!(info.route.as_ref().unwrap().as_str(), "r");
}

/// Services are created when the list of a route changes, and only then.
#[tokio::test]
async fn a_layers_state_outlives_configurations() {
    let made = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&made);
    let builder = Proxy::builder()
        .layer(
            "Counted",
            layer_fn(move |rest: RouteService| {
                counted.fetch_add(1, Ordering::Relaxed);
                rest
            }),
        )
        .layer("plain", layer_fn(|rest: RouteService| rest));
    let versions = [
        (r#""Layers": ["counted"]"#, 1),
        (r#""Layers": ["COUNTED"], "Order": 7"#, 1),
        (r#""Layers": ["counted", "plain"]"#, 2),
        (r#""Order": 7"#, 2),
        (r#""Layers": ["counted"]"#, 3),
    ]
    .map(|(route, count)| (compiled(&builder, route), count));
    let (proxy, _driver) = builder.build().unwrap();
    let mut service = proxy.service();
    for (snapshot, count) in versions {
        proxy.publish(snapshot).unwrap();
        for _ in 0..3 {
            let request = Request::get("/").body(Empty::<Bytes>::new()).unwrap();
            let response = service.call(request).await.unwrap();
            assert_eq!(response.status(), StatusCode::SERVICE_UNAVAILABLE);
        }
        assert_eq!(made.load(Ordering::Relaxed), count);
    }
}

struct Silent;

impl Filter for Silent {
    fn on_request(&self, _: &mut RequestEdit<'_>, _: &FilterContext<'_>) -> Flow {
        Flow::Continue
    }
}

/// A configuration that names layers of another program.
#[test]
fn names_that_this_proxy_does_not_know_are_rejected() {
    let other = Proxy::builder()
        .filter("Audit", Silent)
        .layer("Trace", layer_fn(|rest: RouteService| rest));
    let snapshot = compiled(&other, r#""Filters": ["audit"], "Layers": ["trace"]"#);
    let problems = Proxy::builder().snapshot(Arc::clone(&snapshot)).build();
    let problems = problems.err().unwrap();
    let found: Vec<_> = problems
        .iter()
        .map(|p| (&*p.code, &*p.pointer, p.suggestion.as_deref()))
        .collect();
    assert_eq!(
        found,
        [
            (
                "unknown_filter",
                "/Routes/r/Filters/0",
                Some("register it with `ProxyBuilder::filter`")
            ),
            (
                "unknown_layer",
                "/Routes/r/Layers/0",
                Some("register it with `ProxyBuilder::layer`")
            ),
        ]
    );

    let (proxy, _driver) = Proxy::builder().build().unwrap();
    proxy.publish(Arc::clone(&snapshot)).unwrap_err();
    assert!(
        proxy.snapshot().routes().is_empty(),
        "the current one stays"
    );
    let (proxy, _driver) = other.build().unwrap();
    proxy.publish(snapshot).unwrap();
}
