//! Field lines: RFC 9112 section 5.

use super::table::HeadTable;
use crate::http1::Refusal;
use crate::http1::bytes::{behind_plain_token, behind_text, token_end};
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
    let mut line = window.get(table.line as usize..).unwrap_or_default();
    let mut seen = table.seen;
    let mut repeated = table.repeated;
    let at = |rest: &[u8]| window.len() - rest.len();
    let end = loop {
        let mut behind = behind_plain_token(line);
        let mut value = match behind {
            [b':', value @ ..] if behind.len() != line.len() => value,
            _ => match read_odd_name(line, section) {
                Odd::Name(colon) => {
                    behind = colon;
                    &colon[1..]
                }
                Odd::EmptyLine(rest) => break Ok(at(rest)),
                Odd::Stop(stop) => break Err(stop),
            },
        };
        let name = &line[..line.len() - behind.len()];
        // One space nearly always, and hardly ever more.
        if let [b' ', rest @ ..] = value {
            value = rest;
        }
        if let [b' ' | b'\t', ..] = value {
            value = behind_blanks(value);
        }
        let behind = behind_text(value);
        let [b'\r', b'\n', next @ ..] = behind else {
            break Err(not_an_end(behind));
        };
        let mut text = &value[..value.len() - behind.len()];
        while let [rest @ .., b' ' | b'\t'] = text {
            text = rest;
        }
        let (Ok(length), true) = (u16::try_from(name.len()), table.fields.len() < most) else {
            break Err(too_large(name));
        };
        let class = classify(name);
        let only = ClassSet::EMPTY.with(class);
        repeated = repeated.union(seen.intersection(only));
        seen = seen.union(only);
        let value = Span::of(at(value), at(value) + text.len());
        table
            .fields
            .push(Field::new(at(line) as u32, length, value, class));
        line = next;
    };
    table.line = at(line) as u32;
    table.seen = seen;
    table.repeated = repeated;
    end
}

/// What is left behind spaces and tabs.
#[cold]
fn behind_blanks(mut bytes: &[u8]) -> &[u8] {
    while let [b' ' | b'\t', rest @ ..] = bytes {
        bytes = rest;
    }
    bytes
}

/// Why a line that is well-formed is not taken.
#[cold]
fn too_large(name: &[u8]) -> Stop {
    match u16::try_from(name.len()) {
        Ok(_) => Refusal::TooManyFields.into(),
        Err(_) => Refusal::HeadTooLarge.into(),
    }
}

/// What there is instead of a token without `_` and with a colon.
enum Odd<'a> {
    /// A name all the same; what is left begins with its colon.
    Name(&'a [u8]),
    /// The empty line that ends the section, and what is left behind it.
    EmptyLine(&'a [u8]),
    Stop(Stop),
}

impl From<Refusal> for Odd<'_> {
    fn from(refusal: Refusal) -> Self {
        Self::Stop(refusal.into())
    }
}

/// Reads what is no token without `_` and with a colon.
#[cold]
fn read_odd_name(line: &[u8], section: Section) -> Odd<'_> {
    if let [b'\r', b'\n', rest @ ..] = line {
        return Odd::EmptyLine(rest);
    }
    let (name, behind) = line.split_at(token_end(line, 0));
    match behind {
        [] | [b'\r'] if name.is_empty() || behind.is_empty() => Odd::Stop(Stop::Partial),
        [b':', ..] if !name.is_empty() => match section {
            Section::Request if is_imitation(name) => Refusal::Imitation.into(),
            _ => Odd::Name(behind),
        },
        [b'\r', ..] if name.is_empty() => Refusal::BareCarriageReturn.into(),
        [b' ' | b'\t', ..] if name.is_empty() => Refusal::Folded.into(),
        [b'\n', ..] => Refusal::BareLineFeed.into(),
        _ => Refusal::FieldName.into(),
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
