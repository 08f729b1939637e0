//! Harnesses for parts of the proxy, for tests and benchmarks.

mod balance;
#[cfg(feature = "testing")]
mod pool;

pub use self::balance::BalancerHarness;
#[cfg(feature = "testing")]
#[doc(hidden)]
pub use self::pool::PoolHarness;
