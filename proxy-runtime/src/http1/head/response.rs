//! The head of a response.

use super::connection::{ConnectionOptions, NOTEWORTHY, read_connection};
use super::length::{Announced, read_length};
use super::lines::{Section, Stop, read_fields};
use super::status_line::{StatusLine, read_status_line};
use super::table::HeadTable;
use super::{Method, Status, Version};
use crate::http1::field::FieldClass;
use crate::http1::span::Span;
use crate::http1::{Framing, HeadLimits, Rejection};

/// The properties of a request that decide about the end of its response (RFC 9112 section 6.3).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RequestInfo {
    /// The method of the request as sent to this origin.
    pub method: Method,
    /// True if the request asked for an upgrade. Otherwise a 101 is rejected.
    pub upgrade: bool,
}

/// An unambiguous response head.
///
/// It consists of ranges of the parsed buffer; its fields are in the [`HeadTable`].
#[derive(Clone, Copy, Debug)]
pub struct RawResponse {
    pub(in crate::http1) line: StatusLine,
    length: u32,
    framing: Framing,
    is_persistent: bool,
}

impl RawResponse {
    /// The length of the head: the body, or the next response, begins there.
    #[inline]
    pub fn head_length(&self) -> usize {
        self.length as usize
    }

    /// The status code, 100 to 999. Codes from 600 are unregistered and passed on.
    #[inline]
    pub fn status(&self) -> u16 {
        self.line.status
    }

    /// Returns true for an interim response, which another one follows: 1xx except 101.
    #[inline]
    pub fn is_interim(&self) -> bool {
        self.line.status < 200 && self.line.status != 101
    }

    /// The reason phrase.
    #[inline]
    pub fn reason(&self) -> Span {
        self.line.reason
    }

    /// The version.
    #[inline]
    pub fn version(&self) -> Version {
        self.line.version
    }

    /// The framing of the body.
    #[inline]
    pub fn framing(&self) -> Framing {
        self.framing
    }

    /// Returns true if the connection can carry another request after this response (RFC 9112
    /// section 9.3).
    ///
    /// False after a body that ends with the connection, and after a 204 that declares a body,
    /// since it is unknown what its sender has sent.
    #[inline]
    pub fn is_persistent(&self) -> bool {
        self.is_persistent
    }

    /// Returns true if responses with this status never have a body: their `Content-Length` is not
    /// forwarded.
    #[inline]
    pub fn is_bodiless(&self) -> bool {
        self.line.status < 200 || self.line.status == 204
    }
}

/// Parses the head of a response at the front of `buffer`, like
/// [`parse_request`](super::parse_request).
///
/// An interim response has its own head; the next one is parsed after it, with the same [`RequestInfo`].
///
/// # Errors
///
/// Returns the first error. The client gets 502, and the connection to the origin is closed. The
/// table restarts with the next call.
#[inline]
pub fn parse_response(
    buffer: &[u8],
    asked: RequestInfo,
    limits: &HeadLimits,
    table: &mut HeadTable,
) -> Result<Status<RawResponse>, Rejection> {
    let window = limits.window(buffer);
    // Waits for another line end: a slow sender must not cost a parse per byte.
    let read = if table.is_begun() && !table.has_further_line(window) {
        Err(Stop::Partial)
    } else {
        read_head(window, limits, table)
    };
    let validated = match read {
        Ok((line, end)) => validate_head(window, line, end, asked, table).map(Status::Complete),
        Err(Stop::Partial) if window.len() < limits.most_bytes() => {
            table.pause(window);
            return Ok(Status::Partial);
        }
        Err(Stop::Partial) => Err(Rejection::HeadTooLarge),
        Err(Stop::Rejected(rejection)) => Err(rejection),
    };
    table.end();
    validated
}

#[inline]
fn read_head(
    window: &[u8],
    limits: &HeadLimits,
    table: &mut HeadTable,
) -> Result<(StatusLine, usize), Stop> {
    let line = if table.line == 0 {
        table.clear();
        let (line, end) = read_status_line(window)?;
        table.line = end as u32;
        line
    } else {
        table.status_line
    };
    match read_fields(window, limits.most_fields(), Section::Response, table) {
        Ok(end) => Ok((line, end)),
        Err(stop) => {
            // Kept for the next call, which continues with the fields.
            table.status_line = line;
            Err(stop)
        }
    }
}

#[inline]
fn validate_head(
    window: &[u8],
    line: StatusLine,
    end: usize,
    asked: RequestInfo,
    table: &mut HeadTable,
) -> Result<RawResponse, Rejection> {
    let (announced, connection) = if table.seen.intersection(NOTEWORTHY).is_empty() {
        (Announced::Nothing, ConnectionOptions::default())
    } else {
        let announced = read_length(window, table, line.version)?;
        (announced, read_connection(window, table)?)
    };
    let framing = resolve_framing(line.status, announced, asked)?;
    // A body after a 204 would be read as the next response.
    let is_doubtful =
        line.status == 204 && !matches!(announced, Announced::Nothing | Announced::Length(0));
    let ends_http = matches!(framing, Framing::UntilClose | Framing::Tunnel);
    Ok(RawResponse {
        line,
        length: end as u32,
        framing,
        is_persistent: !ends_http && !is_doubtful && connection.is_persistent(line.version),
    })
}

/// The framing, in the order of RFC 9112 section 6.3.
#[inline]
fn resolve_framing(
    status: u16,
    announced: Announced,
    asked: RequestInfo,
) -> Result<Framing, Rejection> {
    match status {
        // The following bytes would be taken for the next response, or for the start of the tunnel.
        100..200 if !matches!(announced, Announced::Nothing | Announced::Length(0)) => {
            return Err(Rejection::InterimWithBody);
        }
        101 if asked.upgrade => return Ok(Framing::Tunnel),
        101 => return Err(Rejection::UnexpectedSwitch),
        100..200 | 204 | 304 => return Ok(Framing::None),
        // A successful response to CONNECT begins the tunnel (RFC 9112 section 6.3).
        200..300 if asked.method == Method::Connect => return Ok(Framing::Tunnel),
        _ if asked.method == Method::Head => return Ok(Framing::None),
        _ => {}
    }
    // Without a declared length, the body ends with the connection (RFC 9112 section 6.3).
    Ok(match announced {
        Announced::Nothing => Framing::UntilClose,
        Announced::Length(length) => Framing::Length(length),
        Announced::Chunked => Framing::Chunked,
    })
}

impl HeadTable {
    /// The protocol in `Upgrade`, for a 101; `None` if there are several lines.
    #[inline]
    pub fn upgrade(&self) -> Option<Span> {
        let is_single = !self.repeated.contains(FieldClass::Upgrade);
        let field = self.first(FieldClass::Upgrade).filter(|_| is_single)?;
        Some(field.value())
    }
}
