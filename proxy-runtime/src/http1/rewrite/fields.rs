//! Lines that are copied as they came.

use super::operation::{FieldName, Removed};
use crate::http1::field::{ClassSet, Field, FieldClass};
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
    #[inline]
    fn has(self, buffer: &[u8], field: &Field) -> bool {
        match self {
            Self::All => true,
            _ if field.class() == FieldClass::ContentLength => true,
            Self::None => false,
            Self::Only(names) => names.iter().any(|name| name.is_of(buffer, field)),
        }
    }

    /// Whether the field of this name is sent on.
    #[cfg(feature = "server")]
    #[inline]
    pub(super) fn has_name(self, name: &[u8]) -> bool {
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
pub(super) struct Choice<'a> {
    pub(super) dropped: ClassSet,
    pub(super) removed: Removed<'a>,
    pub(super) copied: Copied<'a>,
}

impl Choice<'_> {
    /// Classes of which a line may be left out.
    #[inline]
    fn doubtful(&self) -> ClassSet {
        match self.copied {
            Copied::All => self.dropped.union(self.removed.classes()),
            Copied::None | Copied::Only(_) => ClassSet::ALL,
        }
    }

    pub(super) fn has(&self, buffer: &[u8], field: &Field) -> bool {
        !self.dropped.contains(field.class())
            && !self.removed.has(buffer, field)
            && self.copied.has(buffer, field)
    }
}

/// Copies the lines that are chosen, neighbours at once, each with the CRLF in front of it. `end` is where the last line ends,
/// without its CRLF. In front of the first line there must be one.
#[inline]
pub(super) fn copy_fields(
    buffer: &[u8],
    table: &HeadTable,
    end: usize,
    choice: &Choice<'_>,
    out: &mut Vec<u8>,
) {
    // Lines follow each other without a gap, so a line ends where the next one begins.
    let line = |field: &Field| field.name().start() as usize - 2;
    let Some(first) = table.fields().first() else {
        return;
    };
    let mut from = line(first);
    let doubtful = choice.doubtful();
    if !table.classes().intersection(doubtful).is_empty() {
        let mut is_copied = true;
        for field in table.fields() {
            let stays = !doubtful.contains(field.class()) || choice.has(buffer, field);
            if stays != is_copied {
                let start = line(field);
                if is_copied {
                    out.extend_from_slice(&buffer[from..start]);
                }
                from = start;
                is_copied = stays;
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
/// are fields that concern a connection, that attribute or authorise a request, or that say how to read the content.
///
/// # Panics
///
/// If `section` is not the one that was tracked.
pub fn write_trailers(section: &[u8], table: &HeadTable, out: &mut Vec<u8>) {
    for (number, field) in table.fields().iter().enumerate() {
        if ClassSet::DROPPED_FROM_TRAILERS.contains(field.class()) {
            continue;
        }
        let next = table.fields().get(number + 1);
        let end = next.map_or(section.len() - 2, |next| next.name().start() as usize);
        out.extend_from_slice(&section[field.name().start() as usize..end]);
    }
    out.extend_from_slice(b"\r\n");
}

/// Whether the length has zeros in front, which some recipient could read as octal. It is written anew then.
#[inline]
pub(super) fn has_padded_length(buffer: &[u8], table: &HeadTable) -> bool {
    let length = table.first(FieldClass::ContentLength);
    length.is_some_and(|field| matches!(field.value().get(buffer), [b'0', _, ..]))
}

/// Writes a `Content-Length`.
#[cold]
pub(super) fn write_length(length: u64, out: &mut Vec<u8>) {
    super::put(
        out,
        &[b"\r\nContent-Length: ", length.to_string().as_bytes()],
    );
}
