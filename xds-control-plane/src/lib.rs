#![doc = include_str!("../README.md")]

pub mod assemble;
pub mod snapshot;
