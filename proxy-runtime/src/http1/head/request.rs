//! The head of a request.

use http::Method as HttpMethod;

use super::authority::authority_end;
use super::connection::{ConnectionOptions, NOTEWORTHY, has_element, read_connection};
use super::length::{Announced, read_length};
use super::lines::{Section, Stop, read_fields};
use super::request_line::{RequestLine, read_request_line};
use super::table::HeadTable;
use super::{Status, TargetForm, Version};
use crate::http1::field::{FieldClass, is};
use crate::http1::span::Span;
use crate::http1::{FieldValue, Framing, HeadLimits, Rejection};

/// The method of a request. Methods that a proxy treats specially have variants.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Method {
    /// `GET`.
    #[default]
    Get,
    /// `HEAD`: the response has no body.
    Head,
    /// `POST`.
    Post,
    /// `PUT`.
    Put,
    /// `PATCH`.
    Patch,
    /// `DELETE`.
    Delete,
    /// `OPTIONS`.
    Options,
    /// `CONNECT`: the target is an authority, and 2xx begins a tunnel. A gateway responds 405.
    Connect,
    /// `TRACE`. A gateway responds 405 (RFC 9110 section 9.3.8).
    Trace,
    /// Any other token. Methods are case-sensitive: `get` belongs here.
    Other,
}

impl Method {
    /// The name, unless the method is [`Other`](Self::Other).
    #[inline]
    pub fn name(self) -> Option<&'static str> {
        Some(match self {
            Self::Get => "GET",
            Self::Head => "HEAD",
            Self::Post => "POST",
            Self::Put => "PUT",
            Self::Patch => "PATCH",
            Self::Delete => "DELETE",
            Self::Options => "OPTIONS",
            Self::Connect => "CONNECT",
            Self::Trace => "TRACE",
            Self::Other => return None,
        })
    }

    /// Returns true if repeating the request has no further effect (RFC 9110 section 9.2.2).
    #[inline]
    pub fn is_idempotent(self) -> bool {
        match self {
            Self::Get | Self::Head | Self::Put | Self::Delete | Self::Options | Self::Trace => true,
            Self::Post | Self::Patch | Self::Connect | Self::Other => false,
        }
    }

    /// Converts from `http`.
    pub fn of(method: &HttpMethod) -> Self {
        match *method {
            HttpMethod::GET => Self::Get,
            HttpMethod::HEAD => Self::Head,
            HttpMethod::POST => Self::Post,
            HttpMethod::PUT => Self::Put,
            HttpMethod::PATCH => Self::Patch,
            HttpMethod::DELETE => Self::Delete,
            HttpMethod::OPTIONS => Self::Options,
            HttpMethod::CONNECT => Self::Connect,
            HttpMethod::TRACE => Self::Trace,
            _ => Self::Other,
        }
    }
}

/// An unambiguous request head.
///
/// It consists of ranges of the parsed buffer; its fields are in the [`HeadTable`].
#[derive(Clone, Copy, Debug)]
pub struct RawRequest {
    pub(in crate::http1) line: RequestLine,
    /// Host and port as sent by the client; empty in HTTP/1.0 without `Host`.
    authority: Span,
    length: u32,
    framing: Framing,
    connection: ConnectionOptions,
    expects_continue: bool,
    accepts_trailers: bool,
    upgrade: Option<Span>,
}

impl RawRequest {
    /// A value to be filled by [`read_request`].
    pub(crate) fn unread() -> Self {
        Self {
            line: RequestLine::default(),
            authority: Span::default(),
            length: 0,
            framing: Framing::None,
            connection: ConnectionOptions::default(),
            expects_continue: false,
            accepts_trailers: false,
            upgrade: None,
        }
    }

    /// The length of the head: the body begins there.
    #[inline]
    pub fn head_length(&self) -> usize {
        self.length as usize
    }

    /// The method.
    #[inline]
    pub fn method(&self) -> Method {
        self.line.method
    }

    /// The bytes of the method.
    #[inline]
    pub fn method_span(&self) -> Span {
        self.line.method_span
    }

    /// The version.
    #[inline]
    pub fn version(&self) -> Version {
        self.line.version
    }

    /// The form of the target.
    #[inline]
    pub fn target_form(&self) -> TargetForm {
        self.line.target.form
    }

    /// The whole target as sent.
    #[inline]
    pub fn target(&self) -> Span {
        self.line.target.whole
    }

    /// The path as sent; empty if an absolute target has none, and for `CONNECT`.
    #[inline]
    pub fn path(&self) -> Span {
        self.line.target.path
    }

    /// The query as sent, without `?`; `None` if there is none.
    #[inline]
    pub fn query(&self) -> Option<Span> {
        let target = &self.line.target;
        target.has_query.then_some(target.query)
    }

    /// Returns true if the path contains neither `.` nor `%`: it has no dot segments and needs no
    /// decoding.
    #[inline]
    pub fn has_plain_path(&self) -> bool {
        self.line.target.is_plain
    }

    /// Host and port as sent by the client: the authority of an absolute target, otherwise `Host`.
    /// Empty if there is none, which only HTTP/1.0 allows.
    #[inline]
    pub fn authority(&self) -> Span {
        self.authority
    }

    /// The [`authority`](Self::authority) as a field value, for `X-Forwarded-Host`.
    ///
    /// # Panics
    ///
    /// Panics if `buffer` is shorter than the parsed one.
    #[inline]
    pub fn authority_value<'a>(&self, buffer: &'a [u8]) -> FieldValue<'a> {
        FieldValue::checked(self.authority.get(buffer))
    }

    /// The [`upgrade`](Self::upgrade) protocols as a field value.
    ///
    /// # Panics
    ///
    /// Panics if `buffer` is shorter than the parsed one.
    #[inline]
    pub fn upgrade_value<'a>(&self, buffer: &'a [u8]) -> Option<FieldValue<'a>> {
        let value = |span: Span| FieldValue::checked(span.get(buffer));
        self.upgrade.map(value)
    }

    /// The framing of the body: [`Framing::None`], [`Framing::Length`] or [`Framing::Chunked`].
    #[inline]
    pub fn framing(&self) -> Framing {
        self.framing
    }

    /// Returns true if the client keeps the connection open (RFC 9112 section 9.3).
    #[inline]
    pub fn is_persistent(&self) -> bool {
        self.connection.is_persistent(self.line.version)
    }

    /// Returns true if the client waits for `100 Continue` (RFC 9110 section 10.1.1). Never in
    /// HTTP/1.0.
    #[inline]
    pub fn expects_continue(&self) -> bool {
        self.expects_continue
    }

    /// Returns true if the client accepts trailers: `TE: trailers` (RFC 9110 section 10.1.4).
    #[inline]
    pub fn accepts_trailers(&self) -> bool {
        self.accepts_trailers
    }

    /// The protocols for an upgrade, if the client asks for one in both fields and in HTTP/1.1 (RFC
    /// 9110 section 7.8).
    #[inline]
    pub fn upgrade(&self) -> Option<Span> {
        self.upgrade
    }
}

/// Parses the head of a request at the front of `buffer`.
///
/// `buffer` may be incomplete, and may contain more than the head. After [`Status::Partial`], call
/// again with the same bytes and further ones, and the same table, which keeps the progress: a head
/// that arrives byte by byte costs little more than a complete one. Allocates only if the table has
/// to grow.
///
/// # Errors
///
/// Returns the first error; [`Rejection`] describes what to do. The table restarts with the next
/// call.
#[inline]
pub fn parse_request(
    buffer: &[u8],
    limits: &HeadLimits,
    table: &mut HeadTable,
) -> Result<Status<RawRequest>, Rejection> {
    let mut request = RawRequest::unread();
    Ok(match read_request(buffer, limits, table, &mut request)? {
        Status::Complete(()) => Status::Complete(request),
        Status::Partial => Status::Partial,
    })
}

/// Like [`parse_request`], in place, since moving a request is expensive. `request` is valid once
/// the result is complete.
#[inline]
pub(crate) fn read_request(
    buffer: &[u8],
    limits: &HeadLimits,
    table: &mut HeadTable,
    request: &mut RawRequest,
) -> Result<Status<()>, Rejection> {
    let window = limits.window(buffer);
    // Waits for another line end: a slow sender must not cost a parse per byte.
    let read = if table.is_begun() && !table.has_further_line(window) {
        Err(Stop::Partial)
    } else {
        read_head(window, limits, table)
    };
    let validated = match read {
        Ok(end) => validate_head(window, end, table, request).map(Status::Complete),
        // An empty line in front, a space, and the version with its space and line end.
        Err(Stop::Partial)
            if table.line == 0 && window.len() > limits.request_line.saturating_add(2 + 1 + 11) =>
        {
            Err(Rejection::TargetTooLong)
        }
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

/// Parses line and fields into the table. Returns the end of the head.
#[inline]
fn read_head(window: &[u8], limits: &HeadLimits, table: &mut HeadTable) -> Result<usize, Stop> {
    // Parsed once: later calls continue with the fields.
    if table.line == 0 {
        table.clear();
        table.line = read_request_line(window, limits, &mut table.request_line)? as u32;
    }
    read_fields(window, limits.most_fields(), Section::Request, table)
}

/// Validates the parsed head as a whole.
#[inline]
fn validate_head(
    window: &[u8],
    end: usize,
    table: &mut HeadTable,
    request: &mut RawRequest,
) -> Result<(), Rejection> {
    *request = RawRequest {
        line: table.request_line,
        authority: resolve_authority(window, table)?,
        length: end as u32,
        ..RawRequest::unread()
    };
    if !table.seen.intersection(NOTEWORTHY).is_empty() {
        resolve_noteworthy(window, table, request)?;
    }
    Ok(())
}

/// Validates the authority (RFC 9112 section 3.2): one valid `Host`, which HTTP/1.0 may lack, and
/// which an absolute target overrides.
#[inline]
fn resolve_authority(window: &[u8], table: &HeadTable) -> Result<Span, Rejection> {
    let line = &table.request_line;
    let host = match table.first(FieldClass::Host) {
        None if line.version == Version::Http11 => return Err(Rejection::HostMissing),
        None => Span::default(),
        Some(_) if table.repeated.contains(FieldClass::Host) => {
            return Err(Rejection::HostRepeated);
        }
        Some(host) => {
            let value = host.value();
            // The host ends at its first invalid byte, so the following bytes have no effect.
            let behind = window.get(value.start() as usize..).unwrap_or_default();
            if authority_end(behind) != Some(value.len() as usize) {
                return Err(Rejection::HostInvalid);
            }
            value
        }
    };
    // The authority of an absolute target overrides `Host` (RFC 9112 section 3.2.2).
    Ok(if line.target.authority.is_empty() {
        host
    } else {
        line.target.authority
    })
}

fn resolve_noteworthy(
    window: &[u8],
    table: &mut HeadTable,
    request: &mut RawRequest,
) -> Result<(), Rejection> {
    let version = request.line.version;
    request.framing = match read_length(window, table, version)? {
        Announced::Nothing => Framing::None,
        Announced::Length(length) => Framing::Length(length),
        Announced::Chunked => Framing::Chunked,
    };
    request.connection = read_connection(window, table)?;
    // In HTTP/1.0 the field must be ignored (RFC 9110 section 10.1.1).
    if let Some(expectation) = table.first(FieldClass::Expect)
        && version == Version::Http11
    {
        let is_known = is(expectation.value().get(window), b"100-continue");
        if !is_known || table.repeated.contains(FieldClass::Expect) {
            return Err(Rejection::Expectation);
        }
        request.expects_continue = true;
    }
    // Counts only in HTTP/1.1 and if `Connection` names it (RFC 9110 section 7.8).
    if let Some(protocols) = table.first(FieldClass::Upgrade)
        && request.connection.upgrade
        && version == Version::Http11
    {
        let is_websocket = has_element(window, table, FieldClass::Upgrade, b"websocket");
        // Some programs take the body for the first bytes of the tunnel.
        if is_websocket && !request.framing.is_empty() {
            return Err(Rejection::UpgradeWithBody);
        }
        // Several lines have no single span; such a request is served without the upgrade.
        if !table.repeated.contains(FieldClass::Upgrade) {
            request.upgrade = Some(protocols.value());
        }
    }
    if table.seen.contains(FieldClass::Te) {
        request.accepts_trailers = has_element(window, table, FieldClass::Te, b"trailers");
    }
    Ok(())
}
