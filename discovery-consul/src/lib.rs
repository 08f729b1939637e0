#![doc = include_str!("../README.md")]

pub mod client;
#[cfg(any(test, feature = "testing"))]
pub mod testing;
pub mod watch;
