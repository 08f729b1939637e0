//! An API server of Kubernetes with a few services and one node, on this machine.

use std::convert::Infallible;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use bytes::Bytes;
use http::{Method, Request, Response};
use http_body_util::{BodyExt, Full, combinators::BoxBody};
use hyper::body::{Frame, Incoming};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use parking_lot::Mutex;
use serde_json::{Value, json};
use tokio::net::TcpListener;

use crate::support::leases::Leases;

/// The received patches and events: paths and bodies.
pub(crate) type Patches = Arc<Mutex<Vec<(String, Value)>>>;

/// Starts the server. Returns its address and the patches.
pub(crate) async fn start() -> (String, Patches) {
    start_failing(0, 503).await
}

/// Starts a server whose first `times` responses are errors.
pub(crate) async fn start_failing(times: usize, status: u16) -> (String, Patches) {
    start_with(times, status, Leases::default()).await
}

/// Starts the server with leases.
pub(crate) async fn start_with(times: usize, status: u16, leases: Leases) -> (String, Patches) {
    start_serving(times, status, leases, json!([web()])).await
}

/// The service `shop/web`.
pub(crate) fn web() -> Value {
    json!({
        "metadata": { "name": "web", "namespace": "shop", "uid": "257b9655-5137-4ad2-b091-ef3f07043ad3" },
        "spec": { "type": "LoadBalancer", "ports": [{ "port": 80, "nodePort": 30080 }] },
    })
}

/// Starts the server with these services.
pub(crate) async fn start_serving(
    times: usize,
    status: u16,
    leases: Leases,
    services: Value,
) -> (String, Patches) {
    let failures = Arc::new(AtomicUsize::new(times));
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = format!("http://{}", listener.local_addr().unwrap());
    let patches = Patches::default();
    let kept = Arc::clone(&patches);
    tokio::spawn(async move {
        loop {
            let (stream, _) = listener.accept().await.unwrap();
            let (patches, failures) = (Arc::clone(&patches), Arc::clone(&failures));
            let (leases, services) = (leases.clone(), services.clone());
            let service = service_fn(move |request| {
                let fewer = |left: usize| left.checked_sub(1);
                let fails = failures.fetch_update(Ordering::Relaxed, Ordering::Relaxed, fewer);
                let (patches, leases) = (Arc::clone(&patches), leases.clone());
                let services = services.clone();
                async move {
                    match fails {
                        Ok(_) => Ok(rejection(status)),
                        Err(_) => answer(request, patches, leases, services).await,
                    }
                }
            });
            let connection = http1::Builder::new().serve_connection(TokioIo::new(stream), service);
            tokio::spawn(connection);
        }
    });
    (address, kept)
}

/// A body that never ends and sends nothing: a quiet watch.
struct Quiet;

impl hyper::body::Body for Quiet {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        self: std::pin::Pin<&mut Self>,
        _: &mut std::task::Context<'_>,
    ) -> std::task::Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        std::task::Poll::Pending
    }
}

fn rejection(status: u16) -> Response<BoxBody<Bytes, Infallible>> {
    let text = json!({ "kind": "Status", "code": status, "message": "not now" });
    let body = Full::new(Bytes::from(text.to_string())).boxed();
    let mut response = Response::new(body);
    *response.status_mut() = status.try_into().unwrap();
    response
}

async fn answer(
    request: Request<Incoming>,
    patches: Patches,
    leases: Leases,
    services: Value,
) -> Result<Response<BoxBody<Bytes, Infallible>>, Infallible> {
    let (head, body) = request.into_parts();
    let is_watch = head
        .uri
        .query()
        .is_some_and(|query| query.contains("watch=1"));
    if is_watch {
        return Ok(Response::new(Quiet.boxed()));
    }
    if head.uri.path().starts_with("/apis/coordination.k8s.io/") {
        let bytes = body.collect().await.unwrap().to_bytes();
        let (status, document) = leases.answer(head.method.as_str(), head.uri.path(), &bytes);
        let body = Full::new(Bytes::from(document.to_string())).boxed();
        return Ok(Response::builder().status(status).body(body).unwrap());
    }
    let document = match (head.method, head.uri.path()) {
        (Method::GET, "/api/v1/services") => {
            json!({ "kind": "ServiceList", "metadata": { "resourceVersion": "1" }, "items": services })
        }
        (Method::GET, "/api/v1/nodes") => {
            json!({ "kind": "NodeList", "metadata": { "resourceVersion": "1" }, "items": [{
            "metadata": { "name": "n1" },
            "status": {
                "addresses": [{ "type": "InternalIP", "address": "10.20.0.9" }],
                "conditions": [{ "type": "Ready", "status": "True" }],
            },
        }] })
        }
        (Method::PATCH | Method::POST, path) => {
            let bytes = body.collect().await.unwrap().to_bytes();
            let patch = serde_json::from_slice(&bytes).unwrap();
            patches.lock().push((path.to_owned(), patch));
            json!({})
        }
        (method, path) => panic!("{method} {path}"),
    };
    Ok(Response::new(
        Full::new(Bytes::from(document.to_string())).boxed(),
    ))
}
