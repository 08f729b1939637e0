use std::time::Duration;

/// Waits between attempts that fail one after the other. The limit of a wait grows with each failure, to the
/// double unless the policy says otherwise, and the wait is random below or above it.
///
/// The policy keeps no state and holds no randomness: callers count their failures and draw the random
/// numbers, so that tests can choose both.
///
/// ```
/// use std::time::Duration;
/// use discovery_http::Backoff;
///
/// let backoff = Backoff::new(Duration::from_millis(500), Duration::from_secs(30));
/// assert_eq!(backoff.limit(1), Duration::from_millis(500));
/// assert_eq!(backoff.limit(3), Duration::from_secs(2));
/// assert_eq!(backoff.limit(40), Duration::from_secs(30));
/// assert_eq!(backoff.wait(3, 0.5), Duration::from_millis(1500));
/// ```
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Backoff {
    first: Duration,
    longest: Duration,
    growth: f64,
}

impl Backoff {
    /// Creates a policy whose limit is `first` after one failure, and `longest` at most.
    pub const fn new(first: Duration, longest: Duration) -> Self {
        Self {
            first,
            longest,
            growth: 2.0,
        }
    }

    /// Sets the factor by which each limit exceeds the one before. Default: 2.
    #[must_use]
    pub const fn with_growth(mut self, factor: f64) -> Self {
        self.growth = factor;
        self
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
        let exponent = i32::try_from(failures.saturating_sub(1)).unwrap_or(i32::MAX);
        let grown = self.first.as_secs_f64() * self.growth.powi(exponent);
        Duration::try_from_secs_f64(grown).map_or(self.longest, |limit| limit.min(self.longest))
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

    /// Returns a wait from the limit to the limit and this share of it, and the longest at most, as Kubernetes' client and its
    /// cloud providers wait. `random` is from 0 to 1.
    pub fn wait_above(&self, failures: u32, share: f64, random: f64) -> Duration {
        let limit = self.limit(failures);
        let wait = limit.as_secs_f64() * (1.0 + share * random);
        Duration::try_from_secs_f64(wait).map_or(self.longest, |wait| wait.min(self.longest))
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
    fn limits_grow_by_the_factor_of_the_policy() {
        let backoff = BACKOFF.with_growth(1.5);
        let limits = [0, 1, 2, 3, 6, 7, u32::MAX].map(|failures| backoff.limit(failures));
        let micros = limits.map(|limit| limit.as_micros());
        assert_eq!(
            micros,
            [
                100_000, 100_000, 150_000, 225_000, 759_375, 1_000_000, 1_000_000
            ]
        );
        // A factor that nobody can mean gives no wait that is longer than the longest, and none that is not a time.
        for factor in [0.0, -3.0, f64::NAN, f64::INFINITY] {
            let limit = BACKOFF.with_growth(factor).limit(3);
            assert!(limit <= BACKOFF.longest(), "{factor}: {limit:?}");
        }
    }

    #[test]
    fn waits_above_the_limit_stay_below_the_longest() {
        for (failures, share, random, expected) in [
            (3, 1.0, 0.0, 400),
            (3, 1.0, 0.5, 600),
            (3, 1.0, 1.0, 800),
            (3, 0.1, 1.0, 440),
            (4, 1.0, 0.5, 1000),
            (9, 1.0, 1.0, 1000),
        ] {
            let wait = BACKOFF.wait_above(failures, share, random);
            assert_eq!(wait.as_millis(), expected, "{failures} {share} {random}");
        }
    }

    #[test]
    fn waits_lie_in_the_upper_half_or_in_all_of_the_limit() {
        for (random, wait, wide) in [(0.0, 400, 50), (0.5, 600, 425), (1.0, 800, 800)] {
            assert_eq!(BACKOFF.wait(4, random).as_millis(), wait);
            assert_eq!(BACKOFF.wide_wait(4, random).as_millis(), wide);
        }
    }
}
