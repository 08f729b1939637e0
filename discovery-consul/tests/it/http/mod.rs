//! The built-in transport against real sockets: TLS, limits, and peers that are no agent.
#![allow(clippy::unwrap_used, reason = "a panic is how a test fails")]

mod tls;
mod wire;
