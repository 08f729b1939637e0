#![doc = include_str!("../README.md")]

pub mod cluster;
#[cfg(feature = "gateway")]
pub mod gateway;
pub mod health;
pub mod hosting;
pub mod timeline;
pub mod topology;
