//! The head of a response in `http` types.

use bytes::Bytes;
use http::{HeaderMap, HeaderName, HeaderValue, Response, StatusCode, Version};
use hyper::ext::ReasonPhrase;

use super::{Http1Error, MAX_HEAD};
use crate::http1::{self, Field, HeadLimits, RawResponse, Rejection, Span};

/// Maximum number of fields in a response head. Far above real ones, since [`MAX_HEAD`] bounds them; responses that
/// set many cookies would exceed a lower limit.
const MAX_FIELDS: usize = 1000;

/// Maximum number of informational responses (1xx) before the final one. Servers send one or two; without a limit a
/// request might never end.
pub(crate) const MOST_INTERIM: u32 = 16;

/// Returns the limits of a response head and a trailer section.
#[inline]
pub(crate) fn limits() -> HeadLimits {
    HeadLimits::default()
        .with_bytes(MAX_HEAD)
        .with_fields(MAX_FIELDS)
}

/// Converts a parsed head to a response. `bytes` are those of the head, and the values of its fields share them.
pub(super) fn to_response(
    head: &RawResponse,
    fields: &[Field],
    bytes: &Bytes,
) -> Result<Response<()>, Http1Error> {
    let mut response = Response::new(());
    let status = StatusCode::from_u16(head.status()).map_err(|_| Rejection::StatusCode)?;
    *response.status_mut() = status;
    *response.version_mut() = match head.version() {
        http1::Version::Http10 => Version::HTTP_10,
        http1::Version::Http11 => Version::HTTP_11,
    };
    // The usual phrase needs no storage: writers add it.
    let reason = head.reason().get(bytes);
    if status.canonical_reason().map(str::as_bytes) != Some(reason) {
        let reason = ReasonPhrase::try_from(reason).map_err(|_| Rejection::Reason)?;
        response.extensions_mut().insert(reason);
    }
    *response.headers_mut() = to_map(fields, bytes)?;
    Ok(response)
}

/// Converts the fields of a head or a trailer section to a map.
pub(in crate::upstream) fn to_map(fields: &[Field], bytes: &Bytes) -> Result<HeaderMap, Rejection> {
    let mut map = HeaderMap::with_capacity(fields.len());
    for field in fields {
        let name = HeaderName::from_bytes(field.name().get(bytes));
        let value = HeaderValue::from_maybe_shared(part(bytes, field.value()));
        map.append(
            name.map_err(|_| Rejection::FieldName)?,
            value.map_err(|_| Rejection::FieldValue)?,
        );
    }
    Ok(map)
}

fn part(bytes: &Bytes, span: Span) -> Bytes {
    bytes.slice(span.start() as usize..span.end() as usize)
}
