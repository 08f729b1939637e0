//! Groups G and H of the cases: what becomes of headers.

mod forwarded;
mod request;
mod response;

use std::sync::Arc;

use bytes::Bytes;
use http::request::Parts;
use http::{HeaderMap, HeaderValue, Request};
use proxy_model::Snapshot;

use crate::connection::ConnectionInfo;
use crate::fixtures::snapshot;
use crate::forward::sent_request;
use crate::forward::typed::final_head;
use crate::head::HttpHead;
use crate::http1::{HeadLimits, HeadTable, RequestInfo, Status, parse_response};
use crate::transform::CompiledTransforms;

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
    let route = &config.routes()[0];
    sent_request(
        &head,
        route,
        &CompiledTransforms::of(route, None),
        destination,
    )
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

/// Returns the fields that a client gets for the response of a destination with these fields.
fn answered(config: &Snapshot, status: u16, fields: &[(&str, &str)]) -> HeaderMap {
    let mut text = format!("HTTP/1.1 {status} x\r\n");
    for (name, value) in fields {
        text += &format!("{name}: {value}\r\n");
    }
    let text = Bytes::from(text + "\r\n");
    let mut table = HeadTable::new();
    let asked = RequestInfo::default();
    let parsed = parse_response(&text, asked, &HeadLimits::default(), &mut table);
    let Ok(Status::Complete(response)) = parsed else {
        panic!("{parsed:?}");
    };
    let plan = CompiledTransforms::of(&config.routes()[0], None);
    let head = final_head(&response, &text, &table, &plan, None, 0);
    head.unwrap().1
}
