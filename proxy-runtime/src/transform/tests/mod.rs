//! Groups G and H of the cases: what becomes of headers.

mod forwarded;
mod request;
mod response;

use std::sync::Arc;

use http::request::Parts;
use http::{HeaderMap, HeaderValue, Request, StatusCode};
use proxy_model::Snapshot;
use proxy_model::transform::Transforms;

use crate::connection::ConnectionInfo;
use crate::fixtures::snapshot;
use crate::forward::{BodyKind, OutgoingHead};
use crate::head::{HeaderMutations, HttpHead};

/// One route with these transforms, to one destination with these settings.
fn config(path: &str, transforms: &str, destination: &str) -> Arc<Snapshot> {
    snapshot(&format!(
        r#"{{
            "Routes": {{ "r": {{
                "ClusterId": "c", "Match": {{ "Path": "{path}" }}, "Transforms": [{transforms}]
            }} }},
            "Clusters": {{ "c": {{ "Destinations": {{ "d": {{
                "Address": "http://destination:8080/" {destination}
            }} }} }} }}
        }}"#
    ))
}

/// Returns the request as the destination receives it.
fn forwarded(config: &Snapshot, request: &Parts, connection: ConnectionInfo) -> Request<()> {
    let head = HttpHead::with_connection(request, connection);
    let destination = &config.clusters()[0].destinations()[0];
    OutgoingHead::new(&head, &config.routes()[0], destination)
        .unwrap()
        .into_request((), BodyKind::Empty, false)
        .unwrap()
}

fn request(uri: &str, headers: &[(&str, &str)]) -> Parts {
    let mut request = Request::get(uri);
    for (name, value) in headers {
        request = request.header(*name, HeaderValue::from_bytes(value.as_bytes()).unwrap());
    }
    request.body(()).unwrap().into_parts().0
}

fn values(headers: &HeaderMap, name: &str) -> Vec<String> {
    headers
        .get_all(name)
        .iter()
        .map(|value| String::from_utf8_lossy(value.as_bytes()).into_owned())
        .collect()
}

/// Makes of a destination's response headers those that the client gets. What filters changed comes before what the
/// route says.
pub(crate) fn apply_to_response(
    transforms: &Transforms,
    status: StatusCode,
    edits: &HeaderMutations,
    headers: &mut HeaderMap,
) {
    super::response::copy(transforms.response_copy(), headers);
    edits.apply_to(headers);
    super::response::change(transforms.response(), status, headers);
}
