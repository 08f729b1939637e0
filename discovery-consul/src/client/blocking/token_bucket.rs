//! A rate limiter.

use std::time::Duration;

use tokio::time::Instant;

/// A token bucket: a few actions at once, then one per period.
#[derive(Clone, Debug)]
pub(crate) struct TokenBucket {
    burst: u32,
    period: Duration,
    /// The time at which the bucket is full again. It has a token for each whole period that this is nearer
    /// than `burst` periods.
    full_at: Instant,
}

impl TokenBucket {
    /// Creates a full bucket.
    pub(crate) fn new(burst: u32, period: Duration) -> Self {
        Self {
            burst: burst.max(1),
            period,
            full_at: Instant::now(),
        }
    }

    /// Takes a token, and returns the time at which it is available.
    pub(crate) fn take(&mut self) -> Instant {
        let now = Instant::now();
        self.full_at = self.full_at.max(now) + self.period;
        let spare = self.period * self.burst;
        let due = self.full_at.checked_sub(spare).unwrap_or(now);
        due.max(now)
    }

    /// Waits for a token.
    ///
    /// # Cancel safety
    ///
    /// A token is lost if the future is dropped, since it is taken at once.
    pub(crate) async fn wait(&mut self) {
        let due = self.take();
        if due > Instant::now() {
            tokio::time::sleep_until(due).await;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_burst_is_free_and_then_each_period_gives_one() {
        let mut pace = TokenBucket::new(2, Duration::from_secs(10));
        let start = Instant::now();
        let mut waited = Vec::new();
        for _ in 0..4 {
            pace.wait().await;
            waited.push(start.elapsed().as_secs());
        }
        assert_eq!(waited, [0, 0, 10, 20]);
        // A pause fills it again, and no more than to the brim.
        tokio::time::sleep(Duration::from_secs(1000)).await;
        let start = Instant::now();
        for _ in 0..3 {
            pace.wait().await;
        }
        assert_eq!(start.elapsed().as_secs(), 10);
    }
}
