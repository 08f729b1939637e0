//! The target of a request in its four forms: RFC 9112 section 3.2.

use super::Method;
use super::authority::authority_end;
use super::lines::Stop;
use crate::http1::Rejection;
use crate::http1::bytes::{path_end, query_end};
use crate::http1::span::Span;

/// The form of a target (RFC 9112 section 3.2).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum TargetForm {
    /// A path, perhaps with a query: section 3.2.1.
    #[default]
    Origin,
    /// A whole URL, as sent to a proxy: section 3.2.2. Its authority overrides `Host`.
    Absolute,
    /// Host and port, for `CONNECT` only: section 3.2.3.
    Authority,
    /// `*`, for `OPTIONS` only: section 3.2.4. A URL without path and query means the same.
    Asterisk,
}

/// The parts of a target.
#[derive(Clone, Copy, Debug, Default)]
pub(in crate::http1) struct Target {
    pub(in crate::http1) form: TargetForm,
    /// True if the path contains neither `.` nor `%`.
    pub(in crate::http1) is_plain: bool,
    pub(in crate::http1) has_query: bool,
    pub(in crate::http1) whole: Span,
    /// Empty unless the target has an authority.
    pub(in crate::http1) authority: Span,
    /// Empty in an absolute target without a path.
    pub(in crate::http1) path: Span,
    /// The query without `?`.
    pub(in crate::http1) query: Span,
}

/// Parses the target that begins at `start` into `target`. Returns its end, at a space.
#[inline]
pub(super) fn read_target(
    line: &[u8],
    start: usize,
    method: Method,
    target: &mut Target,
) -> Result<usize, Stop> {
    *target = Target::default();
    match line.get(start) {
        Some(b'/') if method != Method::Connect => read_path(line, start, start, target),
        Some(_) => read_other(line, start, method, target),
        None => Err(Stop::Partial),
    }
}

/// Parses path and query, up to a space.
#[inline]
fn read_path(line: &[u8], whole: usize, start: usize, target: &mut Target) -> Result<usize, Stop> {
    let (mut end, is_plain) = path_end(line, start);
    target.is_plain = is_plain;
    target.path = Span::of(start, end);
    if let Some(b'?') = line.get(end) {
        let query = end + 1;
        end = query_end(line, query);
        target.query = Span::of(query, end);
        target.has_query = true;
    }
    target.whole = Span::of(whole, end);
    match line.get(end) {
        Some(b' ') => Ok(end),
        Some(byte) => Err(not_in_target(*byte).into()),
        None => Err(Stop::Partial),
    }
}

/// Parses a target that is no path.
#[cold]
fn read_other(
    line: &[u8],
    start: usize,
    method: Method,
    target: &mut Target,
) -> Result<usize, Stop> {
    let rest = &line[start..];
    // The whole target is required, since its form depends on its end.
    let end = start + query_end(rest, 0);
    let stop = match line.get(end) {
        Some(b' ') if end > start => None,
        Some(b' ') => Some(Rejection::StartLine),
        Some(byte) => Some(not_in_target(*byte)),
        None => return Err(Stop::Partial),
    };
    if let Some(rejection) = stop {
        return Err(rejection.into());
    }
    let whole = Span::of(start, end);
    let bytes = &line[start..end];
    if method == Method::Connect {
        // CONNECT requires a port (RFC 9110 section 9.3.6).
        let has_port = bytes.contains(&b':') && bytes.last().is_some_and(u8::is_ascii_digit);
        if authority_end(bytes) != Some(bytes.len()) || !has_port {
            return Err(Rejection::ConnectTarget.into());
        }
        target.form = TargetForm::Authority;
        target.whole = whole;
        target.authority = whole;
        return Ok(end);
    }
    if bytes == b"*" {
        if method != Method::Options {
            return Err(Rejection::TargetForm.into());
        }
        target.form = TargetForm::Asterisk;
        target.whole = whole;
        target.path = whole;
        return Ok(end);
    }
    read_absolute(line, start, method, target)
}

fn read_absolute(
    line: &[u8],
    start: usize,
    method: Method,
    target: &mut Target,
) -> Result<usize, Stop> {
    let rest = &line[start..];
    // Schemes are compared ignoring case (RFC 3986 section 3.1).
    let scheme = match rest {
        _ if begins_with(rest, b"http://") => 7,
        _ if begins_with(rest, b"https://") => 8,
        _ => return Err(Rejection::TargetForm.into()),
    };
    let authority = start + scheme;
    let Some(length) = authority_end(&line[authority..]) else {
        return Err(Rejection::TargetAuthority.into());
    };
    let path = authority + length;
    if !matches!(line.get(path), Some(b'/' | b'?' | b' ')) {
        return Err(Rejection::TargetAuthority.into());
    }
    target.form = TargetForm::Absolute;
    target.authority = Span::of(authority, path);
    let end = read_path(line, start, path, target)?;
    // OPTIONS for an absolute target without a path means `*` (RFC 9112 section 3.2.4).
    if method == Method::Options && target.path.is_empty() && !target.has_query {
        target.form = TargetForm::Asterisk;
    }
    Ok(end)
}

fn begins_with(bytes: &[u8], prefix: &[u8]) -> bool {
    bytes
        .get(..prefix.len())
        .is_some_and(|begin| begin.eq_ignore_ascii_case(prefix))
}

/// The error for a byte that ends a target and is no space.
#[cold]
fn not_in_target(byte: u8) -> Rejection {
    match byte {
        // The version is missing, as in HTTP/0.9.
        b'\r' | b'\n' | b'\t' => Rejection::StartLine,
        _ => Rejection::TargetByte,
    }
}
