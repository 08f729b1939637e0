//! Field lines: RFC 9112 section 5.

use super::table::HeadTable;
use crate::http1::Rejection;
use crate::http1::block::{self, Block, SIZE};
use crate::http1::bytes::{byte_at, chunk_at, controls_at, pair_at, text_end, token_end};
use crate::http1::field::{ClassSet, Field, FieldClass, classify, is_imitation};
use crate::http1::span::Span;

/// The reason why parsing stopped.
#[derive(Debug)]
pub(in crate::http1) enum Stop {
    /// More bytes are required.
    Partial,
    /// The section is invalid.
    Rejected(Rejection),
}

impl From<Rejection> for Stop {
    fn from(rejection: Rejection) -> Self {
        Self::Rejected(rejection)
    }
}

/// The kind of a section.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::http1) enum Section {
    Request,
    Response,
    Trailers,
}

/// Parses field lines from `table.line` to the empty line. Returns the end of the section.
///
/// `table.line` is the start of the first incomplete line, so a call with more bytes continues from
/// there.
///
/// Positions in the window are 32-bit numbers: the sum of two cannot overflow, so one comparison
/// proves an access to several bytes to be within bounds.
#[inline]
pub(in crate::http1) fn read_fields(
    window: &[u8],
    most: usize,
    section: Section,
    table: &mut HeadTable,
) -> Result<usize, Stop> {
    // Locals, so that the loop stores nothing into the table but fields.
    let mut line = table.line;
    let mut seen = table.seen;
    let mut repeated = table.repeated;
    let end = loop {
        let parts = match plain_line(window, line) {
            Some(parts) => parts,
            None if pair_at(window, line) == Some(b"\r\n") => break Ok(line as usize + 2),
            None => match read_line(window, line, section) {
                Ok(parts) => {
                    // The fast path accepts no underscore, so only this one looks for it.
                    if parts.name.contains(&b'_') {
                        seen = seen.with(FieldClass::Underscored);
                    }
                    parts
                }
                Err(stop) => break Err(stop),
            },
        };
        if table.fields.len() >= most {
            break Err(Rejection::TooManyFields.into());
        }
        let class = classify(parts.name);
        let only = ClassSet::EMPTY.with(class);
        repeated = repeated.union(seen.intersection(only));
        seen = seen.union(only);
        let length = parts.name.len() as u16;
        let value = Span::new(parts.value, without_blanks(window, &parts));
        table.fields.push(Field::new(line, length, value, class));
        line = parts.end + 2;
    };
    table.line = line;
    table.seen = seen;
    table.repeated = repeated;
    end
}

/// A parsed field line.
struct Line<'w> {
    /// The name, of at most 64 KiB.
    name: &'w [u8],
    /// The start of the value, which may have trailing white space.
    value: u32,
    /// The end of the line.
    end: u32,
}

/// Parses a line of the usual form: a short name of letters and hyphens, a colon and a space, and a
/// value without tabs.
#[inline(always)]
fn plain_line(window: &[u8], line: u32) -> Option<Line<'_>> {
    // A complete section is never shorter: it has a name, a value, and an empty line.
    let begin: &Block = chunk_at(window, line)?;
    let length = block::letters(begin);
    let name = begin.get(..length as usize)?;
    let [b':', b' ', b'!'..=0xff] = chunk_at(window, line + length)? else {
        return None;
    };
    // A line that begins with a colon goes the long way, which rejects it.
    if name.is_empty() {
        return None;
    }
    let value = line + length + 2;
    let end = match chunk_at(window, value) {
        Some(begin) => match block::text(begin, 0) {
            SIZE => controls_at(window, value + SIZE),
            text => value + text,
        },
        None => text_end(window, value),
    };
    // Everything else, such as a tab, goes the long way.
    let is_plain = pair_at(window, end) == Some(b"\r\n");
    is_plain.then_some(Line { name, value, end })
}

/// Parses any line that is not empty.
#[inline(never)]
fn read_line(window: &[u8], line: u32, section: Section) -> Result<Line<'_>, Stop> {
    let name = read_name(window.get(line as usize..).unwrap_or_default(), section)?;
    let value = blanks_end(window, line + name.len() as u32 + 1);
    let end = text_end(window, value);
    if pair_at(window, end) != Some(b"\r\n") {
        return Err(not_an_end(window.get(end as usize..).unwrap_or_default()));
    }
    // A `Field` stores the length of its name in 16 bits.
    if u16::try_from(name.len()).is_err() {
        return Err(Rejection::HeadTooLarge.into());
    }
    Ok(Line { name, value, end })
}

/// The end of the spaces and tabs that begin at `at`.
#[inline]
fn blanks_end(window: &[u8], mut at: u32) -> u32 {
    while let Some(b' ' | b'\t') = byte_at(window, at) {
        at += 1;
    }
    at
}

/// The end of a line's value without trailing spaces and tabs.
#[inline(always)]
fn without_blanks(window: &[u8], line: &Line<'_>) -> u32 {
    match byte_at(window, line.end - 1) {
        Some(b'!'..) => line.end,
        _ => trimmed_end(window, line.value, line.end),
    }
}

#[cold]
fn trimmed_end(window: &[u8], start: u32, mut end: u32) -> u32 {
    while end > start && matches!(byte_at(window, end - 1), Some(b' ' | b'\t')) {
        end -= 1;
    }
    end
}

/// The name at the front of a line, followed by a colon.
#[inline]
fn read_name(line: &[u8], section: Section) -> Result<&[u8], Stop> {
    let (name, behind) = line.split_at(token_end(line, 0));
    match behind {
        // More bytes may complete the name, or the empty line.
        [] | [b'\r'] if name.is_empty() || behind.is_empty() => Err(Stop::Partial),
        [b':', ..] if !name.is_empty() => {
            // Many programs map `-` to `_` in names.
            if section == Section::Request && name.contains(&b'_') && is_imitation(name) {
                return Err(Rejection::Imitation.into());
            }
            Ok(name)
        }
        [b'\r', ..] if name.is_empty() => Err(Rejection::BareCarriageReturn.into()),
        [b' ' | b'\t', ..] if name.is_empty() => Err(Rejection::Folded.into()),
        [b'\n', ..] => Err(Rejection::BareLineFeed.into()),
        _ => Err(Rejection::FieldName.into()),
    }
}

/// The error for bytes that should be a line end.
#[cold]
pub(super) fn not_an_end(bytes: &[u8]) -> Stop {
    match bytes {
        [] | [b'\r'] => Stop::Partial,
        [b'\n', ..] => Rejection::BareLineFeed.into(),
        [b'\r', ..] => Rejection::BareCarriageReturn.into(),
        _ => Rejection::FieldValue.into(),
    }
}
