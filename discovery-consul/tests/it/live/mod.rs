//! Real agents of HashiCorp Consul: what they do is what the crate has to live with.
//!
//! Without the program `consul` each of these says that it was left out.
#![allow(clippy::unwrap_used, reason = "a panic is how a test fails")]

mod access;
mod contract;
mod faults;
mod news;
mod registration;
mod support;
