#![doc = include_str!("../README.md")]

pub mod admin;
pub mod server;
pub mod snapshot;
