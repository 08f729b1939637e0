//! How large a request may be.

use proxy_model::compiled::{BodyLimit, Route};

/// The most bytes of content that a request may have: its route says, else the `proxy`. `None`: as many as there are.
#[inline]
pub(crate) fn body_limit(proxy: Option<u64>, route: &Route) -> Option<u64> {
    match route.body_limit() {
        BodyLimit::Server => proxy,
        BodyLimit::Unlimited => None,
        BodyLimit::Bytes(limit) => Some(limit),
    }
}
