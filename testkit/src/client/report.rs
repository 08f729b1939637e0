use std::collections::BTreeMap;
use std::fmt;

/// What a [`Load`](super::Load) did.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct LoadReport {
    /// Exchanges that were begun and came to an end, well or badly.
    pub finished: u64,
    /// Of these, the ones that were as expected.
    pub succeeded: u64,
    /// The others, by reason.
    pub failed: BTreeMap<String, u64>,
    /// Connections opened.
    pub connections: u64,
    /// Times that the server had closed a connection before anything of the next request was sent, so that it went out on a
    /// new one: what every client does, and no failure.
    pub reconnects: u64,
}

impl LoadReport {
    /// How many exchanges failed.
    pub fn failures(&self) -> u64 {
        self.failed.values().sum()
    }

    /// Panics with all reasons if anything failed, or if nothing was done at all.
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
