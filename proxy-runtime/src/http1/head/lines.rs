//! Field lines: RFC 9112 section 5.

use super::table::HeadTable;
use crate::http1::Refusal;
use crate::http1::bytes::{plain_token_end, text_end, token_end};
use crate::http1::field::{ClassSet, Field, classify, is_imitation};
use crate::http1::span::Span;

/// Why reading stopped.
#[derive(Debug)]
pub(in crate::http1) enum Stop {
    /// There are no more bytes.
    Partial,
    /// There is no use in more bytes.
    Refused(Refusal),
}

impl From<Refusal> for Stop {
    fn from(refusal: Refusal) -> Self {
        Self::Refused(refusal)
    }
}

/// Which kind of section it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::http1) enum Section {
    Request,
    Response,
    Trailers,
}

/// Reads field lines from `table.line` on, up to and with the empty line; returns where it ends.
///
/// `table.line` is where the first line begins that is not complete, so that a call with more bytes goes on from there.
#[inline]
pub(in crate::http1) fn read_fields(
    window: &[u8],
    most: usize,
    section: Section,
    table: &mut HeadTable,
) -> Result<usize, Stop> {
    let mut start = table.line as usize;
    let mut seen = table.seen;
    let mut repeated = table.repeated;
    let end = loop {
        match read_line(window, start, section) {
            Ok((field, end)) => {
                if table.fields.len() >= most {
                    break Err(Refusal::TooManyFields.into());
                }
                let class = ClassSet::EMPTY.with(field.class());
                repeated = repeated.union(seen.intersection(class));
                seen = seen.union(class);
                table.fields.push(field);
                start = end;
            }
            Err(Line::Empty) => break Ok(start + 2),
            Err(Line::Stop(stop)) => break Err(stop),
        }
    };
    table.line = start as u32;
    table.seen = seen;
    table.repeated = repeated;
    end
}

/// What is there instead of a field.
enum Line {
    /// The empty line that ends the section.
    Empty,
    Stop(Stop),
}

impl From<Refusal> for Line {
    fn from(refusal: Refusal) -> Self {
        Self::Stop(refusal.into())
    }
}

/// Reads the line that begins at `start`, and returns it with where the next one begins.
#[inline(always)]
fn read_line(window: &[u8], start: usize, section: Section) -> Result<(Field, usize), Line> {
    let mut colon = plain_token_end(window, start);
    if window.get(colon) != Some(&b':') || colon == start {
        colon = read_odd_name(window, start, section)?;
    }
    let mut value = colon + 1;
    if window.get(value) == Some(&b' ') {
        value += 1;
    }
    while let Some(b' ' | b'\t') = window.get(value) {
        value += 1;
    }
    let end = text_end(window, value);
    let Some(b"\r\n") = window.get(end..end + 2) else {
        return Err(Line::Stop(not_an_end(&window[end..])));
    };
    let mut value_end = end;
    while value_end > value && matches!(window[value_end - 1], b' ' | b'\t') {
        value_end -= 1;
    }
    let name = &window[start..colon];
    let Ok(name_length) = u16::try_from(name.len()) else {
        return Err(Refusal::HeadTooLarge.into());
    };
    let value = Span::of(value, value_end);
    let field = Field::new(start as u32, name_length, value, classify(name));
    Ok((field, end + 2))
}

/// Reads what is no token without `_` and with a colon: returns where its colon is, if it is a name all the same.
#[cold]
fn read_odd_name(window: &[u8], start: usize, section: Section) -> Result<usize, Line> {
    let end = token_end(window, start);
    let byte = match window.get(end) {
        None => return Err(Line::Stop(Stop::Partial)),
        Some(byte) => *byte,
    };
    match byte {
        b':' if end > start => {
            if section == Section::Request && is_imitation(&window[start..end]) {
                return Err(Refusal::Imitation.into());
            }
            Ok(end)
        }
        b'\r' if end == start => Err(match window.get(start + 1) {
            Some(b'\n') => Line::Empty,
            Some(_) => Refusal::BareCarriageReturn.into(),
            None => Line::Stop(Stop::Partial),
        }),
        b' ' | b'\t' if end == start => Err(Refusal::Folded.into()),
        b'\n' => Err(Refusal::BareLineFeed.into()),
        _ => Err(Refusal::FieldName.into()),
    }
}

/// What is wrong with bytes that should be the end of a line.
#[cold]
pub(super) fn not_an_end(bytes: &[u8]) -> Stop {
    match bytes {
        [] | [b'\r'] => Stop::Partial,
        [b'\n', ..] => Refusal::BareLineFeed.into(),
        [b'\r', ..] => Refusal::BareCarriageReturn.into(),
        _ => Refusal::FieldValue.into(),
    }
}
