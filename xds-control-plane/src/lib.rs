#![doc = include_str!("../README.md")]

pub mod assemble;
mod proto;
pub mod snapshot;
