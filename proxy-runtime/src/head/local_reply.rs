//! The mark of responses that no destination made.

use http::Response;

/// Marks a response that the proxy, or its server, has made itself.
#[derive(Clone, Copy, Debug)]
pub(crate) struct LocalReplyMark;

impl LocalReplyMark {
    /// Marks a response.
    pub(crate) fn mark<B>(response: &mut Response<B>) {
        response.extensions_mut().insert(Self);
    }
}
