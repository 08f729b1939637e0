//! The response to the client.

use http::header::{ALLOW, HeaderMap, HeaderValue};
use http::{Response, StatusCode};

use super::websocket;
use crate::error::ForwardError;
use crate::head::ErrorForm;
use crate::response::ProxyBody;

/// A local reply, in the form that the client prefers: the status in words, without anything about the inside of the
/// proxy.
pub(crate) fn own(status: StatusCode, allow: Option<&str>, form: ErrorForm) -> Response<ProxyBody> {
    let mut fields = HeaderMap::new();
    let text = form.write(status, None, &mut fields);
    let mut response = Response::new(ProxyBody::text(text));
    *response.status_mut() = status;
    *response.headers_mut() = fields;
    #[cfg(all(feature = "server", feature = "http2"))]
    crate::head::LocalReplyMark::mark(&mut response);
    if let Some(Ok(allow)) = allow.map(HeaderValue::from_str) {
        response.headers_mut().insert(ALLOW, allow);
    }
    response
}

/// Creates the local reply to a request that failed.
pub(crate) fn own_to(error: &ForwardError, form: ErrorForm) -> Response<ProxyBody> {
    let mut response = own(error.status(), None, form);
    websocket::tell_version(error, response.headers_mut());
    response
}
