//! Real agents of Serf: what they do is what the crate has to live with.
//!
//! Without the program `serf` each of these says that it was left out.
#![allow(clippy::unwrap_used, reason = "a panic is how a test fails")]

mod access;
mod client;
mod failover;
mod membership;
mod registration;
mod repair;
mod support;
