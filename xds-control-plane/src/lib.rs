#![doc = include_str!("../README.md")]

pub mod server;
pub mod snapshot;
