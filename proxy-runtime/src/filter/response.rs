//! The head of a response as filters see it.

use std::fmt;

use http::{HeaderMap, HeaderValue, StatusCode};

use super::fields::ReceivedFields;
use super::request::{all, values};
use crate::head::{HeaderMutations, InvalidEdit};
use crate::http1::HeadTable;

/// The head of a received response, with the changes made so far.
pub struct ResponseEdit<'a> {
    status: StatusCode,
    fields: ReceivedFields<'a>,
    edits: &'a mut HeaderMutations,
}

impl<'a> ResponseEdit<'a> {
    /// Wraps a head in `http` types.
    pub(crate) fn of_http(
        status: StatusCode,
        headers: &'a HeaderMap,
        edits: &'a mut HeaderMutations,
    ) -> Self {
        Self {
            status,
            fields: ReceivedFields::Map(headers),
            edits,
        }
    }

    /// Wraps a head in its read buffer.
    pub(crate) fn of_raw(
        status: StatusCode,
        buffer: &'a [u8],
        table: &'a HeadTable,
        edits: &'a mut HeaderMutations,
    ) -> Self {
        Self {
            status,
            fields: ReceivedFields::Table { buffer, table },
            edits,
        }
    }

    /// The status.
    pub fn status(&self) -> StatusCode {
        self.status
    }

    /// The first value of a header; the name is compared ignoring case.
    pub fn header(&self, name: &str) -> Option<&[u8]> {
        let received = (!self.edits.hides(name.as_bytes()))
            .then(|| self.fields.values(name).next())
            .flatten();
        received.or_else(|| self.edits.values(name.as_bytes()).next())
    }

    /// All values of a header, in order.
    pub fn header_values<'s>(&'s self, name: &'s str) -> impl Iterator<Item = &'s [u8]> {
        values(self.fields, self.edits, name)
    }

    /// Names and values of all headers: the received ones in order, then the added ones. Names keep
    /// their case.
    pub fn headers(&self) -> impl Iterator<Item = (&str, &[u8])> {
        all(self.fields, self.edits)
    }

    /// Replaces all lines of a header with one.
    ///
    /// # Errors
    ///
    /// Fails if the name or the value is invalid, or if the header is protected.
    pub fn set<V>(&mut self, name: impl AsRef<str>, value: V) -> Result<(), InvalidEdit>
    where
        V: TryInto<HeaderValue>,
    {
        self.edits.set(name.as_ref(), value)
    }

    /// Appends a line to a header.
    ///
    /// # Errors
    ///
    /// Fails as [`set`](Self::set) does.
    pub fn append<V>(&mut self, name: impl AsRef<str>, value: V) -> Result<(), InvalidEdit>
    where
        V: TryInto<HeaderValue>,
    {
        self.edits.append(name.as_ref(), value)
    }

    /// Removes all lines of a header.
    ///
    /// # Errors
    ///
    /// Fails if the name is invalid, or if the header is protected.
    pub fn remove(&mut self, name: impl AsRef<str>) -> Result<(), InvalidEdit> {
        self.edits.remove(name.as_ref())
    }
}

impl fmt::Debug for ResponseEdit<'_> {
    /// Leaves out values, which may be secrets.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ResponseEdit")
            .field("status", &self.status)
            .finish_non_exhaustive()
    }
}
