use std::time::Duration;

/// Waits between attempts that fail one after the other. The limit of a wait doubles with each failure, and
/// the wait is random below it.
///
/// The policy keeps no state and holds no randomness: callers count their failures and draw the random
/// numbers, so that tests can choose both.
///
/// ```
/// use std::time::Duration;
/// use discovery_core::Backoff;
///
/// let backoff = Backoff::new(Duration::from_millis(500), Duration::from_secs(30));
/// assert_eq!(backoff.limit(1), Duration::from_millis(500));
/// assert_eq!(backoff.limit(3), Duration::from_secs(2));
/// assert_eq!(backoff.limit(40), Duration::from_secs(30));
/// assert_eq!(backoff.wait(3, 0.5), Duration::from_millis(1500));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Backoff {
    first: Duration,
    longest: Duration,
}

impl Backoff {
    /// Creates a policy whose limit is `first` after one failure, and `longest` at most.
    pub const fn new(first: Duration, longest: Duration) -> Self {
        Self { first, longest }
    }

    /// The limit after one failure.
    pub const fn first(&self) -> Duration {
        self.first
    }

    /// The largest limit.
    pub const fn longest(&self) -> Duration {
        self.longest
    }

    /// Returns the limit after this many consecutive failures. Without a failure it is that of the first.
    pub fn limit(&self, failures: u32) -> Duration {
        let doubled = 2_u32.saturating_pow(failures.saturating_sub(1));
        self.first.saturating_mul(doubled).min(self.longest)
    }

    /// Returns a wait in the upper half of the limit. Clients that failed together do not come back
    /// together, and none comes back at once. `random` is from 0 to 1.
    pub fn wait(&self, failures: u32, random: f64) -> Duration {
        let limit = self.limit(failures);
        between(limit / 2, limit, random)
    }

    /// Returns a wait from half of the [first](Self::first) to the limit ("full jitter"). It spreads
    /// clients over more time than [`wait`](Self::wait), and some of them come back much earlier. `random`
    /// is from 0 to 1.
    pub fn wide_wait(&self, failures: u32, random: f64) -> Duration {
        between(self.first / 2, self.limit(failures), random)
    }
}

fn between(least: Duration, most: Duration, random: f64) -> Duration {
    least + most.saturating_sub(least).mul_f64(random)
}

#[cfg(test)]
mod tests {
    use super::*;

    const BACKOFF: Backoff = Backoff::new(Duration::from_millis(100), Duration::from_secs(1));

    #[test]
    fn limits_double_up_to_the_longest() {
        let limits =
            [0, 1, 2, 4, 5, 6, u32::MAX].map(|failures| BACKOFF.limit(failures).as_millis());
        assert_eq!(limits, [100, 100, 200, 800, 1000, 1000, 1000]);
    }

    #[test]
    fn a_longest_below_the_first_wins() {
        let backoff = Backoff::new(Duration::from_secs(2), Duration::from_secs(1));
        assert_eq!(backoff.limit(1), Duration::from_secs(1));
        assert_eq!(backoff.wide_wait(1, 1.0), Duration::from_secs(1));
    }

    #[test]
    fn waits_lie_in_the_upper_half_or_in_all_of_the_limit() {
        for (random, wait, wide) in [(0.0, 400, 50), (0.5, 600, 425), (1.0, 800, 800)] {
            assert_eq!(BACKOFF.wait(4, random).as_millis(), wait);
            assert_eq!(BACKOFF.wide_wait(4, random).as_millis(), wide);
        }
    }
}
