#![doc = include_str!("../README.md")]

mod authorization;
mod config;
mod cors;
mod guards;
mod head;
mod limiter;
mod named;
mod policies;
#[cfg(feature = "testing")]
#[doc(hidden)]
pub mod testing;
#[cfg(test)]
mod tests;

pub use self::config::{SECTION, judge_use, read, read_network, schema};
pub use self::policies::Policies;
