mod framing;
mod retry;
mod target;

use std::sync::Arc;

use http::request::Parts;
use http::{Request, Version};
use proxy_model::Snapshot;

use super::OutgoingHead;
use super::request::BodyKind;
use crate::connection::ConnectionInfo;
use crate::fixtures::snapshot;
use crate::head::HttpHead;

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

fn outgoing(config: &Snapshot, request: &Parts) -> OutgoingHead {
    let head = HttpHead::with_connection(request, ConnectionInfo::default());
    let destination = &config.clusters()[0].destinations()[0];
    OutgoingHead::new(&head, &config.routes()[0], destination).unwrap()
}

/// What a destination of HTTP/1.1 gets for a request without a body.
fn forwarded(config: &Snapshot, request: &Parts) -> Request<()> {
    outgoing(config, request)
        .into_request((), BodyKind::Empty, false)
        .unwrap()
}

/// The same for HTTP/2.
fn forwarded2(config: &Snapshot, request: &Parts) -> Request<()> {
    outgoing(config, request)
        .into_request((), BodyKind::Empty, true)
        .unwrap()
}

/// A request as it comes from a client of HTTP/2.
fn http2(method: &str, path: &str) -> http::request::Builder {
    Request::builder()
        .method(method)
        .version(Version::HTTP_2)
        .uri(format!("http://client.example{path}"))
}
