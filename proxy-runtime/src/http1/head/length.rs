//! The fields about the length of a body: RFC 9112 sections 6.1 to 6.3.

use super::Version;
use super::table::HeadTable;
use crate::http1::Rejection;
use crate::http1::bytes::{TOKEN, all, byte_at, trim};
use crate::http1::field::{Field, FieldClass, is};
use crate::http1::span::Span;

/// The declared length, before the rules of the kind of message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Announced {
    Nothing,
    Length(u64),
    Chunked,
}

#[inline]
pub(super) fn read_length(
    window: &[u8],
    table: &mut HeadTable,
    version: Version,
) -> Result<Announced, Rejection> {
    // The coding first, since it overrides a length (RFC 9112 section 6.3).
    if let Some(coding) = table.first(FieldClass::TransferEncoding) {
        // Some programs join the lines, others read one of them.
        if table.repeated.contains(FieldClass::TransferEncoding) {
            return Err(Rejection::CodingRepeated);
        }
        if has_tabs_around(window, coding) {
            return Err(Rejection::CodingInvalid);
        }
        check_coding(coding.value().get(window))?;
        if version == Version::Http10 {
            return Err(Rejection::CodingInHttp10);
        }
        // Programs disagree about which of the two counts: the classic request smuggling.
        if table.seen.contains(FieldClass::ContentLength) {
            return Err(Rejection::LengthAndCoding);
        }
        return Ok(Announced::Chunked);
    }
    if let Some(length) = table.first(FieldClass::ContentLength) {
        if table.repeated.contains(FieldClass::ContentLength) {
            return Err(Rejection::LengthRepeated);
        }
        if has_tabs_around(window, length) {
            return Err(Rejection::LengthInvalid);
        }
        let value = length.value().get(window);
        // Some recipients read a leading zero as octal, so it is left out later.
        table.is_length_padded = matches!(value, [b'0', _, ..]);
        return parse_length(value).map(Announced::Length);
    }
    Ok(Announced::Nothing)
}

/// Returns true if the white space around the value contains tabs.
///
/// Tabs are `OWS` (RFC 9110 section 5.6.3), but some parsers disagree: llhttp takes `chunked` and a
/// tab for another coding, and finds another end of the body.
#[inline]
fn has_tabs_around(window: &[u8], field: &Field) -> bool {
    let (name, value) = (field.name(), field.value());
    // The usual form has one space before the value, and none behind it.
    let is_plain = name.end() + 2 == value.start()
        && byte_at(window, name.end() + 1) == Some(b' ')
        && byte_at(window, value.end()) == Some(b'\r');
    !is_plain && has_tabs_in(window, name, value)
}

/// The slow path, for white space other than a single space.
#[cold]
fn has_tabs_in(window: &[u8], name: Span, value: Span) -> bool {
    let before = &window[name.end() as usize..value.start() as usize];
    let behind = &window[value.end() as usize..];
    (before != b": " && before.contains(&b'\t'))
        || (behind.first() != Some(&b'\r')
            && behind.iter().find(|byte| **byte != b' ') != Some(&b'\r'))
}

/// Parses `1*DIGIT` of a number that fits into a signed integer.
fn parse_length(value: &[u8]) -> Result<u64, Rejection> {
    let mut length: u64 = 0;
    for byte in value {
        let digit = byte.wrapping_sub(b'0');
        // A tenth of the maximum, times ten and with another digit, fits into 64 bits.
        if digit > 9 || length > MOST / 10 {
            return Err(not_a_length(value));
        }
        length = length * 10 + u64::from(digit);
    }
    if value.is_empty() || length > MOST {
        return Err(Rejection::LengthInvalid);
    }
    Ok(length)
}

/// Maximum declared length of a body.
const MOST: u64 = i64::MAX as u64;

#[cold]
fn not_a_length(value: &[u8]) -> Rejection {
    if value.contains(&b',') {
        Rejection::LengthRepeated
    } else {
        Rejection::LengthInvalid
    }
}

#[inline]
fn check_coding(value: &[u8]) -> Result<(), Rejection> {
    if is(value, b"chunked") {
        Ok(())
    } else {
        Err(not_chunked(value))
    }
}

/// The error for codings other than a single `chunked`.
#[cold]
fn not_chunked(value: &[u8]) -> Rejection {
    let codings = || value.split(|byte| *byte == b',').map(trim);
    let last = codings().count() - 1;
    for (number, coding) in codings().enumerate() {
        // `chunked` may only be the last coding (RFC 9112 section 6.1).
        if !all(coding, TOKEN) || (is(coding, b"chunked") && number < last) {
            return Rejection::CodingInvalid;
        }
    }
    Rejection::CodingUnknown
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lengths_are_digits() {
        for (value, expected) in [
            ("0", Ok(0)),
            ("5", Ok(5)),
            ("0005", Ok(5)),
            ("9223372036854775807", Ok(i64::MAX.unsigned_abs())),
            ("9223372036854775808", Err(Rejection::LengthInvalid)),
            ("18446744073709551621", Err(Rejection::LengthInvalid)),
            ("", Err(Rejection::LengthInvalid)),
            ("+5", Err(Rejection::LengthInvalid)),
            ("-5", Err(Rejection::LengthInvalid)),
            ("0x5", Err(Rejection::LengthInvalid)),
            ("5a", Err(Rejection::LengthInvalid)),
            ("5 5", Err(Rejection::LengthInvalid)),
            ("5.0", Err(Rejection::LengthInvalid)),
            ("1_0", Err(Rejection::LengthInvalid)),
            ("5, 5", Err(Rejection::LengthRepeated)),
            ("5,6", Err(Rejection::LengthRepeated)),
            ("5,", Err(Rejection::LengthRepeated)),
        ] {
            assert_eq!(parse_length(value.as_bytes()), expected, "{value}");
        }
    }

    #[test]
    fn only_chunked_alone_is_a_coding() {
        for (value, expected) in [
            (&b"chunked"[..], Ok(())),
            (b"Chunked", Ok(())),
            (b"CHUNKED", Ok(())),
            (b"xchunked", Err(Rejection::CodingUnknown)),
            (b"gzip", Err(Rejection::CodingUnknown)),
            (b"identity", Err(Rejection::CodingUnknown)),
            (b"gzip, chunked", Err(Rejection::CodingUnknown)),
            (b"chunked, identity", Err(Rejection::CodingInvalid)),
            (b"chunked, chunked", Err(Rejection::CodingInvalid)),
            (b"chunked,", Err(Rejection::CodingInvalid)),
            (b",chunked", Err(Rejection::CodingInvalid)),
            (b"chunked;q=1", Err(Rejection::CodingInvalid)),
            (b"\"chunked\"", Err(Rejection::CodingInvalid)),
            (b"chunked chunked", Err(Rejection::CodingInvalid)),
            (b"\xa0chunked", Err(Rejection::CodingInvalid)),
            (b"", Err(Rejection::CodingInvalid)),
        ] {
            assert_eq!(check_coding(value), expected, "{}", value.escape_ascii());
        }
    }
}
