//! Writes requests for a destination.

use super::fields::{Choice, Copied, copy_fields, first_line, write_length};
use super::operation::{Changes, FieldOperation, FieldValue, Removed};
use super::{CHUNKED, END, put};
use crate::http1::bytes::{TOKEN, all, is_target};
use crate::http1::field::{ClassSet, FieldClass};
use crate::http1::framing::Framing;
use crate::http1::head::{HeadTable, RawRequest, TargetForm, Version};

/// A method that replaces the one that was received.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OutgoingMethod<'a>(&'a [u8]);

impl<'a> OutgoingMethod<'a> {
    /// `None` if it is no token.
    pub fn new(method: &'a str) -> Option<Self> {
        let method = method.as_bytes();
        all(method, TOKEN).then_some(Self(method))
    }
}

/// A target that replaces the one that was received.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OutgoingTarget<'a> {
    path: &'a [u8],
    query: Option<&'a [u8]>,
}

impl<'a> OutgoingTarget<'a> {
    /// `None` unless `path` begins with `/` or is `*`, and path and query, which is without its `?`, could be received.
    pub fn new(path: &'a [u8], query: Option<&'a [u8]>) -> Option<Self> {
        // A `?` would begin the query.
        let is_path = (path.first() == Some(&b'/') && is_target(path) && !path.contains(&b'?'))
            || (path == b"*" && query.is_none());
        (is_path && query.is_none_or(is_target)).then_some(Self { path, query })
    }

    #[inline]
    pub(super) fn write(self, out: &mut Vec<u8>) {
        out.extend_from_slice(self.path);
        if let Some(query) = self.query {
            put(out, &[b"?", query]);
        }
    }
}

/// The changes of a request's head. By default only the fields about the connection change.
#[derive(Clone, Copy, Debug, Default)]
#[non_exhaustive]
pub struct RequestRewrite<'a> {
    /// The method, if it is another one.
    pub method: Option<OutgoingMethod<'a>>,
    /// The target, if it is another one. In any case it is written in origin form, or as `*`.
    pub target: Option<OutgoingTarget<'a>>,
    /// The `Host` to write in place of the client's. Required if the client sent none.
    pub host: Option<FieldValue<'a>>,
    /// The fields that are forwarded.
    pub copied: Copied<'a>,
    /// Further classes that are left out: `Expect`, if it was answered here.
    pub dropped: ClassSet,
    /// The operations of the route.
    pub operations: &'a [FieldOperation<'a>],
    /// True to write `TE: trailers`, by which the proxy accepts trailers.
    pub accepts_trailers: bool,
    /// The protocol to switch to, if the client's wish is passed on.
    pub upgrade: Option<FieldValue<'a>>,
    /// A line that is always added, preceded by CRLF; or empty.
    pub(crate) last: &'a [u8],
}

/// Appends the head of a request, as it is sent to a destination, to `out`.
///
/// Written are the request line with HTTP/1.1, `Host`, the lines that stay, the framing of the body as it was
/// received, what concerns the connection, and what the operations write. Allocates nothing if `out` has room; a head
/// grows by what is added to it, so 1 KiB more than the received one is enough for most routes.
///
/// # Panics
///
/// If `buffer` and `table` are not those that `request` was parsed in.
#[inline]
pub fn write_request(
    buffer: &[u8],
    request: &RawRequest,
    table: &HeadTable,
    rewrite: &RequestRewrite<'_>,
    out: &mut Vec<u8>,
) {
    let changes = Removed::new(rewrite.operations);
    write_changed_request(buffer, request, table, rewrite, &changes, out);
}

/// Writes the head with `changes` instead of the route's operations.
#[inline]
pub(crate) fn write_changed_request<C: Changes>(
    buffer: &[u8],
    request: &RawRequest,
    table: &HeadTable,
    rewrite: &RequestRewrite<'_>,
    changes: &C,
    out: &mut Vec<u8>,
) {
    let end = request.head_length() - END.len();
    // Grows once for most routes.
    out.reserve(end + 256);
    let mut dropped = rewrite
        .copied
        .dropping(ClassSet::CONNECTION.union(rewrite.dropped));
    let from = if begins_as_written(buffer, request, table, rewrite) {
        // `Host` is copied together with the request line.
        dropped = dropped.without(FieldClass::Host);
        request.method_span().start() as usize
    } else {
        write_request_line(buffer, request, rewrite, out);
        let host = match rewrite.host {
            Some(host) => host.as_bytes(),
            None => request.authority().get(buffer),
        };
        put(out, &[b" HTTP/1.1\r\nHost: ", host]);
        first_line(table, end)
    };
    if request.version() == Version::Http10 {
        // It meant nothing there (RFC 9110 section 10.1.1), and would now.
        dropped = dropped.with(FieldClass::Expect);
    }
    let length = match request.framing() {
        // It is written separately.
        Framing::Length(length) if table.is_length_padded() => {
            dropped = dropped.with(FieldClass::ContentLength);
            Some(length)
        }
        _ => None,
    };
    let choice = Choice {
        dropped,
        changes,
        copied: rewrite.copied,
    };
    copy_fields(buffer, table, (from, end), &choice, out);
    // The received line was left out with the fields of the connection.
    if request.framing() == Framing::Chunked {
        out.extend_from_slice(CHUNKED);
    }
    if let Some(length) = length {
        write_length(length, out);
    }
    write_connection(rewrite, out);
    changes.write(out);
    out.extend_from_slice(rewrite.last);
    out.extend_from_slice(END);
}

/// Returns true if the request line and `Host`, the first field, need no change, so that they are copied together
/// with the rest.
#[inline]
fn begins_as_written(
    buffer: &[u8],
    request: &RawRequest,
    table: &HeadTable,
    rewrite: &RequestRewrite<'_>,
) -> bool {
    const HOST: &[u8] = b"Host: ";
    let is_unchanged = rewrite.method.is_none()
        && rewrite.target.is_none()
        && rewrite.host.is_none()
        && matches!(rewrite.copied, Copied::All)
        && request.target_form() == TargetForm::Origin
        && request.version() == Version::Http11;
    let Some(host) = table.fields().first().filter(|_| is_unchanged) else {
        return false;
    };
    let (start, value) = (host.name().start() as usize, host.value());
    host.class() == FieldClass::Host
        && value.start() as usize == start + HOST.len()
        && buffer[start..].starts_with(HOST)
        // Without white space behind the value.
        && buffer[value.end() as usize] == b'\r'
}

/// Writes method and target, without the space after them.
#[inline]
fn write_request_line(
    buffer: &[u8],
    request: &RawRequest,
    rewrite: &RequestRewrite<'_>,
    out: &mut Vec<u8>,
) {
    // Most request lines stay as they are.
    if rewrite.method.is_none()
        && rewrite.target.is_none()
        && request.target_form() == TargetForm::Origin
    {
        let start = request.method_span().start() as usize;
        let end = request.target().end() as usize;
        out.extend_from_slice(&buffer[start..end]);
        return;
    }
    let method = match rewrite.method {
        Some(OutgoingMethod(method)) => method,
        None => request.method_span().get(buffer),
    };
    let received = OutgoingTarget {
        path: match request.target_form() {
            TargetForm::Asterisk => b"*",
            TargetForm::Authority => request.target().get(buffer),
            TargetForm::Absolute if request.path().is_empty() => b"/",
            _ => request.path().get(buffer),
        },
        query: request.query().map(|query| query.get(buffer)),
    };
    let target = rewrite.target.unwrap_or(received);
    put(out, &[method, b" "]);
    target.write(out);
}

/// RFC 9110 section 7.6.1: what concerns the connection is named by `Connection`.
#[inline]
fn write_connection(rewrite: &RequestRewrite<'_>, out: &mut Vec<u8>) {
    if let Some(protocol) = rewrite.upgrade {
        let protocol = protocol.as_bytes();
        put(out, &[b"\r\nConnection: Upgrade\r\nUpgrade: ", protocol]);
    } else if rewrite.accepts_trailers {
        out.extend_from_slice(b"\r\nConnection: TE\r\nTE: trailers");
    }
}
