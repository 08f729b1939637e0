//! The state that upload and download of the typed path share. The last of them to drop it ends the request at the
//! destination.

use std::time::Duration;

use tokio::time::Instant;

use crate::live::InFlight;
use crate::progress::Activity;

/// The shared state of both directions of a request. The request counts as in flight while one of them holds it.
#[derive(Debug)]
pub(crate) struct SharedProgress {
    pub(crate) activity: Activity,
    in_flight: InFlight,
}

impl SharedProgress {
    /// Creates the state of a request that begins at `start`.
    pub(crate) fn new(in_flight: InFlight, activity_timeout: Duration, start: Instant) -> Self {
        Self {
            activity: Activity::new(activity_timeout, start),
            in_flight,
        }
    }

    /// Ends the exchange at this time, whatever its progress.
    pub(crate) fn ending_at(mut self, end: Option<Instant>) -> Self {
        self.activity = self.activity.ending_at(end);
        self
    }

    /// The count of requests in flight at the destination.
    pub(crate) fn in_flight(&self) -> &InFlight {
        &self.in_flight
    }
}
