//! Points in time whose age can be shown.

use std::time::{Duration, SystemTime};

use serde::{Serialize, Serializer};
use tokio::time::Instant;

/// A point in time, measured on tokio's monotonic clock. Its age does not jump if the wall clock is set,
/// and follows tokio's paused time in tests.
///
/// Serialised as its age in seconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Timestamp {
    seen: Instant,
    /// The age at the time of `seen`. A moment before this process began cannot be an `Instant`.
    age_when_seen: Duration,
}

impl Timestamp {
    /// Returns the current moment.
    pub fn now() -> Self {
        Self::ago(Duration::ZERO)
    }

    /// Creates a moment that lies `age` in the past.
    pub fn ago(age: Duration) -> Self {
        Self {
            seen: Instant::now(),
            age_when_seen: age,
        }
    }

    /// The time that has passed since the moment.
    pub fn age(&self) -> Duration {
        self.age_when_seen.saturating_add(self.seen.elapsed())
    }

    /// The moment by the wall clock's current setting. For display only.
    pub fn wall_clock(&self) -> SystemTime {
        SystemTime::now()
            .checked_sub(self.age())
            .unwrap_or(SystemTime::UNIX_EPOCH)
    }
}

impl Serialize for Timestamp {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_f64(self.age().as_secs_f64())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn ages_follow_tokio_s_clock() {
        let restored = Timestamp::ago(Duration::from_secs(3600));
        let now = Timestamp::now();
        tokio::time::advance(Duration::from_secs(90)).await;
        assert_eq!(now.age(), Duration::from_secs(90));
        assert_eq!(restored.age(), Duration::from_secs(3690));
        assert_eq!(serde_json::to_string(&now).unwrap(), "90.0");
    }
}
