//! Tests with real agents of HashiCorp Consul, whose behaviour the crate has to handle.
//!
//! Without the program `consul` each test reports that it was left out.
#![allow(clippy::unwrap_used, reason = "a panic is how a test fails")]

mod access;
mod contract;
mod faults;
mod news;
mod registration;
mod support;
