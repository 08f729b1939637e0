//! Received fields of a head: in a map, or in the read buffer.

use std::slice;

use http::header::{HOST, Iter, ValueIter};
use http::{HeaderMap, HeaderValue};

use crate::head::headers::is_named_by_connection;
use crate::http1::{Field, FieldClass, HeadTable};

/// The storage of the received fields.
#[derive(Clone, Copy, Debug)]
pub(super) enum ReceivedFields<'a> {
    Map(&'a HeaderMap),
    Table {
        buffer: &'a [u8],
        table: &'a HeadTable,
    },
}

impl<'a> ReceivedFields<'a> {
    /// Names and values in order, without `Host` and fields that are not trusted.
    pub(super) fn iter(self) -> FieldIter<'a> {
        match self {
            Self::Map(headers) => FieldIter::Map(headers.iter()),
            Self::Table { buffer, table } => FieldIter::Table(buffer, table.fields().iter()),
        }
    }

    /// Returns true if `Connection` names the fields of a name, which are not forwarded therefore.
    pub(super) fn are_for_connection(self, name: &str) -> bool {
        match self {
            Self::Map(headers) => is_named_by_connection(headers, name),
            Self::Table { buffer, table } => table.fields().iter().any(|field| {
                field.class() == FieldClass::NamedByConnection
                    && field
                        .name()
                        .get(buffer)
                        .eq_ignore_ascii_case(name.as_bytes())
            }),
        }
    }

    /// The values of a name, in order.
    pub(super) fn values<'n>(self, name: &'n str) -> FieldValues<'a, 'n> {
        match self {
            Self::Map(headers) => FieldValues::Map(headers.get_all(name).iter()),
            Self::Table { .. } => FieldValues::Named(name, self.iter()),
        }
    }
}

pub(super) enum FieldIter<'a> {
    Map(Iter<'a, HeaderValue>),
    Table(&'a [u8], slice::Iter<'a, Field>),
}

impl<'a> Iterator for FieldIter<'a> {
    type Item = (&'a str, &'a [u8]);

    fn next(&mut self) -> Option<Self::Item> {
        match self {
            Self::Map(fields) => {
                let (name, value) = fields.find(|(name, _)| **name != HOST)?;
                Some((name.as_str(), value.as_bytes()))
            }
            Self::Table(buffer, fields) => {
                let is_hidden = |class| matches!(class, FieldClass::Host | FieldClass::Distrusted);
                let field = fields.find(|field| !is_hidden(field.class()))?;
                // The parser accepts only tokens as names, and tokens are ASCII.
                let name = str::from_utf8(field.name().get(buffer)).unwrap_or_default();
                Some((name, field.value().get(buffer)))
            }
        }
    }
}

pub(super) enum FieldValues<'a, 'n> {
    Map(ValueIter<'a, HeaderValue>),
    Named(&'n str, FieldIter<'a>),
}

impl<'a> Iterator for FieldValues<'a, '_> {
    type Item = &'a [u8];

    fn next(&mut self) -> Option<&'a [u8]> {
        match self {
            Self::Map(values) => values.next().map(HeaderValue::as_bytes),
            Self::Named(name, fields) => fields
                .find(|(other, _)| other.eq_ignore_ascii_case(name))
                .map(|(_, value)| value),
        }
    }
}
