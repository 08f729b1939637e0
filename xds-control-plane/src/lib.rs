#![doc = include_str!("../README.md")]

pub mod admin;
pub mod assemble;
pub mod bridge;
pub mod options;
pub mod pipeline;
mod proto;
pub mod server;
pub mod snapshot;
pub mod sources;
pub mod translate;
