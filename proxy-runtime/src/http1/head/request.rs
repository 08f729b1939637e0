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
use crate::http1::{FieldValue, Framing, HeadLimits, Refusal};

/// The method of a request; those that a proxy treats in a way of their own have a name here.
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
    /// `CONNECT`: the target is an authority, and a 2xx makes a tunnel. A gateway answers 405.
    Connect,
    /// `TRACE`. A gateway answers 405 (RFC 9110 section 9.3.8).
    Trace,
    /// Any other token. Methods are case-sensitive: `get` is one of these.
    Other,
}

impl Method {
    /// Its name, unless it is an [`Other`](Self::Other).
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

    /// Whether a request that is carried out twice means the same as one (RFC 9110 section 9.2.2).
    #[inline]
    pub fn is_idempotent(self) -> bool {
        match self {
            Self::Get | Self::Head | Self::Put | Self::Delete | Self::Options | Self::Trace => true,
            Self::Post | Self::Patch | Self::Connect | Self::Other => false,
        }
    }

    /// The method of `http`'s type.
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

/// The head of a request that has one meaning.
///
/// It is made of ranges of the buffer that was parsed; its fields are in the [`HeadTable`].
#[derive(Clone, Copy, Debug)]
pub struct RawRequest {
    pub(in crate::http1) line: RequestLine,
    /// Host and port as the client named them; empty in HTTP/1.0 without `Host`.
    authority: Span,
    length: u32,
    framing: Framing,
    connection: ConnectionOptions,
    expects_continue: bool,
    accepts_trailers: bool,
    upgrade: Option<Span>,
}

impl RawRequest {
    /// The place of one that is to be [read](read_request).
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

    /// How many bytes the head has: there the body begins.
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

    /// The whole target, as sent.
    #[inline]
    pub fn target(&self) -> Span {
        self.line.target.whole
    }

    /// The path, as sent; empty where an absolute target has none, and of `CONNECT`.
    #[inline]
    pub fn path(&self) -> Span {
        self.line.target.path
    }

    /// The query, as sent, without its `?`; `None` without one.
    #[inline]
    pub fn query(&self) -> Option<Span> {
        let target = &self.line.target;
        target.has_query.then_some(target.query)
    }

    /// Whether the path has neither `.` nor `%`, so that it has no dot segments and nothing to decode.
    #[inline]
    pub fn has_plain_path(&self) -> bool {
        self.line.target.is_plain
    }

    /// Host and port as the client named them: an absolute target's authority, else `Host`. Empty if it named none, which
    /// only HTTP/1.0 may.
    #[inline]
    pub fn authority(&self) -> Span {
        self.authority
    }

    /// The same as a value to be written, for `X-Forwarded-Host`.
    ///
    /// # Panics
    ///
    /// If `buffer` is shorter than the one that was parsed.
    #[inline]
    pub fn authority_value<'a>(&self, buffer: &'a [u8]) -> FieldValue<'a> {
        FieldValue::checked(self.authority.get(buffer))
    }

    /// The protocols that the client would switch to, as [`upgrade`](Self::upgrade), as a value to be written.
    ///
    /// # Panics
    ///
    /// If `buffer` is shorter than the one that was parsed.
    #[inline]
    pub fn upgrade_value<'a>(&self, buffer: &'a [u8]) -> Option<FieldValue<'a>> {
        let value = |span: Span| FieldValue::checked(span.get(buffer));
        self.upgrade.map(value)
    }

    /// Where the body ends: [`Framing::None`], [`Framing::Length`] or [`Framing::Chunked`].
    #[inline]
    pub fn framing(&self) -> Framing {
        self.framing
    }

    /// Whether the client keeps the connection open for a further request (RFC 9112 section 9.3).
    #[inline]
    pub fn is_persistent(&self) -> bool {
        self.connection.is_persistent(self.line.version)
    }

    /// Whether the client waits for 100 before it sends the body (RFC 9110 section 10.1.1). Never in HTTP/1.0.
    #[inline]
    pub fn expects_continue(&self) -> bool {
        self.expects_continue
    }

    /// Whether the client accepts trailers: `TE: trailers` (RFC 9110 section 10.1.4).
    #[inline]
    pub fn accepts_trailers(&self) -> bool {
        self.accepts_trailers
    }

    /// The protocols that the client would switch to, if it asks in both fields and in HTTP/1.1 (RFC 9110 section 7.8).
    #[inline]
    pub fn upgrade(&self) -> Option<Span> {
        self.upgrade
    }
}

/// Reads the head of a request at the beginning of `buffer`.
///
/// `buffer` may end anywhere, and may have more than the head. While the result is [`Status::Partial`], the same bytes and
/// further ones behind them are to be given again, with the same table, which remembers what has been read: a head that
/// comes byte by byte costs little more than one that comes at once. Nothing is allocated unless the table has to grow.
///
/// # Errors
///
/// The first thing that is wrong; what to do then is with [`Refusal`]. The table begins anew with the next call.
#[inline]
pub fn parse_request(
    buffer: &[u8],
    limits: &HeadLimits,
    table: &mut HeadTable,
) -> Result<Status<RawRequest>, Refusal> {
    let mut request = RawRequest::unread();
    Ok(match read_request(buffer, limits, table, &mut request)? {
        Status::Complete(()) => Status::Complete(request),
        Status::Partial => Status::Partial,
    })
}

/// The same at the place where `request` is kept: to be moved is a part of what it costs. It has a meaning when it is complete.
#[inline]
pub(crate) fn read_request(
    buffer: &[u8],
    limits: &HeadLimits,
    table: &mut HeadTable,
    request: &mut RawRequest,
) -> Result<Status<()>, Refusal> {
    let window = limits.window(buffer);
    let read = if table.is_begun() && !table.has_further_line(window) {
        Err(Stop::Partial)
    } else {
        read_head(window, limits, table)
    };
    let settled = match read {
        Ok(end) => settle(window, end, table, request).map(Status::Complete),
        // An empty line in front, a space, and the version with its space and end of line.
        Err(Stop::Partial)
            if table.line == 0 && window.len() > limits.request_line.saturating_add(2 + 1 + 11) =>
        {
            Err(Refusal::TargetTooLong)
        }
        Err(Stop::Partial) if window.len() < limits.most_bytes() => {
            table.pause(window);
            return Ok(Status::Partial);
        }
        Err(Stop::Partial) => Err(Refusal::HeadTooLarge),
        Err(Stop::Refused(refusal)) => Err(refusal),
    };
    table.end();
    settled
}

/// Reads line and fields into the table, and returns where the head ends.
#[inline]
fn read_head(window: &[u8], limits: &HeadLimits, table: &mut HeadTable) -> Result<usize, Stop> {
    if table.line == 0 {
        table.clear();
        table.line = read_request_line(window, limits, &mut table.request_line)? as u32;
    }
    read_fields(window, limits.most_fields(), Section::Request, table)
}

/// Makes one meaning of what was read.
#[inline]
fn settle(
    window: &[u8],
    end: usize,
    table: &mut HeadTable,
    request: &mut RawRequest,
) -> Result<(), Refusal> {
    *request = RawRequest {
        line: table.request_line,
        authority: settle_authority(window, table)?,
        length: end as u32,
        ..RawRequest::unread()
    };
    if !table.seen.intersection(NOTEWORTHY).is_empty() {
        settle_noteworthy(window, table, request)?;
    }
    Ok(())
}

/// RFC 9112 section 3.2: one valid `Host`, which HTTP/1.0 may lack, and which an absolute target overrules.
#[inline]
fn settle_authority(window: &[u8], table: &HeadTable) -> Result<Span, Refusal> {
    let line = &table.request_line;
    let host = match table.first(FieldClass::Host) {
        None if line.version == Version::Http11 => return Err(Refusal::HostMissing),
        None => Span::default(),
        Some(_) if table.repeated.contains(FieldClass::Host) => {
            return Err(Refusal::HostRepeated);
        }
        Some(host) => {
            let value = host.value();
            // It ends where no host goes on, so that the bytes behind it make no difference.
            let behind = window.get(value.start() as usize..).unwrap_or_default();
            if authority_end(behind) != Some(value.len() as usize) {
                return Err(Refusal::HostInvalid);
            }
            value
        }
    };
    Ok(if line.target.authority.is_empty() {
        host
    } else {
        line.target.authority
    })
}

fn settle_noteworthy(
    window: &[u8],
    table: &mut HeadTable,
    request: &mut RawRequest,
) -> Result<(), Refusal> {
    let version = request.line.version;
    request.framing = match read_length(window, table, version)? {
        Announced::Nothing => Framing::None,
        Announced::Length(length) => Framing::Length(length),
        Announced::Chunked => Framing::Chunked,
    };
    request.connection = read_connection(window, table)?;
    if let Some(expectation) = table.first(FieldClass::Expect)
        && version == Version::Http11
    {
        let is_known = is(expectation.value().get(window), b"100-continue");
        if !is_known || table.repeated.contains(FieldClass::Expect) {
            return Err(Refusal::Expectation);
        }
        request.expects_continue = true;
    }
    if let Some(protocols) = table.first(FieldClass::Upgrade)
        && request.connection.upgrade
        && version == Version::Http11
    {
        let is_websocket = has_element(window, table, FieldClass::Upgrade, b"websocket");
        if is_websocket && !request.framing.is_empty() {
            return Err(Refusal::UpgradeWithBody);
        }
        // Several lines have no single span; who asks in that way is served as if it had not.
        if !table.repeated.contains(FieldClass::Upgrade) {
            request.upgrade = Some(protocols.value());
        }
    }
    if table.seen.contains(FieldClass::Te) {
        request.accepts_trailers = has_element(window, table, FieldClass::Te, b"trailers");
    }
    Ok(())
}
