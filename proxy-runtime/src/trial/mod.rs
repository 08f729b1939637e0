//! Parts of the proxy by themselves, to be tried and measured.

mod balance;
#[cfg(feature = "testing")]
mod pool;

pub use self::balance::{Trial, TrialHead};
#[cfg(feature = "testing")]
#[doc(hidden)]
pub use self::pool::PoolTrial;
