//! The response to the client.

use http::header::{ALLOW, CONTENT_TYPE, HeaderValue};
use http::{Response, StatusCode};

use super::websocket;
use crate::error::ForwardError;
use crate::response::ProxyBody;

/// A response that the proxy makes itself: the status in words, and nothing about the inside.
pub(crate) fn own(status: StatusCode, allow: Option<&str>) -> Response<ProxyBody> {
    let text = match status.canonical_reason() {
        Some(reason) => format!("{} {reason}\n", status.as_u16()),
        None => format!("{}\n", status.as_u16()),
    };
    let mut response = Response::new(ProxyBody::text(text));
    *response.status_mut() = status;
    response.headers_mut().insert(
        CONTENT_TYPE,
        HeaderValue::from_static("text/plain; charset=utf-8"),
    );
    #[cfg(all(feature = "server", feature = "http2"))]
    crate::head::LocalReplyMark::mark(&mut response);
    if let Some(Ok(allow)) = allow.map(HeaderValue::from_str) {
        response.headers_mut().insert(ALLOW, allow);
    }
    response
}

/// Creates the local reply to a request that failed.
pub(crate) fn own_to(error: &ForwardError) -> Response<ProxyBody> {
    let mut response = own(error.status(), None);
    websocket::tell_version(error, response.headers_mut());
    response
}
