//! The client against scripted responses and against the emulator, in virtual time.
#![allow(clippy::unwrap_used, reason = "a panic is how a test fails")]

mod operations;
mod requests;
mod retries;
pub(crate) mod script;
mod tokens;
mod trust;
