//! Heads as they are sent on: runs of lines as they came, and what is changed.
//!
//! A head is written once, straight into the output buffer. Lines that stay are copied in runs, as they were received; what
//! concerns one connection is left out whatever a route says, and written anew by what the caller says of the connection.

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
/// All that writes lines in this module writes the CRLF in front of a line and leaves that behind it to the next one: most
/// lines are two pieces then instead of three.
#[inline]
fn put(out: &mut Vec<u8>, pieces: &[&[u8]]) {
    for piece in pieces {
        out.extend_from_slice(piece);
    }
}

/// How bodies are framed whose length is not known.
const CHUNKED: &[u8] = b"\r\nTransfer-Encoding: chunked";

/// The end of the last line, and the empty one.
const END: &[u8] = b"\r\n\r\n";
