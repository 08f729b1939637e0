//! The head of a response in `http` types.

use bytes::Bytes;
use http::{HeaderMap, HeaderValue};

use crate::head::headers::received_name;
use crate::http1::{Field, HeadLimits, Rejection, Span};

/// Maximum size of a response head in bytes: 64 KiB, as .NET's `MaxResponseHeadersLength` in YARP.
pub(in crate::upstream) const MAX_HEAD: usize = 64 * 1024;

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

/// Converts the fields of a head or a trailer section to a map.
pub(crate) fn to_map(fields: &[Field], bytes: &Bytes) -> Result<HeaderMap, Rejection> {
    let mut map = HeaderMap::with_capacity(fields.len());
    for field in fields {
        let name = received_name(field.class(), field.name().get(bytes));
        let value = HeaderValue::from_maybe_shared(part(bytes, field.value()));
        map.append(
            name.ok_or(Rejection::FieldName)?,
            value.map_err(|_| Rejection::FieldValue)?,
        );
    }
    Ok(map)
}

fn part(bytes: &Bytes, span: Span) -> Bytes {
    bytes.slice(span.start() as usize..span.end() as usize)
}
