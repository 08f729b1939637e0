//! Forwards an HTTP/1.1 request as bytes, where that is all there is to do with it.

use crate::http1::RawRequest;
use crate::proxy::ProxyService;
use crate::server::http1::{Client, Transport};

/// What became of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Lane {
    /// Nothing was read or written: the request is to be served as an `http` request.
    Typed,
    /// The whole response was written.
    Served {
        /// Whether the next request may follow: the connection was not announced to close, and the request's body was
        /// read to its end.
        keep: bool,
    },
    /// The client went away or is too slow, or the response broke off after it had begun.
    Gone,
}

/// Forwards the request at the front of the client's input.
#[expect(clippy::unused_async, reason = "no request is forwarded as bytes yet")]
pub(crate) async fn forward<T: Transport>(
    _client: &mut Client<T>,
    _request: &RawRequest,
    _proxy: &ProxyService,
) -> Lane {
    Lane::Typed
}
