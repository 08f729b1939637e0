//! `HTTP-version SP status-code SP reason-phrase`: RFC 9112 section 4.

use super::Version;
use super::lines::Stop;
use crate::http1::Rejection;
use crate::http1::bytes::text_end;
use crate::http1::span::Span;

/// The parts of a status line.
#[derive(Clone, Copy, Debug, Default)]
pub(in crate::http1) struct StatusLine {
    pub(in crate::http1) version: Version,
    pub(in crate::http1) status: u16,
    pub(in crate::http1) reason: Span,
    /// True if a space follows the status, as it should.
    pub(in crate::http1) has_space: bool,
}

/// The position of the status, after the version and a space.
const STATUS: usize = 9;

/// Parses the line. Returns it with the start of the next one.
#[inline]
pub(super) fn read_status_line(window: &[u8]) -> Result<(StatusLine, usize), Stop> {
    let version = window.first_chunk::<STATUS>();
    let version = if version == Some(b"HTTP/1.1 ") {
        Version::Http11
    } else if version == Some(b"HTTP/1.0 ") {
        Version::Http10
    } else {
        return Err(read_version(window));
    };
    let (status, end) = match &window[STATUS..] {
        [a @ b'1'..=b'9', b @ b'0'..=b'9', c @ b'0'..=b'9', ..] => {
            let digit = |digit: &u8| u16::from(digit - b'0');
            (digit(a) * 100 + digit(b) * 10 + digit(c), STATUS + 3)
        }
        digits => return Err(short_of(digits, 3, Rejection::StatusCode)),
    };
    // The space is required even without a phrase. Some servers omit it, which is not ambiguous.
    let (reason, has_space) = match window.get(end) {
        Some(b' ') => (end + 1, true),
        Some(b'\r' | b'\n') => (end, false),
        Some(_) => return Err(Rejection::StatusCode.into()),
        None => return Err(Stop::Partial),
    };
    let reason_end = text_end(window, reason as u32) as usize;
    match &window[reason_end..] {
        [b'\r', b'\n', ..] => {}
        [] | [b'\r'] => return Err(Stop::Partial),
        [b'\n', ..] => return Err(Rejection::BareLineFeed.into()),
        [b'\r', ..] => return Err(Rejection::BareCarriageReturn.into()),
        _ => return Err(Rejection::Reason.into()),
    }
    let line = StatusLine {
        version,
        status,
        reason: Span::of(reason, reason_end),
        has_space,
    };
    Ok((line, reason_end + 2))
}

/// Returns `Partial` if more digits may follow.
#[cold]
fn short_of(digits: &[u8], wanted: usize, rejection: Rejection) -> Stop {
    if digits.len() < wanted && digits.iter().all(u8::is_ascii_digit) {
        Stop::Partial
    } else {
        rejection.into()
    }
}

/// The error for a version and its space.
#[cold]
fn read_version(window: &[u8]) -> Stop {
    let name = b"HTTP/";
    // An error as soon as a byte differs, without waiting for the rest of the line.
    let common = window.len().min(name.len());
    if window[..common] != name[..common] {
        return Rejection::StartLine.into();
    }
    match &window[common..] {
        [] => Stop::Partial,
        [major, ..] if !major.is_ascii_digit() => Rejection::Version.into(),
        [_] | [_, b'.'] => Stop::Partial,
        [_, b'.', minor, ..] if !minor.is_ascii_digit() => Rejection::Version.into(),
        [b'1', b'.', b'0' | b'1'] => Stop::Partial,
        [b'1', b'.', b'0' | b'1', ..] => Rejection::StartLine.into(),
        [_, b'.', ..] => Rejection::VersionNotSupported.into(),
        _ => Rejection::Version.into(),
    }
}
