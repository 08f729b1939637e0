//! The view of a request head for routing.

use std::net::IpAddr;

use proxy_model::RequestHead;

use super::table::HeadTable;
use super::{RawRequest, TargetForm};
use crate::connection::ConnectionInfo;
use crate::http1::field::FieldClass;

/// A request head for routing, balancing and transforms, with the semantics of a head in `http`
/// types.
///
/// Created once per request. Rarely used parts are read on demand.
#[derive(Clone, Copy, Debug)]
pub struct RequestView<'a> {
    buffer: &'a [u8],
    request: &'a RawRequest,
    table: &'a HeadTable,
    is_https: bool,
    connection: Option<&'a ConnectionInfo>,
}

impl<'a> RequestView<'a> {
    /// A view of a head in the parsed buffer. `is_https` comes from the connection; the scheme of a
    /// target is ignored.
    ///
    /// # Panics
    ///
    /// Panics if `buffer` is shorter than the parsed one.
    #[inline]
    pub fn new(
        buffer: &'a [u8],
        request: &'a RawRequest,
        table: &'a HeadTable,
        is_https: bool,
    ) -> Self {
        Self {
            buffer,
            request,
            table,
            is_https,
            connection: None,
        }
    }

    /// A view of a head that came over this connection.
    #[inline]
    pub(crate) fn of_connection(
        buffer: &'a [u8],
        request: &'a RawRequest,
        table: &'a HeadTable,
        connection: &'a ConnectionInfo,
    ) -> Self {
        Self {
            connection: Some(connection),
            ..Self::new(buffer, request, table, connection.tls)
        }
    }
}

impl RequestHead for RequestView<'_> {
    #[inline]
    fn method(&self) -> &str {
        match self.request.method().name() {
            Some(name) => name,
            None => self.request.method_span().text(self.buffer),
        }
    }

    #[inline]
    fn path(&self) -> &str {
        match self.request.target_form() {
            TargetForm::Asterisk => "*",
            // RFC 9110 section 4.2.3.
            TargetForm::Absolute if self.request.path().is_empty() => "/",
            _ => self.request.path().text(self.buffer),
        }
    }

    #[inline]
    fn plain_path(&self) -> Option<&[u8]> {
        let request = self.request;
        // `*` and an absolute target without a path have another form.
        let is_as_sent = request.has_plain_path() && !request.path().is_empty();
        is_as_sent.then(|| request.path().get(self.buffer))
    }

    #[inline]
    fn query(&self) -> Option<&str> {
        let query = self.request.query();
        query.map(|query| query.text(self.buffer))
    }

    #[inline]
    fn authority(&self) -> &str {
        self.request.authority().text(self.buffer)
    }

    #[inline]
    fn is_https(&self) -> bool {
        self.is_https
    }

    fn client_address(&self) -> Option<IpAddr> {
        self.connection?.client_address()
    }

    fn for_each_header(&self, name: &str, each: &mut dyn FnMut(&[u8]) -> bool) {
        // An absolute target overrides `Host` (RFC 9112 section 3.2.2).
        if !self.request.line.target.authority.is_empty() && name == "host" {
            each(self.request.authority().get(self.buffer));
            return;
        }
        for field in self.table.fields() {
            // Most names differ in length; fields that are not trusted do not exist for routes.
            if field.name().len() as usize == name.len()
                && field.class() != FieldClass::Distrusted
                && field
                    .name()
                    .get(self.buffer)
                    .eq_ignore_ascii_case(name.as_bytes())
                && !each(field.value().get(self.buffer))
            {
                return;
            }
        }
    }
}
