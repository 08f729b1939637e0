//! The response to the client.

#[cfg(feature = "http2")]
use http::Method;
use http::header::{ALLOW, CONTENT_LENGTH, CONTENT_TYPE, HeaderValue, TRANSFER_ENCODING};
use http::{HeaderMap, Response, StatusCode, Version, response};
use hyper::ext::ReasonPhrase;
use proxy_model::transform::Transforms;

use super::websocket;
use crate::error::ForwardError;
use crate::head::HeaderMutations;
use crate::head::headers;
#[cfg(feature = "http2")]
use crate::head::headers::parse_length;
use crate::response::ProxyBody;
use crate::transform::apply_to_response;

/// How long the body of a destination's response must be, if its head says so.
#[cfg(feature = "http2")]
pub(crate) fn promised_length(method: &Method, head: &response::Parts) -> Option<u64> {
    let has_no_body = *method == Method::HEAD
        || head.status.is_informational()
        || matches!(
            head.status,
            StatusCode::NO_CONTENT | StatusCode::NOT_MODIFIED
        );
    if has_no_body || head.headers.contains_key(TRANSFER_ENCODING) {
        return None;
    }
    head.headers.get(CONTENT_LENGTH).and_then(parse_length)
}

/// Whether it is known where the body of a destination's response ends, and what of it is content.
///
/// A coding other than `chunked` would be passed on as content (RFC 9112 section 6.1 wants 501 of servers and leaves
/// clients to give up).
pub(crate) fn is_understood(headers: &HeaderMap) -> bool {
    let mut codings = headers.get_all(TRANSFER_ENCODING).iter();
    match (codings.next(), codings.next()) {
        (None, _) => true,
        (Some(only), None) => only
            .as_bytes()
            .trim_ascii()
            .eq_ignore_ascii_case(b"chunked"),
        (Some(_), Some(_)) => false,
    }
}

/// Makes of the head of a destination's response the one that the client gets.
/// What filters changed comes before what the route says.
pub(crate) fn pass_on(
    head: &mut response::Parts,
    edits: &HeaderMutations,
    transforms: &Transforms,
) {
    if head.headers.contains_key(TRANSFER_ENCODING) {
        head.headers.remove(CONTENT_LENGTH);
    }
    headers::drop_pointless_length(head.status, &mut head.headers);
    apply_to_response(transforms, head.status, edits, &mut head.headers);
    // The version is that of the destination's connection, and says nothing to the client.
    head.version = Version::default();
    // What else the connection has left there is not for the client's connection.
    let reason = head.extensions.remove::<ReasonPhrase>();
    head.extensions.clear();
    if let Some(reason) = reason {
        head.extensions.insert(reason);
    }
}

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
    crate::exchange::grpc::LocalReplyMark::mark(&mut response);
    if let Some(Ok(allow)) = allow.map(HeaderValue::from_str) {
        response.headers_mut().insert(ALLOW, allow);
    }
    response
}

/// The same, for a request that failed.
pub(crate) fn own_to(error: &ForwardError) -> Response<ProxyBody> {
    let mut response = own(error.status(), None);
    websocket::tell_version(error, response.headers_mut());
    response
}
