//! The error of a source that could not be polled.

use std::error::Error;
use std::time::Duration;

use proxy_model::Problems;
use serde::Serialize;

use crate::contain::Broken;
use crate::text::with_causes;

/// The error of a source that could not be polled.
///
/// The message describes the query and the problem in one line, without the cause; the cause is kept as
/// [`source`](Error::source). Messages are shown to operators, so neither may contain a secret.
#[derive(Debug, thiserror::Error)]
#[error("{message}")]
pub struct DiscoverError {
    kind: DiscoverErrorKind,
    message: String,
    retry_after: Option<Duration>,
    problems: Problems,
    source: Option<Box<dyn Error + Send + Sync>>,
}

/// Kind of a [`DiscoverError`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum DiscoverErrorKind {
    /// A failure that may pass soon: a refused connection, an overloaded server, a lost leader.
    Transient,
    /// A failure that lasts until an operator changes something: a wrong address, unusable data.
    Permanent,
    /// A response of the source that rejects the poll: a wrong credential, a missing permission. It lasts until an
    /// operator changes something.
    Rejected,
    /// A time-out of the source, set by the runner.
    TimedOut,
    /// A panic of the source's code, set by the runner.
    Panicked,
}

impl DiscoverErrorKind {
    /// The name of the kind in metrics, logs and traces.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Transient => "transient",
            Self::Permanent => "permanent",
            Self::TimedOut => "timed_out",
            Self::Panicked => "panicked",
            Self::Rejected => "rejected",
        }
    }

    /// Returns true if the failure lasts until an operator changes something, so that an early retry is in vain.
    pub const fn is_lasting(self) -> bool {
        matches!(self, Self::Permanent | Self::Rejected)
    }

    /// Returns what happens with sources that fail like this, and what serves, for a log or a list: `source rejects the
    /// request, its last known good configuration serves`. Without a configuration nothing serves.
    pub fn outage(self, sources: usize, has_config: bool) -> String {
        let (one, many) = match self {
            Self::Rejected => ("rejects the request", "reject the request"),
            Self::TimedOut => ("does not answer", "do not answer"),
            Self::Transient | Self::Permanent | Self::Panicked => {
                ("cannot be read", "cannot be read")
            }
        };
        match (sources, has_config) {
            (1, true) => format!("source {one}, its last known good configuration serves"),
            (1, false) => format!("source {one}, nothing of it serves yet"),
            (_, true) => format!("sources {many}, their last known good configuration serves"),
            (_, false) => format!("sources {many}, nothing of them serves yet"),
        }
    }

    /// Returns the same as [`outage`](Self::outage) for sources of which only some calls fail.
    pub fn partial_outage(self, sources: usize) -> &'static str {
        match (self, sources) {
            (Self::Rejected, 1) => {
                "source rejects a part of the requests, older answers stand in for the rest"
            }
            (Self::Rejected, _) => {
                "sources reject a part of the requests, older answers stand in for the rest"
            }
            (_, 1) => "source answers in part, older answers stand in for the rest",
            (_, _) => "sources answer in part, older answers stand in for the rest",
        }
    }
}

impl DiscoverError {
    /// Creates an error that may pass soon. The source is polled again after a back-off.
    pub fn transient(message: impl Into<String>) -> Self {
        Self::new(DiscoverErrorKind::Transient, message.into())
    }

    /// Creates an error that lasts until an operator changes something. The source is polled again, but
    /// only at the longest back-off.
    pub fn permanent(message: impl Into<String>) -> Self {
        Self::new(DiscoverErrorKind::Permanent, message.into())
    }

    /// Creates the error of a source that responded and rejected the poll: a wrong credential, a missing permission.
    /// The message has the status. The source is polled again at the longest back-off, as after a
    /// [permanent](Self::permanent) error.
    pub fn rejected(message: impl Into<String>) -> Self {
        Self::new(DiscoverErrorKind::Rejected, message.into())
    }

    pub(crate) fn timed_out(after: Duration) -> Self {
        Self::new(
            DiscoverErrorKind::TimedOut,
            format!("no answer within {after:?}"),
        )
    }

    /// Creates the error for a conversion that took too long or panicked.
    pub(crate) fn unfinished(broken: &Broken) -> Self {
        let kind = match broken {
            Broken::Panicked(_) => DiscoverErrorKind::Panicked,
            Broken::TimedOut(_) | Broken::Stuck => DiscoverErrorKind::TimedOut,
        };
        Self::new(
            kind,
            format!("making configuration of the services {broken}"),
        )
    }

    pub(crate) fn panicked(message: &str) -> Self {
        Self::new(
            DiscoverErrorKind::Panicked,
            format!("the discoverer panicked: {message}"),
        )
    }

    fn new(kind: DiscoverErrorKind, message: String) -> Self {
        Self {
            kind,
            message,
            retry_after: None,
            problems: Problems::new(),
            source: None,
        }
    }

    /// Sets the time to wait before the next poll, for a server that named one (`Retry-After`). The runner
    /// waits at least this long, up to
    /// [`RunnerOptions::retry_after_max`](crate::RunnerOptions::retry_after_max).
    #[must_use]
    pub fn with_retry_after(mut self, wait: Duration) -> Self {
        self.retry_after = Some(wait);
        self
    }

    /// Adds the problems of the source's data, if that is unusable. They are shown with the problems of the
    /// source.
    #[must_use]
    pub fn with_problems(mut self, problems: Problems) -> Self {
        self.problems = problems;
        self
    }

    /// Adds the cause.
    #[must_use]
    pub fn with_source(mut self, source: impl Into<Box<dyn Error + Send + Sync>>) -> Self {
        self.source = Some(source.into());
        self
    }

    /// The kind of error.
    pub fn kind(&self) -> DiscoverErrorKind {
        self.kind
    }

    /// The problems in the source's data.
    pub fn problems(&self) -> &Problems {
        &self.problems
    }

    /// The time to wait before the next poll, if the server named one.
    pub fn retry_after(&self) -> Option<Duration> {
        self.retry_after
    }

    /// The message with all its causes, separated by `: `.
    pub fn chain(&self) -> String {
        with_causes(self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_chain_names_every_cause_and_display_only_itself() {
        let rejected = std::io::Error::new(std::io::ErrorKind::ConnectionRefused, "refused");
        let error = DiscoverError::transient("the agent cannot be reached")
            .with_source(
                DiscoverError::transient("connect to 127.0.0.1:7373").with_source(rejected),
            )
            .with_retry_after(Duration::from_secs(3));
        assert_eq!(error.to_string(), "the agent cannot be reached");
        assert_eq!(
            error.chain(),
            "the agent cannot be reached: connect to 127.0.0.1:7373: refused"
        );
        assert_eq!(error.retry_after(), Some(Duration::from_secs(3)));
        assert_eq!(error.kind(), DiscoverErrorKind::Transient);
    }
}
