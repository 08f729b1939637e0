use std::collections::BTreeMap;
use std::fmt;

/// The results of a [`Load`](super::Load).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct LoadReport {
    /// Number of exchanges that have ended, successfully or not.
    pub finished: u64,
    /// Number of these with the expected result.
    pub succeeded: u64,
    /// The others, by reason.
    pub failed: BTreeMap<String, u64>,
    /// Connections opened.
    pub connections: u64,
    /// Number of times that the server had closed a connection before any byte of the next request
    /// was sent, so that a new one was used: normal for every client, and no failure.
    pub reconnects: u64,
}

impl LoadReport {
    /// Number of failed exchanges.
    pub fn failures(&self) -> u64 {
        self.failed.values().sum()
    }

    /// Panics with all reasons if an exchange failed, or if there was none.
    #[track_caller]
    pub fn assert_no_failure(&self) {
        assert!(self.succeeded > 0, "the load did nothing: {self}");
        assert_eq!(self.failures(), 0, "{self}");
    }

    pub(super) fn record(&mut self, outcome: Result<(), String>) {
        self.finished += 1;
        match outcome {
            Ok(()) => self.succeeded += 1,
            Err(reason) => *self.failed.entry(reason).or_default() += 1,
        }
    }
}

impl fmt::Display for LoadReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{} of {} requests succeeded over {} connections ({} reconnects)",
            self.succeeded, self.finished, self.connections, self.reconnects
        )?;
        for (reason, count) in &self.failed {
            write!(f, "\n  {count} × {reason}")?;
        }
        Ok(())
    }
}
