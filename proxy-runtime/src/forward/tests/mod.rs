mod framing;
mod retry;
mod target;

use std::sync::Arc;

use http::request::Parts;
use http::{Request, Version};
use proxy_model::Snapshot;

use super::sent_request;
use super::typed::TypedRequest;
use crate::connection::ConnectionInfo;
use crate::fixtures::snapshot;
use crate::head::HttpHead;
use crate::http1::Framing;
use crate::transform::CompiledTransforms;
#[cfg(feature = "http2")]
use crate::upstream::stream_request;

/// One route for everything with these transforms, to one destination at this address.
fn config(transforms: &str, address: &str) -> Arc<Snapshot> {
    snapshot(&format!(
        r#"{{
            "Routes": {{ "r": {{
                "ClusterId": "c",
                "Match": {{ "Path": "/{{**rest}}" }},
                "Transforms": [{transforms}]
            }} }},
            "Clusters": {{ "c": {{ "Destinations": {{ "d": {{ "Address": "{address}" }} }} }} }}
        }}"#
    ))
}

fn parts(request: http::request::Builder) -> Parts {
    request.body(()).unwrap().into_parts().0
}

/// Returns the head that the destination of HTTP/1.1 gets for a request with this body.
fn written(config: &Snapshot, request: &Parts, framing: Framing) -> Vec<u8> {
    let head = HttpHead::with_connection(request, ConnectionInfo::default());
    let route = &config.routes()[0];
    let request = TypedRequest {
        head: &head,
        route,
        plan: &CompiledTransforms::of(route, None),
        framing,
        remote: None,
    };
    let mut text = Vec::new();
    let destination = &config.clusters()[0].destinations()[0];
    request.write(destination, &mut text).unwrap();
    text
}

/// Returns the request that a destination of HTTP/1.1 gets.
fn forwarded(config: &Snapshot, request: &Parts) -> Request<()> {
    let head = HttpHead::with_connection(request, ConnectionInfo::default());
    let destination = &config.clusters()[0].destinations()[0];
    let route = &config.routes()[0];
    sent_request(
        &head,
        route,
        &CompiledTransforms::of(route, None),
        destination,
    )
    .unwrap()
}

/// Returns the request without a body that a destination of HTTP/2 gets. `None`: it cannot be said there.
#[cfg(feature = "http2")]
fn forwarded2(config: &Snapshot, request: &Parts) -> Option<Request<()>> {
    stream_request(&written(config, request, Framing::None), false)
}

/// A request as it comes from a client of HTTP/2.
fn http2(method: &str, path: &str) -> http::request::Builder {
    Request::builder()
        .method(method)
        .version(Version::HTTP_2)
        .uri(format!("http://client.example{path}"))
}
