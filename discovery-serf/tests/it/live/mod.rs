//! Tests with real agents of Serf, whose behaviour the crate has to handle.
//!
//! Without the program `serf` each test reports that it was left out.
#![allow(clippy::unwrap_used, reason = "a panic is how a test fails")]

mod access;
mod client;
mod failover;
mod membership;
mod registration;
mod repair;
mod support;
