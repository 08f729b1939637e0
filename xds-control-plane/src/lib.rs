#![doc = include_str!("../README.md")]

pub mod assemble;
pub mod bridge;
pub mod snapshot;
