//! Tests of the client against scripted gateways.
#![expect(clippy::unwrap_used, reason = "a panic is how a test fails")]

mod documented;
mod endpoints;
mod errors;
mod hostile;
#[cfg(feature = "reqwest")]
mod http;
mod paging;
mod reports;
mod requests;
mod retries;
mod support;
#[cfg(feature = "reqwest")]
mod tls;
mod tokens;
