//! Harnesses for parts of the proxy, for tests and benchmarks.

mod balance;
#[cfg(feature = "testing")]
mod pool;
#[cfg(all(feature = "http2", feature = "testing"))]
mod streams;

pub use self::balance::BalancerHarness;
#[cfg(feature = "testing")]
#[doc(hidden)]
pub use self::pool::PoolHarness;
#[cfg(all(feature = "http2", feature = "testing"))]
#[doc(hidden)]
pub use self::streams::StreamHarness;
