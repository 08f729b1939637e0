//! The parts that every exchange with a destination shares, whatever way its request takes there: as
//! bytes, as a stream of HTTP/2, or over `http` types.

mod connect;
mod count;
#[cfg(all(feature = "server", feature = "http2"))]
pub(crate) mod grpc;
mod pick;

use proxy_model::compiled::{BodyLimit, Route};

pub(crate) use self::connect::{ConnectContext, Ledger};
pub(crate) use self::count::{Count, RequestMetrics};
pub(crate) use self::pick::pick;

/// Returns the maximum length of a request body: the route's, or else that of `proxy`. `None`: unlimited.
#[inline]
pub(crate) fn body_limit(proxy: Option<u64>, route: &Route) -> Option<u64> {
    match route.body_limit() {
        BodyLimit::Server => proxy,
        BodyLimit::Unlimited => None,
        BodyLimit::Bytes(limit) => Some(limit),
    }
}
