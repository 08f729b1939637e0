//! The table of a head's fields, with the progress of an incomplete head.

use super::request_line::RequestLine;
use super::status_line::StatusLine;
use crate::http1::field::{ClassSet, Field, FieldClass};

/// The fields of a head, with the progress of an incomplete head.
///
/// One table serves any number of messages in sequence, and allocates nothing once it has held as
/// many fields as they have; it grows to at most
/// [`HeadLimits::fields`](crate::http1::HeadLimits::fields). It belongs to one head from the first
/// call of a parser to the end of that head: a program with one table for many connections must
/// give a connection its own table while a head is [`Partial`](super::Status::Partial).
#[derive(Debug, Default)]
pub struct HeadTable {
    pub(super) fields: Vec<Field>,
    /// Classes that occurred.
    pub(super) seen: ClassSet,
    /// Classes that occurred more than once.
    pub(super) repeated: ClassSet,
    /// True if the length has leading zeros.
    pub(super) is_length_padded: bool,
    /// The start of the first unparsed line; 0 if nothing was parsed.
    pub(super) line: u32,
    /// The position up to which no line feed follows [`line`](Self::line).
    pub(super) searched: u32,
    pub(super) request_line: RequestLine,
    pub(super) status_line: StatusLine,
}

impl HeadTable {
    /// Number of fields that suffices for most heads.
    const FIELDS: usize = 32;

    /// Maximum capacity of a table that is kept: 2 KiB. The capacity grows by doubling.
    const KEPT: usize = 128;

    /// A table with a capacity of 32 fields.
    pub fn new() -> Self {
        Self {
            fields: Vec::with_capacity(Self::FIELDS),
            ..Self::default()
        }
    }

    /// A table with a capacity of `fields`.
    #[cfg(test)]
    pub(crate) fn grown_to(fields: usize) -> Self {
        Self {
            fields: Vec::with_capacity(fields),
            ..Self::default()
        }
    }

    /// The capacity in fields.
    #[cfg(test)]
    pub(crate) fn room(&self) -> usize {
        self.fields.capacity()
    }

    /// The fields in order.
    #[inline]
    pub fn fields(&self) -> &[Field] {
        &self.fields
    }

    /// The classes of the fields.
    #[inline]
    pub fn classes(&self) -> ClassSet {
        self.seen
    }

    /// Returns true if the class has more than one field.
    #[inline]
    pub(in crate::http1) fn is_repeated(&self, class: FieldClass) -> bool {
        self.repeated.contains(class)
    }

    /// Returns true if the length has leading zeros, which some recipients could read as octal.
    #[inline]
    pub(in crate::http1) fn is_length_padded(&self) -> bool {
        self.is_length_padded
    }

    /// Marks the fields of these classes as untrusted, so that they are dropped.
    #[cfg(feature = "server")]
    #[cold]
    pub(crate) fn distrust(&mut self, classes: ClassSet) {
        let mut count = 0;
        for field in &mut self.fields {
            if classes.contains(field.class()) {
                field.set_class(FieldClass::Distrusted);
                count += 1;
            }
        }
        if count == 0 {
            return;
        }
        if count > 1 {
            self.repeated = self.repeated.with(FieldClass::Distrusted);
        }
        self.seen = self.seen.without_all(classes).with(FieldClass::Distrusted);
    }

    /// The first field of a class.
    #[inline]
    pub fn first(&self, class: FieldClass) -> Option<&Field> {
        // Saves the search for most classes.
        if !self.seen.contains(class) {
            return None;
        }
        self.fields.iter().find(|field| field.class() == class)
    }

    /// Returns true if `Cookie` has several lines, which clients should not send in HTTP/1.1 (RFC
    /// 6265 section 5.4) and recipients interpret differently.
    #[cfg(feature = "server")]
    #[inline]
    pub(crate) fn has_crumbs(&self, buffer: &[u8]) -> bool {
        // The count is needed only if credentials repeat, which is rare.
        self.repeated.contains(FieldClass::Credentials) && self.count_cookies(buffer) > 1
    }

    /// The number of `Cookie` lines; the class contains other fields as well.
    #[cfg(feature = "server")]
    #[cold]
    fn count_cookies(&self, buffer: &[u8]) -> usize {
        let is_cookie = |field: &&Field| {
            field.class() == FieldClass::Credentials
                && field.name().get(buffer).eq_ignore_ascii_case(b"cookie")
        };
        self.fields.iter().filter(is_cookie).count()
    }

    /// Clears the table for another head, and keeps the capacity.
    ///
    /// Required only if a head is abandoned while it is [`Partial`](super::Status::Partial).
    #[inline]
    pub fn clear(&mut self) {
        self.fields.clear();
        self.seen = ClassSet::EMPTY;
        self.repeated = ClassSet::EMPTY;
        self.is_length_padded = false;
        self.line = 0;
        self.searched = 0;
    }

    /// Releases capacity that a rare head has needed, for a table that is kept without a head.
    /// Otherwise each kept table might grow permanently.
    #[inline]
    pub(crate) fn trim(&mut self) {
        // A large table would stay in the pool.
        if self.fields.capacity() > Self::KEPT {
            self.shrink();
        }
    }

    #[cold]
    fn shrink(&mut self) {
        self.fields = Vec::with_capacity(Self::FIELDS);
    }

    /// Returns true if a head was begun.
    #[inline]
    pub(in crate::http1) fn is_begun(&self) -> bool {
        self.searched != 0
    }

    /// Returns true if `window` has a line end beyond the bytes that earlier calls have searched.
    #[inline]
    pub(in crate::http1) fn has_further_line(&mut self, window: &[u8]) -> bool {
        let news = window.get(self.searched as usize..).unwrap_or_default();
        if news.contains(&b'\n') {
            return true;
        }
        self.pause(window);
        false
    }

    /// Records that all of `window` was searched.
    #[inline]
    pub(in crate::http1) fn pause(&mut self, window: &[u8]) {
        self.searched = window.len() as u32;
    }

    /// Ends the head. The fields stay until the next call that begins one.
    #[inline]
    pub(in crate::http1) fn end(&mut self) {
        self.line = 0;
        self.searched = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::super::{RequestInfo, Status, parse_response};
    use super::*;
    use crate::http1::HeadLimits;

    /// A table that has held `fields` fields.
    fn used(fields: usize) -> HeadTable {
        let mut table = HeadTable::new();
        let head = format!("HTTP/1.1 200 OK\r\n{}\r\n", "A: b\r\n".repeat(fields));
        let limits = HeadLimits::default().with_fields(1000);
        let parsed = parse_response(head.as_bytes(), RequestInfo::default(), &limits, &mut table);
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
