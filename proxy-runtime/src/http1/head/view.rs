//! A request's head as routing sees it.

use proxy_model::RequestHead;

use super::table::HeadTable;
use super::{RawRequest, TargetForm};

/// A request's head as routing, balancing and transforms see it: with the semantics that the head in `http` types has.
///
/// Made once for a request; after that each question is a few instructions.
#[derive(Clone, Copy, Debug)]
pub struct RequestView<'a> {
    buffer: &'a [u8],
    table: &'a HeadTable,
    method: &'a str,
    path: &'a str,
    query: Option<&'a str>,
    authority: &'a str,
    is_absolute: bool,
    is_https: bool,
}

impl<'a> RequestView<'a> {
    /// A view of a head in the buffer that it was parsed in. Whether the request came over TLS is for the connection to
    /// know; what a target says of it does not count.
    ///
    /// # Panics
    ///
    /// If `buffer` is shorter than the one that was parsed.
    #[inline]
    pub fn new(
        buffer: &'a [u8],
        request: &'a RawRequest,
        table: &'a HeadTable,
        is_https: bool,
    ) -> Self {
        let method = match request.method().name() {
            Some(name) => name,
            None => request.method_span().text(buffer),
        };
        let path = match request.target_form() {
            TargetForm::Asterisk => "*",
            TargetForm::Absolute if request.path().is_empty() => "/",
            _ => request.path().text(buffer),
        };
        Self {
            buffer,
            table,
            method,
            path,
            query: request.query().map(|query| query.text(buffer)),
            authority: request.authority().text(buffer),
            is_absolute: !request.line.target.authority.is_empty(),
            is_https,
        }
    }
}

impl RequestHead for RequestView<'_> {
    #[inline]
    fn method(&self) -> &str {
        self.method
    }

    #[inline]
    fn path(&self) -> &str {
        self.path
    }

    #[inline]
    fn query(&self) -> Option<&str> {
        self.query
    }

    #[inline]
    fn authority(&self) -> &str {
        self.authority
    }

    #[inline]
    fn is_https(&self) -> bool {
        self.is_https
    }

    fn for_each_header(&self, name: &str, each: &mut dyn FnMut(&[u8]) -> bool) {
        // An absolute target overrules what `Host` says (RFC 9112 section 3.2.2).
        if self.is_absolute && name == "host" {
            each(self.authority.as_bytes());
            return;
        }
        for field in self.table.fields() {
            if field.name().len() as usize == name.len()
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
