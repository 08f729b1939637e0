//! A real Consul in two datacenters, this control plane, and a real Envoy that takes traffic.

#![allow(clippy::unwrap_used, reason = "a panic is how a test fails")]

mod fixed;
mod fleet;
mod traffic;
