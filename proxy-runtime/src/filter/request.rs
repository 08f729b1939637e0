//! The head of a request as filters see it.

use std::fmt;

use http::{HeaderValue, Version};
use proxy_model::RequestHead;

use super::fields::Fields;
use crate::head::HttpHead;
use crate::head::{HeadEdits, InvalidEdit};
use crate::http1::{HeadTable, RawRequest, RequestView, Version as RawVersion};

/// The head of a request as it was received, with the changes made so far.
///
/// What is read is what was received unless it was changed. Changes are kept until the head is sent on.
pub struct RequestEdit<'a> {
    head: Source<'a>,
    fields: Fields<'a>,
    edits: &'a mut HeadEdits,
}

enum Source<'a> {
    Http(HttpHead<'a>),
    Raw(RequestView<'a>, Version),
}

impl<'a> RequestEdit<'a> {
    /// A head in `http` types.
    pub(crate) fn of_http(head: HttpHead<'a>, edits: &'a mut HeadEdits) -> Self {
        Self {
            fields: Fields::Map(head.headers()),
            head: Source::Http(head),
            edits,
        }
    }

    /// A head in the buffer that it was read into.
    #[cfg_attr(
        not(any(feature = "server", test)),
        expect(dead_code, reason = "for the server, which has heads in place")
    )]
    pub(crate) fn of_raw(
        buffer: &'a [u8],
        request: &'a RawRequest,
        table: &'a HeadTable,
        view: RequestView<'a>,
        edits: &'a mut HeadEdits,
    ) -> Self {
        let version = match request.version() {
            RawVersion::Http10 => Version::HTTP_10,
            RawVersion::Http11 => Version::HTTP_11,
        };
        Self {
            head: Source::Raw(view, version),
            fields: Fields::Table { buffer, table },
            edits,
        }
    }

    fn received(&self) -> &dyn RequestHead {
        match &self.head {
            Source::Http(head) => head,
            Source::Raw(view, _) => view,
        }
    }

    /// The method. A WebSocket that is asked for with CONNECT in HTTP/2 (RFC 8441) is one of `GET`.
    pub fn method(&self) -> &str {
        self.received().method()
    }

    /// The path, percent-encoded as it came.
    pub fn path(&self) -> &str {
        self.edits.path().unwrap_or_else(|| self.received().path())
    }

    /// The query without its `?`, percent-encoded as it came; `None` without one.
    pub fn query(&self) -> Option<&str> {
        self.edits
            .query()
            .unwrap_or_else(|| self.received().query())
    }

    /// Host and port as the client named them, or as [`set_host`](Self::set_host) said; empty if the client named none.
    pub fn authority(&self) -> &str {
        let changed = self.edits.host().and_then(|host| host.to_str().ok());
        changed.unwrap_or_else(|| self.received().authority())
    }

    /// The version of HTTP in which the client asks.
    pub fn version(&self) -> Version {
        match &self.head {
            Source::Http(head) => head.version(),
            Source::Raw(_, version) => *version,
        }
    }

    /// The first value of a header, whose name is compared ignoring case. `host` is the [`authority`](Self::authority).
    pub fn header(&self, name: &str) -> Option<&[u8]> {
        if name.eq_ignore_ascii_case("host") {
            return Some(self.authority().as_bytes()).filter(|host| !host.is_empty());
        }
        let received = (!self.edits.hides(name.as_bytes()))
            .then(|| self.fields.values(name).next())
            .flatten();
        // Nearly all heads are read unchanged.
        received.or_else(|| self.edits.values(name.as_bytes()).next())
    }

    /// All values of a header but `Host`, in order.
    pub fn header_values<'s>(&'s self, name: &'s str) -> impl Iterator<Item = &'s [u8]> {
        values(self.fields, self.edits, name)
    }

    /// Names and values of all headers but `Host`: those that were received, in order, then those that were written. The
    /// case of names is as they came.
    pub fn headers(&self) -> impl Iterator<Item = (&str, &[u8])> {
        all(self.fields, self.edits)
    }

    /// Puts one line in place of all that a header has.
    ///
    /// # Errors
    ///
    /// The name or the value is none, or the header belongs to the connection.
    pub fn set<V>(&mut self, name: impl AsRef<str>, value: V) -> Result<(), InvalidEdit>
    where
        V: TryInto<HeaderValue>,
    {
        self.edits.set(name.as_ref(), value)
    }

    /// Adds a line behind those that a header has.
    ///
    /// # Errors
    ///
    /// As [`set`](Self::set).
    pub fn append<V>(&mut self, name: impl AsRef<str>, value: V) -> Result<(), InvalidEdit>
    where
        V: TryInto<HeaderValue>,
    {
        self.edits.append(name.as_ref(), value)
    }

    /// Takes all lines of a header out.
    ///
    /// # Errors
    ///
    /// The name is none, or the header belongs to the connection.
    pub fn remove(&mut self, name: impl AsRef<str>) -> Result<(), InvalidEdit> {
        self.edits.remove(name.as_ref())
    }

    /// Replaces the path, which is percent-encoded and begins with `/`. The query stays.
    ///
    /// # Errors
    ///
    /// [`InvalidEdit::Path`].
    pub fn set_path(&mut self, path: &str) -> Result<(), InvalidEdit> {
        self.edits.set_path(path)
    }

    /// Replaces the query, which is percent-encoded and without its `?`, or takes it out.
    ///
    /// # Errors
    ///
    /// [`InvalidEdit::Query`].
    pub fn set_query(&mut self, query: Option<&str>) -> Result<(), InvalidEdit> {
        self.edits.set_query(query)
    }

    /// Says which `Host` the destination is sent, in place of its own and of the client's. `X-Forwarded-Host` tells of the
    /// client's all the same.
    ///
    /// # Errors
    ///
    /// [`InvalidEdit::Host`].
    pub fn set_host(&mut self, host: &str) -> Result<(), InvalidEdit> {
        self.edits.set_host(host)
    }
}

/// The values of a field that has been received or written.
pub(super) fn values<'s>(
    fields: Fields<'s>,
    edits: &'s HeadEdits,
    name: &'s str,
) -> impl Iterator<Item = &'s [u8]> {
    let is_seen = !name.eq_ignore_ascii_case("host") && !edits.hides(name.as_bytes());
    let received = is_seen.then(|| fields.values(name));
    let written = edits.values(name.as_bytes());
    received.into_iter().flatten().chain(written)
}

/// All fields that have been received or written.
pub(super) fn all<'s>(
    fields: Fields<'s>,
    edits: &'s HeadEdits,
) -> impl Iterator<Item = (&'s str, &'s [u8])> {
    let received = fields.iter();
    let seen = received.filter(|(name, _)| !edits.hides(name.as_bytes()));
    seen.chain(edits.written())
}

impl fmt::Debug for RequestEdit<'_> {
    /// Without values, which may be secrets.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RequestEdit")
            .field("method", &self.method())
            .field("path", &self.path())
            .finish_non_exhaustive()
    }
}
