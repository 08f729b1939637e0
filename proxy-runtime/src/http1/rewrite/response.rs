//! Writes responses for a client.

use super::fields::{Choice, Copied, copy_fields, first_line, write_length};
use super::operation::{Changes, FieldOperation, FieldValue, Removed};
use super::{CHUNKED, END, put};
use crate::http1::field::Field;
use crate::http1::field::{ClassSet, FieldClass};
use crate::http1::framing::Framing;
use crate::http1::head::{HeadTable, RawResponse, Version};

/// The statement of a response about the client's connection (RFC 9112 section 9).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum OutgoingConnection<'a> {
    /// No field: the default of the client's version.
    #[default]
    Default,
    /// The connection closes after this response.
    Close,
    /// The connection stays open; an HTTP/1.0 client needs a field for that.
    KeepAlive,
    /// The connection becomes a tunnel of this protocol.
    Upgrade(FieldValue<'a>),
}

/// The changes of a response's head.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct ResponseRewrite<'a> {
    /// True if the body is sent in chunks.
    pub chunked: bool,
    /// The statement about the connection.
    pub connection: OutgoingConnection<'a>,
    /// The fields that are forwarded.
    pub copied: Copied<'a>,
    /// Further classes that are left out.
    pub dropped: ClassSet,
    /// The operations of the route.
    pub operations: &'a [FieldOperation<'a>],
}

impl ResponseRewrite<'_> {
    /// Creates a rewrite that changes only the fields of the connection. The body keeps its framing.
    #[inline]
    pub fn new(response: &RawResponse) -> Self {
        Self {
            chunked: response.framing() == Framing::Chunked,
            connection: OutgoingConnection::Default,
            copied: Copied::All,
            dropped: ClassSet::EMPTY,
            operations: &[],
        }
    }
}

/// Appends the head of a response, as it is sent to a client, to `out`.
///
/// Written are the status line with HTTP/1.1, the lines that stay, the framing, what concerns the connection, and
/// what the operations write. A `Content-Length` stays unless no response of this status has one, or the body goes in
/// chunks. Allocates nothing if `out` has room.
///
/// # Panics
///
/// If `buffer` and `table` are not those that `response` was parsed in.
#[inline]
pub fn write_response(
    buffer: &[u8],
    response: &RawResponse,
    table: &HeadTable,
    rewrite: &ResponseRewrite<'_>,
    out: &mut Vec<u8>,
) {
    let end = response.head_length() - END.len();
    // Grows once for most routes.
    out.reserve(end + 256);
    let from = match is_line_as_written(response) {
        true => 0,
        false => {
            write_status_line(buffer, response, out);
            first_line(table, end)
        }
    };
    let mut dropped = rewrite
        .copied
        .dropping(ClassSet::CONNECTION.union(rewrite.dropped));
    let mut length = None;
    // RFC 9110 section 8.6; a body in chunks declares no length.
    if response.is_bodiless() || rewrite.chunked {
        dropped = dropped.with(FieldClass::ContentLength);
    } else if let Framing::Length(known) = response.framing()
        && table.is_length_padded()
    {
        // It is written separately.
        dropped = dropped.with(FieldClass::ContentLength);
        length = Some(known);
    }
    let changes = Removed::new(rewrite.operations);
    let choice = Choice {
        dropped,
        changes: &changes,
        copied: rewrite.copied,
    };
    copy_fields(buffer, table, (from, end), &choice, out);
    if rewrite.chunked {
        out.extend_from_slice(CHUNKED);
    }
    if let Some(length) = length {
        write_length(length, out);
    }
    match rewrite.connection {
        OutgoingConnection::Default => {}
        OutgoingConnection::Close => out.extend_from_slice(b"\r\nConnection: close"),
        OutgoingConnection::KeepAlive => out.extend_from_slice(b"\r\nConnection: keep-alive"),
        OutgoingConnection::Upgrade(protocol) => put(
            out,
            &[b"\r\nConnection: Upgrade\r\nUpgrade: ", protocol.as_bytes()],
        ),
    }
    changes.write(out);
    out.extend_from_slice(END);
}

/// Returns the fields of a response that are forwarded in `http` types, before the operations.
pub(crate) fn kept_fields<'a>(
    buffer: &'a [u8],
    response: &RawResponse,
    table: &'a HeadTable,
    copied: Copied<'a>,
) -> impl Iterator<Item = &'a Field> + Clone {
    let mut dropped = copied.dropping(ClassSet::CONNECTION);
    if response.is_bodiless() || response.framing() == Framing::Chunked {
        dropped = dropped.with(FieldClass::ContentLength);
    }
    let fields = table.fields().iter();
    fields.filter(move |field| !dropped.contains(field.class()) && copied.has(buffer, field))
}

/// Returns true for a complete status line of HTTP/1.1, which is copied together with the rest.
#[inline]
fn is_line_as_written(response: &RawResponse) -> bool {
    response.line.version == Version::Http11 && response.line.has_space
}

/// Writes a well-formed status line.
#[cold]
fn write_status_line(buffer: &[u8], response: &RawResponse, out: &mut Vec<u8>) {
    // Digits of the status stand behind the version in either case.
    let status = &buffer[9..12];
    let reason = response.line.reason.get(buffer);
    put(out, &[b"HTTP/1.1 ", status, b" ", reason]);
}
