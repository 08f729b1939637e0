//! Where the fields of a head are, and how far a head that comes in pieces has been read.

use super::request_line::RequestLine;
use super::status_line::StatusLine;
use crate::http1::field::{ClassSet, Field, FieldClass};

/// The fields of a head, and how far a head that comes in pieces has been read.
///
/// One serves any number of messages, one after the other, and allocates nothing once it has held as many fields as they
/// have; it grows to [`HeadLimits::fields`](crate::http1::HeadLimits::fields) at most. It belongs to one head from the
/// first call of a parser to its end: a program with one table for many connections gives a connection a table of its
/// own while a head is [`Partial`](super::Status::Partial).
#[derive(Debug, Default)]
pub struct HeadTable {
    pub(super) fields: Vec<Field>,
    /// Classes that were met.
    pub(super) seen: ClassSet,
    /// Classes that were met more than once.
    pub(super) repeated: ClassSet,
    /// The length has zeros in front.
    pub(super) is_length_padded: bool,
    /// Where the first line begins that has not been read; 0 when nothing has.
    pub(super) line: u32,
    /// Up to where there is no line feed behind [`line`](Self::line).
    pub(super) searched: u32,
    pub(super) request_line: RequestLine,
    pub(super) status_line: StatusLine,
}

impl HeadTable {
    /// What most heads get along with.
    const FIELDS: usize = 32;

    /// What a table that is kept for other heads may have room for: 2 KiB. It grows by doubling.
    const KEPT: usize = 128;

    /// A table with room for 32 fields.
    pub fn new() -> Self {
        Self {
            fields: Vec::with_capacity(Self::FIELDS),
            ..Self::default()
        }
    }

    /// A table that has held a head of so many fields.
    #[cfg(test)]
    pub(crate) fn grown_to(fields: usize) -> Self {
        Self {
            fields: Vec::with_capacity(fields),
            ..Self::default()
        }
    }

    /// How many fields it has room for.
    #[cfg(test)]
    pub(crate) fn room(&self) -> usize {
        self.fields.capacity()
    }

    /// The fields, in order.
    #[inline]
    pub fn fields(&self) -> &[Field] {
        &self.fields
    }

    /// The classes of the fields.
    #[inline]
    pub fn classes(&self) -> ClassSet {
        self.seen
    }

    /// Whether the class has more than one field.
    #[inline]
    pub(in crate::http1) fn is_repeated(&self, class: FieldClass) -> bool {
        self.repeated.contains(class)
    }

    /// Whether the length has zeros in front, which some recipient could read as octal.
    #[inline]
    pub(in crate::http1) fn is_length_padded(&self) -> bool {
        self.is_length_padded
    }

    /// Has the fields that are [`XForwarded`](FieldClass::XForwarded) left out of what is made of the head.
    #[cfg(feature = "server")]
    #[cold]
    pub(crate) fn distrust(&mut self) {
        for field in &mut self.fields {
            if field.class() == FieldClass::XForwarded {
                field.set_class(FieldClass::Distrusted);
            }
        }
        if self.repeated.contains(FieldClass::XForwarded) {
            self.repeated = self.repeated.with(FieldClass::Distrusted);
        }
        self.seen = self
            .seen
            .without(FieldClass::XForwarded)
            .with(FieldClass::Distrusted);
    }

    /// The first field of a class.
    #[inline]
    pub fn first(&self, class: FieldClass) -> Option<&Field> {
        if !self.seen.contains(class) {
            return None;
        }
        self.fields.iter().find(|field| field.class() == class)
    }

    /// Whether `Cookie` has several lines, which no client should send in HTTP/1.1 (RFC 6265 section 5.4) and not all
    /// recipients read alike.
    #[cfg(feature = "server")]
    #[inline]
    pub(crate) fn has_crumbs(&self, buffer: &[u8]) -> bool {
        self.repeated.contains(FieldClass::Credentials) && self.count_cookies(buffer) > 1
    }

    /// The class has other fields as well.
    #[cfg(feature = "server")]
    #[cold]
    fn count_cookies(&self, buffer: &[u8]) -> usize {
        let is_cookie = |field: &&Field| {
            field.class() == FieldClass::Credentials
                && field.name().get(buffer).eq_ignore_ascii_case(b"cookie")
        };
        self.fields.iter().filter(is_cookie).count()
    }

    /// Forgets everything, to begin with another head. Keeps the room.
    ///
    /// Only needed when a head is given up while it is [`Partial`](super::Status::Partial).
    #[inline]
    pub fn clear(&mut self) {
        self.fields.clear();
        self.seen = ClassSet::EMPTY;
        self.repeated = ClassSet::EMPTY;
        self.is_length_padded = false;
        self.line = 0;
        self.searched = 0;
    }

    /// Gives back the room that only an odd head has needed. For a table that is kept without a head: each of those may have
    /// met one, and for good.
    #[inline]
    pub(crate) fn trim(&mut self) {
        if self.fields.capacity() > Self::KEPT {
            self.shrink();
        }
    }

    #[cold]
    fn shrink(&mut self) {
        self.fields = Vec::with_capacity(Self::FIELDS);
    }

    /// Whether a head has been begun.
    #[inline]
    pub(in crate::http1) fn is_begun(&self) -> bool {
        self.searched != 0
    }

    /// Whether a line has ended that was not complete at the last call. Looks at no byte twice.
    #[inline]
    pub(in crate::http1) fn has_further_line(&mut self, window: &[u8]) -> bool {
        let news = window.get(self.searched as usize..).unwrap_or_default();
        if news.contains(&b'\n') {
            return true;
        }
        self.pause(window);
        false
    }

    /// Remembers that all of `window` was looked at.
    #[inline]
    pub(in crate::http1) fn pause(&mut self, window: &[u8]) {
        self.searched = window.len() as u32;
    }

    /// Begins with the next head at the next call; the fields stay until then.
    #[inline]
    pub(in crate::http1) fn end(&mut self) {
        self.line = 0;
        self.searched = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Asked, Status, parse_response};
    use super::*;
    use crate::http1::HeadLimits;

    /// A table that has held so many fields.
    fn used(fields: usize) -> HeadTable {
        let mut table = HeadTable::new();
        let head = format!("HTTP/1.1 200 OK\r\n{}\r\n", "A: b\r\n".repeat(fields));
        let limits = HeadLimits::default().with_fields(1000);
        let parsed = parse_response(head.as_bytes(), Asked::default(), &limits, &mut table);
        assert!(matches!(parsed, Ok(Status::Complete(_))), "{parsed:?}");
        assert_eq!(table.fields().len(), fields);
        table
    }

    #[test]
    fn only_the_room_for_an_odd_head_is_given_back() {
        for (fields, kept) in [(1, 32), (32, 32), (100, 128), (128, 128)] {
            let mut table = used(fields);
            table.trim();
            assert_eq!(table.room(), kept, "{fields}");
        }
        for fields in [129, 1000] {
            let mut table = used(fields);
            assert!(table.room() > HeadTable::KEPT);
            table.trim();
            assert_eq!(table.room(), HeadTable::FIELDS, "{fields}");
        }
    }
}
