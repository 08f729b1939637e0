//! The reason why the demo ends early.

use std::error::Error;
use std::fmt;
use std::net::SocketAddr;

/// A sentence for the person at the terminal.
#[derive(Debug)]
pub(crate) struct Failure(String);

impl Failure {
    pub(crate) fn new(message: impl Into<String>) -> Self {
        Self(message.into())
    }

    /// Creates a failure from an error and its causes.
    pub(crate) fn of(what: &str, error: &dyn Error) -> Self {
        let mut text = format!("{what}: {error}");
        let mut cause = error.source();
        while let Some(error) = cause {
            text.push_str(": ");
            text.push_str(&error.to_string());
            cause = error.source();
        }
        Self(text)
    }

    /// Creates the failure of an address that cannot be bound, with the option that changes it.
    pub(crate) fn of_address(address: SocketAddr, option: &str, error: &dyn Error) -> Self {
        let Self(text) = Self::of("", error);
        let text = text.trim_start_matches(": ");
        // Most errors of an address say already which one it is.
        let text = match text.contains(&address.to_string()) {
            true => text.to_owned(),
            false => format!("cannot listen on {address}: {text}"),
        };
        Self(format!(
            "{text}\nChoose another address: --{option} 127.0.0.1:0"
        ))
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}
