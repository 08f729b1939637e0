//! The parts that every exchange with a destination shares, whatever way its request takes there: as
//! bytes, as a stream of HTTP/2, or over `http` types.

mod body_limit;
mod connect;
mod count;
#[cfg(all(feature = "server", feature = "http2"))]
pub(crate) mod grpc;
mod pick;

pub(crate) use self::body_limit::body_limit;
pub(crate) use self::connect::{ConnectContext, Ledger};
pub(crate) use self::count::{Count, RequestMetrics};
pub(crate) use self::pick::pick;
