//! The request that a destination would receive, for explanations. The code that forwards requests writes its head.

use http::uri::PathAndQuery;
use http::{HeaderName, HeaderValue, Method, Request, StatusCode, Uri};
use proxy_model::compiled::{Destination, Route};

use super::body_kind::body_kind_of;
use super::plan::check_target;
use super::typed::{TypedRequest, framing};
use crate::error::{ForwardError, ForwardErrorKind};
use crate::head::{AddressText, HttpHead};
use crate::http1::{FieldClass, FieldValue};
use crate::transform::CompiledTransforms;

/// Returns the request that `destination` would receive from `route` over HTTP/1.1. The body is as long as the head
/// announces.
///
/// # Errors
///
/// The route's changes make no valid request.
pub(crate) fn sent_request(
    head: &HttpHead<'_>,
    route: &Route,
    plan: &CompiledTransforms,
    destination: &Destination,
) -> Result<Request<()>, ForwardError> {
    check_target(head)?;
    let is_empty = !head.classes().contains(FieldClass::TransferEncoding);
    let remote = head.connection().remote;
    let remote = remote.map(|remote| AddressText::new(remote.ip()));
    let request = TypedRequest {
        head,
        route,
        plan,
        framing: framing(head, body_kind_of(head, is_empty)?),
        remote: remote
            .as_ref()
            .and_then(|remote| FieldValue::new(remote.as_bytes())),
    };
    let mut text = Vec::new();
    let written = request.write(destination, &mut text);
    written.ok().and_then(|()| read(&text)).ok_or_else(|| {
        ForwardError::new(ForwardErrorKind::RequestCreation, StatusCode::BAD_GATEWAY)
    })
}

/// Reads a head that the proxy has written.
fn read(text: &[u8]) -> Option<Request<()>> {
    // The text was written just now, so a simple parser is enough.
    let mut lines = text.split(|byte| *byte == b'\n').map(<[u8]>::trim_ascii);
    let mut words = lines.next()?.split(|byte| *byte == b' ');
    let (method, target) = (words.next()?, words.next()?);
    let mut request = Request::new(());
    *request.method_mut() = Method::from_bytes(method).ok()?;
    *request.uri_mut() = Uri::from(PathAndQuery::try_from(target).ok()?);
    for line in lines.take_while(|line| !line.is_empty()) {
        let colon = line.iter().position(|byte| *byte == b':')?;
        let name = HeaderName::from_bytes(&line[..colon]).ok()?;
        let value = HeaderValue::from_bytes(line[colon + 1..].trim_ascii()).ok()?;
        request.headers_mut().append(name, value);
    }
    Some(request)
}
