//! Tests of the built-in transport with real sockets: TLS, limits, and servers that are not agents.
#![allow(clippy::unwrap_used, reason = "a panic is how a test fails")]

mod tls;
mod wire;
