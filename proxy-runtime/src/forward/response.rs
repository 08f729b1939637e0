//! Responses that no destination made.

use http::header::{ALLOW, HeaderMap, HeaderValue};
use http::{Response, StatusCode};

use super::websocket;
use crate::error::ForwardError;
use crate::head::{ErrorBodies, ResponseNotes};
use crate::response::ProxyBody;
use crate::transform::CompiledTransforms;

/// A local reply: the program's page for the status, or the status in words, in the form that the client prefers and
/// without anything about the inside of the proxy.
pub(crate) fn own(
    status: StatusCode,
    allow: Option<&str>,
    errors: &ErrorBodies,
) -> Response<ProxyBody> {
    let mut fields = HeaderMap::new();
    let text = errors.write(status, None, &mut fields);
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
pub(crate) fn own_to(error: &ForwardError, errors: &ErrorBodies) -> Response<ProxyBody> {
    let mut response = own(error.status(), None, errors);
    websocket::tell_version(error, response.headers_mut());
    response
}

/// Returns a response that no destination made after `notes`, which were decided with the request, and the route's
/// changes.
pub(crate) fn shown_response(
    response: Response<ProxyBody>,
    notes: ResponseNotes,
    plan: &CompiledTransforms,
) -> Response<ProxyBody> {
    let (mut head, body) = response.into_parts();
    notes.apply_to(&mut head.headers);
    plan.change_response(head.status, &mut head.headers);
    Response::from_parts(head, body)
}
