//! Response heads and body framing.

use std::num::NonZeroU64;

use bytes::Bytes;
use http::header::{
    CONNECTION, CONTENT_LENGTH, HeaderMap, HeaderName, HeaderValue, TRAILER, TRANSFER_ENCODING,
    UPGRADE,
};
use http::{StatusCode, response};

use super::batch::Batch;
use super::date::write_date;
use crate::head::headers::classes;
use crate::http1::{
    CHUNK_END, ChunkHead, ClassSet, FieldClass, LAST_CHUNK, Method, RawRequest, Version,
};

/// The properties of a request that its response depends on.
#[derive(Clone, Copy, Debug)]
pub(super) struct ResponseContext {
    pub(super) version: Version,
    is_head: bool,
    accepts_trailers: bool,
    /// True if the client wants to reuse the connection.
    is_persistent: bool,
}

impl ResponseContext {
    pub(super) fn of(request: &RawRequest) -> Self {
        Self {
            version: request.version(),
            is_head: request.method() == Method::Head,
            accepts_trailers: request.accepts_trailers(),
            is_persistent: request.is_persistent(),
        }
    }
}

/// The framing of a body.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Writing {
    /// No body.
    Nothing,
    /// The number of bytes left.
    Length(u64),
    Chunked {
        with_trailers: bool,
    },
    /// The body ends with the connection, which HTTP/1.0 needs if the length is unknown.
    UntilClose,
}

/// The result of writing a head.
#[derive(Clone, Copy, Debug)]
pub(super) struct WrittenHead {
    pub(super) writing: Writing,
    /// True if the connection stays open.
    pub(super) keep: bool,
    /// True if the connection becomes a tunnel.
    pub(super) is_switch: bool,
}

/// Appends the head of a response.
///
/// `length`: the length of the service's body, if known. `can_keep`: the server does not need to
/// close the connection.
pub(super) fn write_head(
    head: &response::Parts,
    length: Option<u64>,
    response_context: ResponseContext,
    can_keep: bool,
    out: &mut Vec<u8>,
) -> WrittenHead {
    let status = head.status;
    let is_switch = status == StatusCode::SWITCHING_PROTOCOLS;
    let writing = choose_writing(head, length, response_context);
    let classes = classes(&head.headers);
    let has_options = classes.contains(FieldClass::Connection);
    let keep = can_keep
        && response_context.is_persistent
        && writing != Writing::UntilClose
        && !(has_options && has_option(&head.headers, "close"));
    write_status_line(head, out);
    // RFC 9110 section 8.6 forbids a length in these.
    let has_no_length = status.is_informational() || status == StatusCode::NO_CONTENT;
    // Framing fields are dropped here and written below for the chosen framing. Most heads have a length and no other.
    let is_plain = classes.intersection(SPECIAL).is_empty();
    for (name, value) in &head.headers {
        let is_dropped = name == CONTENT_LENGTH
            || (!is_plain
                && (name == TRANSFER_ENCODING
                    || (name == CONNECTION && !is_switch)
                    || is_of_connection(name)
                    || (has_options
                        && !is_switch
                        && name != UPGRADE
                        && has_option(&head.headers, name.as_str()))
                    || (name == TRAILER
                        && writing
                            == (Writing::Chunked {
                                with_trailers: false,
                            }))));
        if !is_dropped {
            write_field(name, value, out);
        }
    }
    match writing {
        Writing::Length(length) => write_length(length, out),
        Writing::Chunked { .. } => out.extend_from_slice(b"transfer-encoding: chunked\r\n"),
        Writing::Nothing if !has_no_length => {
            // The length that GET would return; a 304 has it only if the service sets it.
            let length = match classes.contains(FieldClass::ContentLength) {
                true => declared_length(&head.headers),
                false => length.filter(|length| response_context.is_head && *length > 0),
            };
            if let Some(length) = length {
                write_length(length, out);
            }
        }
        _ => {}
    }
    // A 101 keeps the service's own `Connection: upgrade`.
    if !is_switch {
        let offers = classes.contains(FieldClass::Upgrade);
        // HTTP/1.0 clients need an explicit `keep-alive`; HTTP/1.1 reuses by default.
        let is_told = !keep || response_context.version == Version::Http10;
        out.extend_from_slice(match (keep, is_told, offers) {
            (false, _, false) => b"connection: close\r\n".as_slice(),
            (false, _, true) => b"connection: close, upgrade\r\n",
            (true, true, false) => b"connection: keep-alive\r\n",
            (true, true, true) => b"connection: keep-alive, upgrade\r\n",
            (true, false, true) => b"connection: upgrade\r\n",
            (true, false, false) => b"",
        });
    }
    // A server with a clock must send `Date` (RFC 9110 section 6.6.1).
    if !classes.contains(FieldClass::Date) && !status.is_informational() {
        out.extend_from_slice(b"date: ");
        write_date(out);
        out.extend_from_slice(b"\r\n");
    }
    out.extend_from_slice(b"\r\n");
    WrittenHead {
        writing,
        keep,
        is_switch,
    }
}

/// Classes of fields that may be dropped from a head, besides the length.
const SPECIAL: ClassSet = ClassSet::CONNECTION.with(FieldClass::Trailer);

/// Appends a response with a body in memory. Returns the number of body bytes written.
pub(crate) fn write_text(
    head: &response::Parts,
    text: &Bytes,
    request: &RawRequest,
    is_last: bool,
    out: &mut Vec<u8>,
) -> u64 {
    let length = text.len() as u64;
    let begun = write_head(
        head,
        Some(length),
        ResponseContext::of(request),
        !is_last,
        out,
    );
    // A response to HEAD has no content.
    if begun.writing == Writing::Nothing {
        return 0;
    }
    out.extend_from_slice(text);
    length
}

/// Chooses the framing by RFC 9112 section 6.3.
fn choose_writing(
    head: &response::Parts,
    length: Option<u64>,
    response_context: ResponseContext,
) -> Writing {
    let status = head.status;
    // RFC 9112 section 6.3.
    if response_context.is_head
        || status.is_informational()
        || matches!(status, StatusCode::NO_CONTENT | StatusCode::NOT_MODIFIED)
    {
        return Writing::Nothing;
    }
    match length.or_else(|| declared_length(&head.headers)) {
        Some(length) => Writing::Length(length),
        // RFC 9112 section 6.1: chunks are for HTTP/1.1 only.
        None if response_context.version == Version::Http11 => Writing::Chunked {
            with_trailers: response_context.accepts_trailers,
        },
        None => Writing::UntilClose,
    }
}

/// The length in `Content-Length`, if all values are the same valid number (RFC 9110 section 8.6).
pub(crate) fn declared_length(headers: &HeaderMap) -> Option<u64> {
    let mut values = headers.get_all(CONTENT_LENGTH).iter();
    let first = values.next()?;
    let digits = first.to_str().ok()?;
    let is_one = values.all(|value| value == first);
    // The standard library accepts a sign, which HTTP does not.
    let is_number = digits.bytes().all(|byte| byte.is_ascii_digit());
    digits.parse().ok().filter(|_| is_one && is_number)
}

/// True if the field is hop-by-hop even if `Connection` does not name it (RFC 9110 section 7.6.1).
fn is_of_connection(name: &HeaderName) -> bool {
    matches!(name.as_str(), "keep-alive" | "proxy-connection")
}

/// True if `Connection` has this option, which may be the name of a hop-by-hop field.
fn has_option(headers: &HeaderMap, name: &str) -> bool {
    headers.get_all(CONNECTION).iter().any(|value| {
        let options = value.as_bytes().split(|byte| *byte == b',');
        options
            .map(<[u8]>::trim_ascii)
            .any(|option| option.eq_ignore_ascii_case(name.as_bytes()))
    })
}

fn write_status_line(head: &response::Parts, out: &mut Vec<u8>) {
    out.extend_from_slice(b"HTTP/1.1 ");
    out.extend_from_slice(head.status.as_str().as_bytes());
    out.push(b' ');
    match head.extensions.get::<hyper::ext::ReasonPhrase>() {
        Some(reason) => out.extend_from_slice(reason.as_bytes()),
        None => {
            // RFC 9112 section 4 allows an empty reason.
            let reason = head.status.canonical_reason().unwrap_or_default();
            out.extend_from_slice(reason.as_bytes());
        }
    }
    out.extend_from_slice(b"\r\n");
}

fn write_field(name: &HeaderName, value: &HeaderValue, out: &mut Vec<u8>) {
    out.extend_from_slice(name.as_str().as_bytes());
    out.extend_from_slice(b": ");
    out.extend_from_slice(value.as_bytes());
    out.extend_from_slice(b"\r\n");
}

fn write_length(length: u64, out: &mut Vec<u8>) {
    out.extend_from_slice(b"content-length: ");
    let mut digits = [0; 20];
    let mut start = digits.len();
    let mut rest = length;
    loop {
        start -= 1;
        digits[start] = b'0' + (rest % 10) as u8;
        rest /= 10;
        if rest == 0 {
            break;
        }
    }
    out.extend_from_slice(&digits[start..]);
    out.extend_from_slice(b"\r\n");
}

impl Writing {
    /// Appends data up to the declared length. Returns false if there was more.
    pub(super) fn put(&mut self, mut data: Bytes, batch: &mut Batch, out: &mut Vec<u8>) -> bool {
        // An empty chunk would end the body.
        let Some(size) = NonZeroU64::new(data.len() as u64) else {
            return true;
        };
        match self {
            Self::Nothing => return false,
            Self::Length(left) => {
                let fits = size.get() <= *left;
                if !fits {
                    // The client would read the excess as the next response.
                    data.truncate(*left as usize);
                }
                *left -= data.len() as u64;
                batch.push(out, data);
                return fits;
            }
            Self::Chunked { .. } => {
                out.extend_from_slice(ChunkHead::new(size).as_bytes());
                batch.push(out, data);
                out.extend_from_slice(CHUNK_END);
            }
            Self::UntilClose => batch.push(out, data),
        }
        true
    }

    /// Appends the end of the body. Returns false if it is shorter than declared.
    pub(super) fn end(&mut self, trailers: Option<&HeaderMap>, out: &mut Vec<u8>) -> bool {
        match self {
            // A body that is shorter than its length is an error.
            Self::Length(left) => return *left == 0,
            Self::Chunked { with_trailers } => match trailers {
                Some(trailers) if *with_trailers => {
                    out.extend_from_slice(b"0\r\n");
                    write_trailers(trailers, out);
                }
                _ => out.extend_from_slice(LAST_CHUNK),
            },
            Self::Nothing | Self::UntilClose => {}
        }
        true
    }

    /// Returns true if no more data of the service is needed.
    pub(super) fn is_complete(self) -> bool {
        matches!(self, Self::Nothing | Self::Length(0))
    }
}

/// Writes the trailers of a body in chunks, and the empty line that ends it.
pub(crate) fn write_trailers(trailers: &HeaderMap, out: &mut Vec<u8>) {
    for (name, value) in trailers {
        if !is_framing(name) {
            write_field(name, value, out);
        }
    }
    out.extend_from_slice(b"\r\n");
}

/// True for names that no trailer may have: they would change the framing (RFC 9110 section 6.5.1).
fn is_framing(name: &HeaderName) -> bool {
    [
        CONTENT_LENGTH,
        TRANSFER_ENCODING,
        CONNECTION,
        TRAILER,
        http::header::HOST,
    ]
    .contains(name)
}
