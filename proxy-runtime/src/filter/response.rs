//! The head of a response as filters see it.

use std::fmt;

use http::{HeaderMap, HeaderValue, StatusCode};

use super::fields::ReceivedFields;
use super::request::{all, values};
use super::work::{ResponseChange, ResponseWork};
use crate::BoxError;
use crate::head::{HeaderMutations, InvalidEdit};
use crate::http1::HeadTable;

/// The head of a received response, with the changes made so far.
pub struct ResponseEdit<'a> {
    status: StatusCode,
    fields: ReceivedFields<'a>,
    edits: &'a mut HeaderMutations,
    work: &'a mut ResponseWork,
}

/// The head of a response as it was received.
#[derive(Clone, Copy)]
pub(crate) struct ReceivedResponse<'a> {
    status: StatusCode,
    fields: ReceivedFields<'a>,
}

impl<'a> ReceivedResponse<'a> {
    /// Wraps a head in `http` types.
    pub(crate) fn of_http(status: StatusCode, headers: &'a HeaderMap) -> Self {
        let fields = ReceivedFields::Map(headers);
        Self { status, fields }
    }

    /// Wraps a head in its read buffer.
    pub(crate) fn of_raw(status: StatusCode, buffer: &'a [u8], table: &'a HeadTable) -> Self {
        let fields = ReceivedFields::Table { buffer, table };
        Self { status, fields }
    }

    /// The head with changes, which are kept in `edits` and `work`.
    pub(crate) fn edit(
        self,
        edits: &'a mut HeaderMutations,
        work: &'a mut ResponseWork,
    ) -> ResponseEdit<'a> {
        ResponseEdit {
            status: self.status,
            fields: self.fields,
            edits,
            work,
        }
    }
}

impl ResponseEdit<'_> {
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

    /// Lets the response wait for `work`, and for the changes of the function that it returns. Filters that have not
    /// seen the response are called after that.
    ///
    /// The route's `Timeout` and the cluster's `ActivityTimeout` include the wait. In place of the response, the client
    /// gets 504 after it, and 500 if `work` fails or panics, both with the error `Extension`. `work` is dropped if the
    /// client leaves.
    pub fn wait<C>(&mut self, work: impl Future<Output = Result<C, BoxError>> + Send + 'static)
    where
        C: FnOnce(&mut ResponseEdit<'_>) + Send + 'static,
    {
        let work = async move { work.await.map(|change| Box::new(change) as ResponseChange) };
        self.work.wait(Box::pin(work));
    }

    /// Changes the trailers of the response when its body has ended, before the route's transforms do. They are empty
    /// if the destination has sent none. Fields that no trailers may have are removed.
    ///
    /// The change is not called for a response that can have no trailers: one without a body, one of the proxy itself,
    /// and over HTTP/1.1 one with a `Content-Length`, or to a client without `TE: trailers`. If it panics, the response
    /// breaks off.
    pub fn change_trailers(&mut self, change: impl FnOnce(&mut HeaderMap) + Send + 'static) {
        self.work.change_trailers(Box::new(change));
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
