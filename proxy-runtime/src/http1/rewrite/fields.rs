//! Lines that are copied unchanged.

use super::operation::{Changes, FieldName};
use crate::http1::field::{ClassSet, Field, FieldClass, is_dropped_from_trailers};
use crate::http1::head::HeadTable;

/// The received fields that are forwarded, unless another rule removes them.
#[derive(Clone, Copy, Debug, Default)]
pub enum Copied<'a> {
    /// All of them.
    #[default]
    All,
    /// No fields except those that the body needs.
    None,
    /// Fields with these names, and those that the body needs.
    Only(&'a [FieldName]),
}

impl Copied<'_> {
    /// Returns the classes of `dropped` that are removed in any case. A hop-by-hop field may be forwarded if a route
    /// names it.
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
            // The body is sent with its length, whatever a route copies.
            _ if field.class() == FieldClass::ContentLength => true,
            Self::None => false,
            Self::Only(names) => names.iter().any(|name| name.is_of(buffer, field)),
        }
    }

    /// Returns true if the field with this name is forwarded.
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

/// The rules for leaving out lines.
#[derive(Clone, Copy, Debug)]
pub(super) struct Choice<'a, C> {
    pub(super) dropped: ClassSet,
    pub(super) changes: &'a C,
    pub(super) copied: Copied<'a>,
}

impl<C: Changes> Choice<'_, C> {
    /// The classes with lines that may be left out.
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

/// Returns the position of the first line, at the CRLF before it; without lines, `end`. `end` is the end of the last
/// line, before its CRLF.
#[inline]
pub(super) fn first_line(table: &HeadTable, end: usize) -> usize {
    table.fields().first().map_or(end, line_of)
}

/// Returns the position of a line, at the CRLF before it. Lines have no gaps, so the previous line ends there.
#[inline]
fn line_of(field: &Field) -> usize {
    field.name().start() as usize - 2
}

/// Copies the bytes between `from` and `end` without the lines that `choice` leaves out, each line with the CRLF
/// before it. Adjacent lines are copied together. `from` is at or before the first line, `end` is the end of the last
/// line, before its CRLF.
#[inline]
pub(super) fn copy_fields<C: Changes>(
    buffer: &[u8],
    table: &HeadTable,
    (mut from, end): (usize, usize),
    choice: &Choice<'_, C>,
    out: &mut Vec<u8>,
) {
    // The classes that may have further lines to leave out. Once it is empty, the rest is copied in one piece.
    let mut doubtful = table.classes().intersection(choice.doubtful());
    if !doubtful.is_empty() {
        let mut is_copied = true;
        for field in table.fields() {
            let class = field.class();
            let mut stays = true;
            if doubtful.contains(class) {
                stays = choice.has(buffer, field);
                // The only line of the class has been seen.
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

/// Writes the trailers that may be forwarded, and the empty line that ends the body.
///
/// `section` is the trailer section that [`Progress`](crate::http1::Progress) names, `table` has its fields. Left out
/// are fields about the connection, about the origin or authorisation of a request, and about the processing of
/// content, and those that programs may confuse with these.
///
/// # Panics
///
/// If `section` is not the one that was tracked.
pub fn write_trailers(section: &[u8], table: &HeadTable, out: &mut Vec<u8>) {
    for (number, field) in table.fields().iter().enumerate() {
        if is_dropped_from_trailers(field.name().get(section), field.class()) {
            continue;
        }
        // A line ends where the next one begins.
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
