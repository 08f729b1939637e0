//! The maximum size of a request's body.

use proxy_model::compiled::{BodyLimit, Route};

/// Returns the maximum length of a request body: the route's, or else that of `proxy`. `None`: unlimited.
#[inline]
pub(crate) fn body_limit(proxy: Option<u64>, route: &Route) -> Option<u64> {
    match route.body_limit() {
        BodyLimit::Server => proxy,
        BodyLimit::Unlimited => None,
        BodyLimit::Bytes(limit) => Some(limit),
    }
}
