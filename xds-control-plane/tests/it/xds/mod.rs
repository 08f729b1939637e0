//! The server over real connections: clients of ours, and real Envoys and `buf` where they are found.
#![allow(clippy::unwrap_used, reason = "a panic is how a test fails")]

mod admin;
mod calls;
mod connections;
mod envoy;
mod floods;
mod large;
mod reflection;
mod registry;
mod streams;
mod support;
#[cfg(feature = "tls")]
mod tls;
