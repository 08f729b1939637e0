//! The head of a request as filters see it.

use std::fmt;

use http::{HeaderValue, Version};
use proxy_model::RequestHead;

use super::fields::ReceivedFields;
use crate::head::HttpHead;
use crate::head::{HeaderMutations, InvalidEdit};
use crate::http1::{HeadTable, RawRequest, RequestView, Version as RawVersion};

/// The head of a received request, with the changes made so far.
///
/// Reads include the changes. Changes take effect when the head is forwarded.
pub struct RequestEdit<'a> {
    head: RequestSource<'a>,
    fields: ReceivedFields<'a>,
    edits: &'a mut HeaderMutations,
}

enum RequestSource<'a> {
    Http(HttpHead<'a>),
    Raw(RequestView<'a>, Version),
}

impl<'a> RequestEdit<'a> {
    /// Wraps a head in `http` types.
    pub(crate) fn of_http(head: HttpHead<'a>, edits: &'a mut HeaderMutations) -> Self {
        Self {
            fields: ReceivedFields::Map(head.headers()),
            head: RequestSource::Http(head),
            edits,
        }
    }

    /// Wraps a head in its read buffer.
    #[cfg_attr(
        not(any(feature = "server", test)),
        expect(dead_code, reason = "for the server, which has heads in place")
    )]
    pub(crate) fn of_raw(
        buffer: &'a [u8],
        request: &'a RawRequest,
        table: &'a HeadTable,
        view: RequestView<'a>,
        edits: &'a mut HeaderMutations,
    ) -> Self {
        let version = match request.version() {
            RawVersion::Http10 => Version::HTTP_10,
            RawVersion::Http11 => Version::HTTP_11,
        };
        Self {
            head: RequestSource::Raw(view, version),
            fields: ReceivedFields::Table { buffer, table },
            edits,
        }
    }

    fn received(&self) -> &dyn RequestHead {
        match &self.head {
            RequestSource::Http(head) => head,
            RequestSource::Raw(view, _) => view,
        }
    }

    /// The method. A WebSocket request by CONNECT in HTTP/2 (RFC 8441) has the method `GET`.
    pub fn method(&self) -> &str {
        self.received().method()
    }

    /// The path, percent-encoded as received.
    pub fn path(&self) -> &str {
        self.edits.path().unwrap_or_else(|| self.received().path())
    }

    /// The query without its `?`, percent-encoded as received; `None` if there is none.
    pub fn query(&self) -> Option<&str> {
        self.edits
            .query()
            .unwrap_or_else(|| self.received().query())
    }

    /// Host and port as sent by the client, or as changed by [`set_host`](Self::set_host); empty if
    /// the client sent none.
    pub fn authority(&self) -> &str {
        let changed = self.edits.host().and_then(|host| host.to_str().ok());
        changed.unwrap_or_else(|| self.received().authority())
    }

    /// The HTTP version of the client's request.
    pub fn version(&self) -> Version {
        match &self.head {
            RequestSource::Http(head) => head.version(),
            RequestSource::Raw(_, version) => *version,
        }
    }

    /// The first value of a header; the name is compared ignoring case. `host` gives the
    /// [`authority`](Self::authority).
    pub fn header(&self, name: &str) -> Option<&[u8]> {
        // `Host` is no field here: the target or `set_host` may override it.
        if name.eq_ignore_ascii_case("host") {
            return Some(self.authority().as_bytes()).filter(|host| !host.is_empty());
        }
        let received = (!self.edits.hides(name.as_bytes()))
            .then(|| self.fields.values(name).next())
            .flatten();
        // Most heads have no changes, so the received fields are searched first.
        received.or_else(|| self.edits.values(name.as_bytes()).next())
    }

    /// All values of a header except `Host`, in order.
    pub fn header_values<'s>(&'s self, name: &'s str) -> impl Iterator<Item = &'s [u8]> {
        values(self.fields, self.edits, name)
    }

    /// Names and values of all headers except `Host`: the received ones in order, then the added
    /// ones. Names keep their case.
    pub fn headers(&self) -> impl Iterator<Item = (&str, &[u8])> {
        all(self.fields, self.edits)
    }

    /// Returns true if the client's `Connection` names the header. Such a header is not forwarded, unless a filter
    /// sets it.
    pub fn is_for_connection(&self, name: &str) -> bool {
        self.fields.are_for_connection(name)
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

    /// Replaces all lines of a header of the response with one, also of a local reply. It is made
    /// after the changes of all filters, so that a filter can decide with the request what the
    /// response has to say.
    ///
    /// # Errors
    ///
    /// Fails as [`set`](Self::set) does.
    pub fn set_on_response<V>(&mut self, name: impl AsRef<str>, value: V) -> Result<(), InvalidEdit>
    where
        V: TryInto<HeaderValue>,
    {
        self.edits.note_for_response(name.as_ref(), value, false)
    }

    /// Appends a line to a header of the response, as [`set_on_response`](Self::set_on_response)
    /// does.
    ///
    /// # Errors
    ///
    /// Fails as [`set`](Self::set) does.
    pub fn append_on_response<V>(
        &mut self,
        name: impl AsRef<str>,
        value: V,
    ) -> Result<(), InvalidEdit>
    where
        V: TryInto<HeaderValue>,
    {
        self.edits.note_for_response(name.as_ref(), value, true)
    }

    /// Removes all lines of a header of the response, as [`set_on_response`](Self::set_on_response)
    /// does.
    ///
    /// # Errors
    ///
    /// Fails as [`remove`](Self::remove) does.
    pub fn remove_on_response(&mut self, name: impl AsRef<str>) -> Result<(), InvalidEdit> {
        self.edits.note_removal(name.as_ref())
    }

    /// Keeps a value until the response has ended, or the tunnel that it has begun, or the request for another
    /// reason: then it is dropped. A layer that makes a new request out of the one that it got ends it for a tunnel
    /// with the handshake.
    pub fn hold(&mut self, value: impl Send + Sync + 'static) {
        self.edits.hold(value);
    }

    /// Replaces the path, which must be percent-encoded and begin with `/`. The query stays.
    ///
    /// # Errors
    ///
    /// Fails with [`InvalidEdit::Path`].
    pub fn set_path(&mut self, path: &str) -> Result<(), InvalidEdit> {
        self.edits.set_path(path)
    }

    /// Replaces the query, which must be percent-encoded and without `?`. `None` removes it.
    ///
    /// # Errors
    ///
    /// Fails with [`InvalidEdit::Query`].
    pub fn set_query(&mut self, query: Option<&str>) -> Result<(), InvalidEdit> {
        self.edits.set_query(query)
    }

    /// Sets the `Host` that the destination receives, in place of its own and the client's.
    /// `X-Forwarded-Host` still has the client's.
    ///
    /// # Errors
    ///
    /// Fails with [`InvalidEdit::Host`].
    pub fn set_host(&mut self, host: &str) -> Result<(), InvalidEdit> {
        self.edits.set_host(host)
    }
}

/// The values of a received or added field.
pub(super) fn values<'s>(
    fields: ReceivedFields<'s>,
    edits: &'s HeaderMutations,
    name: &'s str,
) -> impl Iterator<Item = &'s [u8]> {
    let is_seen = !name.eq_ignore_ascii_case("host") && !edits.hides(name.as_bytes());
    let received = is_seen.then(|| fields.values(name));
    let written = edits.values(name.as_bytes());
    received.into_iter().flatten().chain(written)
}

/// All received and added fields.
pub(super) fn all<'s>(
    fields: ReceivedFields<'s>,
    edits: &'s HeaderMutations,
) -> impl Iterator<Item = (&'s str, &'s [u8])> {
    let received = fields.iter();
    let seen = received.filter(|(name, _)| !edits.hides(name.as_bytes()));
    seen.chain(edits.written())
}

impl fmt::Debug for RequestEdit<'_> {
    /// Leaves out values, which may be secrets.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RequestEdit")
            .field("method", &self.method())
            .field("path", &self.path())
            .finish_non_exhaustive()
    }
}
