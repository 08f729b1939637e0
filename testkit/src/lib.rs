#![doc = include_str!("../README.md")]

pub mod agent;
pub mod body;
pub mod certs;
pub mod client;
pub mod consul;
pub mod dns;
pub mod faults;
mod listen;
pub mod origin;
pub mod peers;
pub mod raw;
pub mod schema;
pub mod serf;
mod tasks;
pub mod time;
mod traffic;

pub use self::traffic::{Counts, Traffic};

/// Decodes bytes as ISO 8859-1, one character per byte: lossless and infallible.
fn latin1(bytes: &[u8]) -> String {
    bytes.iter().copied().map(char::from).collect()
}
