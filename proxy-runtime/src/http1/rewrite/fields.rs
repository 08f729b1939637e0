//! Lines that are copied as they came.

use super::operation::{Changes, FieldName};
use crate::http1::field::{ClassSet, Field, FieldClass, is_dropped_from_trailers};
use crate::http1::head::HeadTable;

/// Which of the received fields are sent on, if nothing else speaks against it.
#[derive(Clone, Copy, Debug, Default)]
pub enum Copied<'a> {
    /// All of them.
    #[default]
    All,
    /// None but what the body needs.
    None,
    /// Those of these names, and what the body needs.
    Only(&'a [FieldName]),
}

impl Copied<'_> {
    /// The classes among `dropped` that are left out all the same where fields are named: a field that concerns a connection
    /// may be sent on if a route names it.
    #[inline]
    pub(super) fn dropping(self, dropped: ClassSet) -> ClassSet {
        match self {
            Self::All | Self::None => dropped,
            Self::Only(_) => dropped.without(FieldClass::HopByHop),
        }
    }

    #[inline]
    pub(super) fn has(self, buffer: &[u8], field: &Field) -> bool {
        match self {
            Self::All => true,
            _ if field.class() == FieldClass::ContentLength => true,
            Self::None => false,
            Self::Only(names) => names.iter().any(|name| name.is_of(buffer, field)),
        }
    }

    /// Whether the field of this name is sent on.
    #[inline]
    pub(crate) fn has_name(self, name: &[u8]) -> bool {
        match self {
            Self::All => true,
            Self::None => false,
            Self::Only(names) => names
                .iter()
                .any(|only| only.as_bytes().eq_ignore_ascii_case(name)),
        }
    }
}

/// Which lines are left out.
#[derive(Clone, Copy, Debug)]
pub(super) struct Choice<'a, C> {
    pub(super) dropped: ClassSet,
    pub(super) changes: &'a C,
    pub(super) copied: Copied<'a>,
}

impl<C: Changes> Choice<'_, C> {
    /// Classes of which a line may be left out.
    #[inline]
    fn doubtful(&self) -> ClassSet {
        match self.copied {
            Copied::All => self.dropped.union(self.changes.classes()),
            Copied::None | Copied::Only(_) => ClassSet::ALL,
        }
    }

    pub(super) fn has(&self, buffer: &[u8], field: &Field) -> bool {
        !self.dropped.contains(field.class())
            && !self.changes.leaves_out(buffer, field)
            && self.copied.has(buffer, field)
    }
}

/// Where the first line begins, or else the end of the section, with the CRLF in front of it. `end` is where the last line
/// ends, without its CRLF.
#[inline]
pub(super) fn first_line(table: &HeadTable, end: usize) -> usize {
    table.fields().first().map_or(end, line_of)
}

/// Lines follow each other without a gap, so a line ends where the next one begins: in front of the CRLF between them.
#[inline]
fn line_of(field: &Field) -> usize {
    field.name().start() as usize - 2
}

/// Copies what stands between `from` and `end` but for the lines that are not chosen, neighbours at once, each with the CRLF in
/// front of it. `from` is not behind the first line, `end` is where the last line ends, without its CRLF.
#[inline]
pub(super) fn copy_fields<C: Changes>(
    buffer: &[u8],
    table: &HeadTable,
    (mut from, end): (usize, usize),
    choice: &Choice<'_, C>,
    out: &mut Vec<u8>,
) {
    // Of which a line may be left out that has not been met.
    let mut doubtful = table.classes().intersection(choice.doubtful());
    if !doubtful.is_empty() {
        let mut is_copied = true;
        for field in table.fields() {
            let class = field.class();
            let mut stays = true;
            if doubtful.contains(class) {
                stays = choice.has(buffer, field);
                if !table.is_repeated(class) {
                    doubtful = doubtful.without(class);
                }
            }
            if stays != is_copied {
                let start = line_of(field);
                if is_copied && start > from {
                    out.extend_from_slice(&buffer[from..start]);
                }
                from = start;
                is_copied = stays;
            }
            if is_copied && doubtful.is_empty() {
                break;
            }
        }
        if !is_copied {
            return;
        }
    }
    out.extend_from_slice(&buffer[from..end]);
}

/// Writes the trailers that may be sent on, and the empty line that ends the body.
///
/// `section` is the trailer section as [`Progress`](crate::http1::Progress) tells, `table` the table with its fields. Left out
/// are fields that concern a connection, that attribute or authorise a request, or that say how to read the content, and those
/// that some programs take for one of these.
///
/// # Panics
///
/// If `section` is not the one that was tracked.
pub fn write_trailers(section: &[u8], table: &HeadTable, out: &mut Vec<u8>) {
    for (number, field) in table.fields().iter().enumerate() {
        if is_dropped_from_trailers(field.name().get(section), field.class()) {
            continue;
        }
        let next = table.fields().get(number + 1);
        let end = next.map_or(section.len() - 2, |next| next.name().start() as usize);
        out.extend_from_slice(&section[field.name().start() as usize..end]);
    }
    out.extend_from_slice(b"\r\n");
}

/// Writes a `Content-Length`.
#[cold]
pub(super) fn write_length(length: u64, out: &mut Vec<u8>) {
    super::put(
        out,
        &[b"\r\nContent-Length: ", length.to_string().as_bytes()],
    );
}
