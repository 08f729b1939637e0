//! The body of a request, as its head announces it.

use http::header::{CONTENT_LENGTH, TRANSFER_ENCODING};
use http::{HeaderMap, StatusCode};

use crate::error::{ForwardError, ForwardErrorKind};
use crate::head::HttpHead;
use crate::head::headers::parse_length;
use crate::http1::{ClassSet, FieldClass};

/// The kind of body that a head announces.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum BodyKind {
    /// No body.
    Empty,
    /// A body of this many bytes.
    Length(u64),
    /// A body that is as long as it turns out to be.
    Stream,
}

/// Returns the kind of body that fields announce. `is_empty`: the body itself is known to be empty.
///
/// # Errors
///
/// `Content-Length` is not a number, or there are several that differ (RFC 9112 section 6.3). Servers reject such
/// requests; this is for those that do not.
pub(crate) fn body_kind(headers: &HeaderMap, is_empty: bool) -> Result<BodyKind, ForwardError> {
    // It overrides `Content-Length` (RFC 9112 section 6.3).
    if headers.contains_key(TRANSFER_ENCODING) {
        return Ok(if is_empty {
            BodyKind::Empty
        } else {
            BodyKind::Stream
        });
    }
    let mut length = None;
    for value in headers.get_all(CONTENT_LENGTH) {
        let parsed = parse_length(value);
        if parsed.is_none() || length.is_some_and(|length| Some(length) != parsed) {
            return Err(ForwardError::new(
                ForwardErrorKind::RequestBodyClient,
                StatusCode::BAD_REQUEST,
            ));
        }
        length = parsed;
    }
    Ok(match length {
        Some(0) => BodyKind::Empty,
        Some(length) => BodyKind::Length(length),
        None if is_empty => BodyKind::Empty,
        None => BodyKind::Stream,
    })
}

/// Returns the kind of body of a head. The classes of its fields are usually enough to decide.
pub(crate) fn body_kind_of(head: &HttpHead<'_>, is_empty: bool) -> Result<BodyKind, ForwardError> {
    const SAID: ClassSet = ClassSet::EMPTY
        .with(FieldClass::ContentLength)
        .with(FieldClass::TransferEncoding);
    match head.classes().intersection(SAID).is_empty() {
        true if is_empty => Ok(BodyKind::Empty),
        true => Ok(BodyKind::Stream),
        false => body_kind(head.headers(), is_empty),
    }
}
