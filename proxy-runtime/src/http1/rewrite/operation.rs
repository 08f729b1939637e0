//! Compiled changes of header fields.

use http::HeaderValue;

use crate::http1::bytes::{TOKEN, all, is_text, trim};
use crate::http1::field::{ClassSet, Field, FieldClass, classify};

/// The name of a field, prepared for writing and comparing. Made when a route is compiled.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FieldName {
    /// CRLF, the name, a colon and a space.
    prefix: Box<[u8]>,
    class: FieldClass,
}

impl FieldName {
    /// Prepares a name, which is written as given. `None` if it is no token (RFC 9110 section 5.1).
    pub fn new(name: &str) -> Option<Self> {
        // A `Field` stores the length of its name in 16 bits.
        let is_name = all(name.as_bytes(), TOKEN) && u16::try_from(name.len()).is_ok();
        is_name.then(|| Self {
            prefix: [b"\r\n", name.as_bytes(), b": "].concat().into(),
            class: classify(name.as_bytes()),
        })
    }

    /// The class of the field.
    #[inline]
    pub fn class(&self) -> FieldClass {
        self.class
    }

    /// Returns the name in the case in which it is written.
    #[inline]
    pub fn as_bytes(&self) -> &[u8] {
        &self.prefix[2..self.prefix.len() - 2]
    }

    /// Appends a line of this name, which begins with the CRLF in front of it.
    #[inline]
    pub(crate) fn write_line(&self, value: FieldValue<'_>, out: &mut Vec<u8>) {
        out.extend_from_slice(&self.prefix);
        out.extend_from_slice(value.0);
    }

    /// Returns true if `field` has this name.
    #[inline]
    pub(crate) fn is_of(&self, buffer: &[u8], field: &Field) -> bool {
        // A class may have several names, so the bytes are compared, too.
        field.class() == self.class
            && field.name().len() as usize == self.prefix.len() - 4
            && field
                .name()
                .get(buffer)
                .eq_ignore_ascii_case(self.as_bytes())
    }

    /// Returns true if both are the same name, ignoring case.
    pub(crate) fn is_same(&self, other: &Self) -> bool {
        self.class == other.class && self.as_bytes().eq_ignore_ascii_case(other.as_bytes())
    }
}

/// The value of a field, without line breaks and NUL, which could end the field.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FieldValue<'a>(&'a [u8]);

impl<'a> FieldValue<'a> {
    /// Checks a value, and trims white space. `None` if it has a control character (RFC 9110 section 5.5).
    #[inline]
    pub fn new(value: &'a [u8]) -> Option<Self> {
        is_text(value).then(|| Self(trim(value)))
    }

    /// A value that is known when the program is compiled.
    ///
    /// # Panics
    ///
    /// If there is a control character in it, or white space around it: when the program is compiled, if it is a
    /// constant.
    #[must_use]
    pub const fn from_static(value: &'static str) -> FieldValue<'static> {
        let bytes = value.as_bytes();
        let mut at = 0;
        while at < bytes.len() {
            assert!(!bytes[at].is_ascii_control(), "a control character");
            at += 1;
        }
        assert!(bytes.trim_ascii().len() == bytes.len(), "white space");
        FieldValue(bytes)
    }

    /// A value of `http`'s type, which has no control characters either.
    #[inline]
    pub fn from_header(value: &'a HeaderValue) -> Self {
        Self(value.as_bytes())
    }

    /// A value that is known to have no control characters, and no white space around it: it was checked when it was
    /// received, or made here.
    #[inline]
    pub(crate) fn checked(value: &'a [u8]) -> Self {
        Self(value)
    }

    /// The bytes of the value.
    #[inline]
    pub fn as_bytes(self) -> &'a [u8] {
        self.0
    }
}

/// One change of a head's fields. Changes apply in order.
///
/// Changes of `Host`, `Connection`, `Upgrade`, `TE`, `Content-Length` and `Transfer-Encoding` are ignored, because
/// connections and bodies depend on these fields.
#[derive(Clone, Copy, Debug)]
pub enum FieldOperation<'a> {
    /// No change, for operations that do not apply to this message.
    Nothing,
    /// Leaves out all lines of a name.
    Remove(&'a FieldName),
    /// Leaves out all lines of a name, and writes one.
    Set(&'a FieldName, FieldValue<'a>),
    /// Writes a line after the existing ones.
    Append(&'a FieldName, FieldValue<'a>),
}

impl FieldOperation<'_> {
    /// The classes of fields that operations cannot change, because connections and bodies depend on them.
    pub(crate) const PROTECTED: ClassSet = ClassSet::EMPTY
        .with(FieldClass::Host)
        .with(FieldClass::Connection)
        .with(FieldClass::Upgrade)
        .with(FieldClass::Te)
        .with(FieldClass::ContentLength)
        .with(FieldClass::TransferEncoding);

    /// The name whose lines it leaves out.
    #[inline]
    fn removed(&self) -> Option<&FieldName> {
        match self {
            Self::Remove(name) | Self::Set(name, _)
                if !FieldOperation::PROTECTED.contains(name.class) =>
            {
                Some(name)
            }
            _ => None,
        }
    }
}

/// The changes of a head's fields, apart from those about its connection.
pub(crate) trait Changes {
    /// The classes of names whose lines are left out.
    fn classes(&self) -> ClassSet;

    /// Returns true if the line of a received field is left out.
    fn leaves_out(&self, buffer: &[u8], field: &Field) -> bool;

    /// Writes the lines that are added.
    fn write(&self, out: &mut Vec<u8>);
}

/// The lines that operations leave out, prepared so that one test of a field's class excludes most fields.
#[derive(Clone, Copy, Debug)]
pub(super) struct Removed<'a> {
    operations: &'a [FieldOperation<'a>],
    /// Classes of names that an operation leaves out.
    once: ClassSet,
    /// Classes of names that several operations leave out.
    again: ClassSet,
}

impl<'a> Removed<'a> {
    #[inline]
    pub(super) fn new(operations: &'a [FieldOperation<'a>]) -> Self {
        let (mut once, mut again) = (ClassSet::EMPTY, ClassSet::EMPTY);
        for name in operations.iter().filter_map(FieldOperation::removed) {
            let only = ClassSet::EMPTY.with(name.class);
            again = again.union(once.intersection(only));
            once = once.union(only);
        }
        Self {
            operations,
            once,
            again,
        }
    }

    /// Returns true if the field with this name is left out.
    #[inline]
    pub(super) fn has_name(&self, name: &[u8], class: FieldClass) -> bool {
        let is_name = |removed: &FieldName| {
            removed.class == class && removed.as_bytes().eq_ignore_ascii_case(name)
        };
        let mut names = self.operations.iter().filter_map(FieldOperation::removed);
        self.once.contains(class) && names.any(is_name)
    }

    /// Returns true if the line of an operation is written: its field may change, and no later operation leaves it out.
    fn is_written(&self, number: usize, name: &FieldName) -> bool {
        let mut later = self.operations[number + 1..].iter();
        let is_same = |later: &FieldOperation<'_>| {
            let other = later.removed();
            other.is_some_and(|other| other.is_same(name))
        };
        !FieldOperation::PROTECTED.contains(name.class) && !later.any(is_same)
    }
}

impl Changes for Removed<'_> {
    #[inline]
    fn classes(&self) -> ClassSet {
        self.once
    }

    fn leaves_out(&self, buffer: &[u8], field: &Field) -> bool {
        let mut names = self.operations.iter().filter_map(FieldOperation::removed);
        self.once.contains(field.class()) && names.any(|name| name.is_of(buffer, field))
    }

    /// Writes the lines that no later operation leaves out.
    #[inline]
    fn write(&self, out: &mut Vec<u8>) {
        for (number, operation) in self.operations.iter().enumerate() {
            let (name, value, doubtful) = match operation {
                // `Set` removes its own name, so only a second operation of the class matters.
                FieldOperation::Set(name, value) => (name, value, self.again),
                FieldOperation::Append(name, value) => (name, value, self.once),
                FieldOperation::Remove(_) | FieldOperation::Nothing => continue,
            };
            if FieldOperation::PROTECTED
                .union(doubtful)
                .contains(name.class)
                && !self.is_written(number, name)
            {
                continue;
            }
            name.write_line(*value, out);
        }
    }
}
