//! The reports about settings that Envoy does not support.

use proxy_model::{Problem, Problems};

/// A code of problems: Envoy cannot do it, so it is not published.
pub const LEFT_OUT: &str = "not_in_envoy";
/// A code of problems: Envoy behaves differently.
pub const DIFFERS: &str = "differs_in_envoy";

/// The reason why a setting has no equivalent in Envoy's configuration.
#[derive(Debug)]
pub(super) struct Inexpressible {
    /// The key below the route or cluster.
    pub(super) key: String,
    pub(super) message: String,
}

impl Inexpressible {
    pub(super) fn new(key: impl Into<String>, message: impl Into<String>) -> Self {
        Self {
            key: key.into(),
            message: message.into(),
        }
    }
}

/// The collected problems of one route or cluster.
#[derive(Debug)]
pub(super) struct Report<'p> {
    pointer: String,
    problems: &'p mut Problems,
}

impl<'p> Report<'p> {
    pub(super) fn new(pointer: String, problems: &'p mut Problems) -> Self {
        Self { pointer, problems }
    }

    /// Reports a warning: Envoy does something a little differently.
    pub(super) fn differs(&mut self, key: &str, message: impl Into<String>) {
        let pointer = self.place(key);
        self.problems
            .push(Problem::warning(pointer, DIFFERS, message));
    }

    /// Reports an error: the route or cluster is left out.
    pub(super) fn left_out(&mut self, reason: &Inexpressible) {
        let pointer = self.place(&reason.key);
        self.problems
            .push(Problem::error(pointer, LEFT_OUT, reason.message.as_str()));
    }

    fn place(&self, key: &str) -> String {
        match key {
            "" => self.pointer.clone(),
            key => format!("{}/{key}", self.pointer),
        }
    }
}
