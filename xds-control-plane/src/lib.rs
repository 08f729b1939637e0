#![doc = include_str!("../README.md")]

pub mod assemble;
pub mod bridge;
#[cfg(feature = "client")]
pub mod client;
pub mod snapshot;
