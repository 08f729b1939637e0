//! Writing of forwarded heads: runs of unchanged lines, and changes.
//!
//! A head is written once, directly into the output buffer. Unchanged lines are copied in runs, as received. Fields
//! about the connection are always left out, and written again from the caller's parameters.

mod fields;
mod operation;
mod request;
mod response;
mod stream;
#[cfg(test)]
mod tests;

pub use self::fields::{Copied, write_trailers};
#[cfg(feature = "server")]
pub(crate) use self::operation::Changes;
pub use self::operation::{FieldName, FieldOperation, FieldValue};
#[cfg(feature = "server")]
pub(crate) use self::request::write_changed_request;
pub use self::request::{OutgoingMethod, OutgoingTarget, RequestRewrite, write_request};
pub(crate) use self::response::kept_fields;
pub use self::response::{OutgoingConnection, ResponseRewrite, write_response};

pub(crate) use self::stream::{StreamRequest, write_stream_request};

/// Appends the pieces of a line.
///
/// Every writer in this module writes the CRLF before its line, and leaves the one after it to the next: most lines
/// are then two pieces instead of three.
#[inline]
fn put(out: &mut Vec<u8>, pieces: &[&[u8]]) {
    for piece in pieces {
        out.extend_from_slice(piece);
    }
}

/// The framing of bodies of unknown length.
const CHUNKED: &[u8] = b"\r\nTransfer-Encoding: chunked";

/// The end of the last line, and the empty one.
const END: &[u8] = b"\r\n\r\n";
