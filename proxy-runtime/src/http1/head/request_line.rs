//! `method SP request-target SP HTTP-version`: RFC 9112 section 3.

use super::lines::Stop;
use super::target::{Target, read_target};
use super::{Method, Version};
use crate::http1::bytes::token_end;
use crate::http1::span::Span;
use crate::http1::{HeadLimits, Rejection};

/// Maximum length of a method. The longest registered one has 17 letters.
const LONGEST_METHOD: usize = 64;

/// The parts of a request line.
#[derive(Clone, Copy, Debug, Default)]
pub(in crate::http1) struct RequestLine {
    pub(in crate::http1) method: Method,
    pub(in crate::http1) method_span: Span,
    pub(in crate::http1) target: Target,
    pub(in crate::http1) version: Version,
}

/// Parses the line into `line`. Returns the start of the next line.
#[inline]
pub(super) fn read_request_line(
    window: &[u8],
    limits: &HeadLimits,
    line: &mut RequestLine,
) -> Result<usize, Stop> {
    // Skips one empty line: old clients sent one after a body (RFC 9112 section 2.2).
    let start = match window {
        [b'\r', b'\n', ..] => 2,
        [] | [b'\r'] => return Err(Stop::Partial),
        [b'\r', ..] => return Err(Rejection::BareCarriageReturn.into()),
        [b'\n', ..] => return Err(Rejection::BareLineFeed.into()),
        _ => 0,
    };
    let (method, method_end) = read_method(window, start)?;
    // The limit applies to method and target, without the space between them.
    let room = start.saturating_add(limits.request_line).saturating_add(1);
    let end = match read_target(window, method_end + 1, method, &mut line.target) {
        Ok(end) if end <= room => end,
        _ => return Err(not_a_target(window, room, method_end + 1, method)),
    };
    // Compared as a whole, like the method: a pattern would be compared byte by byte.
    let version = window.get(end..).and_then(<[u8]>::first_chunk);
    line.version = if version == Some(b" HTTP/1.1\r\n") {
        Version::Http11
    } else if version == Some(b" HTTP/1.0\r\n") {
        Version::Http10
    } else {
        return Err(read_version(window, end + 1));
    };
    line.method = method;
    line.method_span = Span::of(start, method_end);
    Ok(end + 11)
}

/// The error for a target that is invalid or has no end within `room`.
#[cold]
fn not_a_target(window: &[u8], room: usize, start: usize, method: Method) -> Stop {
    let line = &window[..window.len().min(room.saturating_add(1))];
    match read_target(line, start, method, &mut Target::default()) {
        Err(Stop::Partial) if line.len() <= room => Stop::Partial,
        Err(Stop::Rejected(rejection)) => rejection.into(),
        Ok(_) | Err(Stop::Partial) => Rejection::TargetTooLong.into(),
    }
}

/// Returns the method and its end, at a space.
#[inline]
fn read_method(window: &[u8], start: usize) -> Result<(Method, usize), Stop> {
    let bytes = &window[start..];
    let first = bytes.first_chunk();
    // The frequent methods, each compared as one word.
    let (method, length) = if first == Some(b"GET ") {
        (Method::Get, 3)
    } else if first == Some(b"PUT ") {
        (Method::Put, 3)
    } else if first == Some(b"POST") && bytes.get(4) == Some(&b' ') {
        (Method::Post, 4)
    } else if first == Some(b"HEAD") && bytes.get(4) == Some(&b' ') {
        (Method::Head, 4)
    } else {
        read_other_method(bytes)?
    };
    Ok((method, start + length))
}

fn read_other_method(bytes: &[u8]) -> Result<(Method, usize), Stop> {
    // Bounds the search, so that a long method gets its error at once.
    let end = token_end(&bytes[..bytes.len().min(LONGEST_METHOD + 1)], 0);
    if end > LONGEST_METHOD {
        return Err(Rejection::MethodTooLong.into());
    }
    let method = match bytes.get(end) {
        None => return Err(Stop::Partial),
        Some(b' ') if end > 0 => &bytes[..end],
        Some(b' ' | b'\t' | b'\r' | b'\n') => return Err(Rejection::StartLine.into()),
        Some(_) => return Err(Rejection::Method.into()),
    };
    let method = match method {
        b"CONNECT" => Method::Connect,
        b"DELETE" => Method::Delete,
        b"OPTIONS" => Method::Options,
        b"PATCH" => Method::Patch,
        b"TRACE" => Method::Trace,
        _ => Method::Other,
    };
    Ok((method, end))
}

/// The error for a version or the end of its line.
#[cold]
fn read_version(window: &[u8], start: usize) -> Stop {
    let rest = window.get(start..).unwrap_or_default();
    for (at, expected) in b"HTTP/".iter().enumerate() {
        match rest.get(at) {
            None => return Stop::Partial,
            Some(byte) if byte == expected => {}
            // A second target, or an extra space.
            Some(_) => return Rejection::StartLine.into(),
        }
    }
    match &rest[5..] {
        [] => Stop::Partial,
        [major, ..] if !major.is_ascii_digit() => Rejection::Version.into(),
        [_] => Stop::Partial,
        [_, b'.'] => Stop::Partial,
        [_, b'.', minor, end @ ..] if minor.is_ascii_digit() => match end {
            [] | [b'\r'] => Stop::Partial,
            [b'\n', ..] => Rejection::BareLineFeed.into(),
            // The caller has tested for the supported versions.
            [b'\r', b'\n', ..] => Rejection::VersionNotSupported.into(),
            [b'\r', ..] => Rejection::BareCarriageReturn.into(),
            _ => Rejection::Version.into(),
        },
        _ => Rejection::Version.into(),
    }
}
