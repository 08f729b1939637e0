//! Field lines: RFC 9112 section 5.

use super::table::HeadTable;
use crate::http1::Refusal;
use crate::http1::bytes::{byte_at, letters_end, pair_at, text_end, token_end};
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
///
/// Lines are read by their places in the window, which are numbers of 32 bits: a sum of two of them cannot overflow, so that
/// one comparison proves a look at several bytes to be within bounds.
#[inline]
pub(in crate::http1) fn read_fields(
    window: &[u8],
    most: usize,
    section: Section,
    table: &mut HeadTable,
) -> Result<usize, Stop> {
    let mut line = table.line;
    let mut seen = table.seen;
    let mut repeated = table.repeated;
    let end = loop {
        let mut colon = letters_end(window, line);
        if colon == line || byte_at(window, colon) != Some(b':') {
            if colon == line && pair_at(window, line) == Some(b"\r\n") {
                break Ok(line as usize + 2);
            }
            match read_odd_name(window, line, section) {
                Ok(end) => colon = end,
                Err(stop) => break Err(stop),
            }
        }
        // One space nearly always, and hardly ever more.
        let value = match pair_at(window, colon + 1) {
            Some([b' ', b'!'..=0xff]) => colon + 2,
            Some([b'!'..=0xff, _]) => colon + 1,
            _ => blanks_end(window, colon + 1),
        };
        let behind = text_end(window, value);
        if pair_at(window, behind) != Some(b"\r\n") {
            break Err(not_an_end(
                window.get(behind as usize..).unwrap_or_default(),
            ));
        }
        let text = without_blanks(window, value, behind);
        let name = window
            .get(line as usize..colon as usize)
            .unwrap_or_default();
        let Ok(length) = u16::try_from(name.len()) else {
            break Err(Refusal::HeadTooLarge.into());
        };
        if table.fields.len() >= most {
            break Err(Refusal::TooManyFields.into());
        }
        let class = classify(name);
        let only = ClassSet::EMPTY.with(class);
        repeated = repeated.union(seen.intersection(only));
        seen = seen.union(only);
        let value = Span::new(value, text);
        table.fields.push(Field::new(line, length, value, class));
        line = behind + 2;
    };
    table.line = line;
    table.seen = seen;
    table.repeated = repeated;
    end
}

/// Where spaces and tabs end that begin at `at`.
#[cold]
fn blanks_end(window: &[u8], mut at: u32) -> u32 {
    while let Some(b' ' | b'\t') = byte_at(window, at) {
        at += 1;
    }
    at
}

/// Where a value ends between `start` and `end`, without the spaces and tabs behind it.
#[inline(always)]
fn without_blanks(window: &[u8], start: u32, end: u32) -> u32 {
    match end.checked_sub(1).and_then(|last| byte_at(window, last)) {
        Some(b'!'..) => end,
        _ => trimmed_end(window, start, end),
    }
}

#[cold]
fn trimmed_end(window: &[u8], start: u32, mut end: u32) -> u32 {
    while end > start && matches!(byte_at(window, end - 1), Some(b' ' | b'\t')) {
        end -= 1;
    }
    end
}

/// Reads what is no name of letters and hyphens alone that ends at a colon, and returns where its colon is.
#[cold]
fn read_odd_name(window: &[u8], at: u32, section: Section) -> Result<u32, Stop> {
    let line = window.get(at as usize..).unwrap_or_default();
    let (name, behind) = line.split_at(token_end(line, 0));
    match behind {
        [] | [b'\r'] if name.is_empty() || behind.is_empty() => Err(Stop::Partial),
        [b':', ..] if !name.is_empty() => {
            // Many programs take `_` for `-` in names.
            if section == Section::Request && name.contains(&b'_') && is_imitation(name) {
                return Err(Refusal::Imitation.into());
            }
            Ok(at + name.len() as u32)
        }
        [b'\r', ..] if name.is_empty() => Err(Refusal::BareCarriageReturn.into()),
        [b' ' | b'\t', ..] if name.is_empty() => Err(Refusal::Folded.into()),
        [b'\n', ..] => Err(Refusal::BareLineFeed.into()),
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
