//! The minimum data rate of clients.

use std::time::Duration;

/// The minimum data rate of a client while the proxy waits for it.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub struct DataRate {
    /// Bytes per second, on average over [`window`](Self::window). 0 allows any rate. Default: 240.
    pub bytes_per_second: u32,
    /// The time over which the rate is averaged.
    ///
    /// Counts only time in which the proxy waits for the client, not for a destination. At least
    /// 100 ms; [`Duration::MAX`] allows any rate. Default: 30 s.
    pub window: Duration,
}

impl Default for DataRate {
    fn default() -> Self {
        Self {
            bytes_per_second: 240,
            window: Duration::from_secs(30),
        }
    }
}

impl DataRate {
    /// The minimum window: 100 ms. Clients are checked once per window, and a packet may take that
    /// long.
    const LEAST_WINDOW: Duration = Duration::from_millis(100);

    /// A rate of `bytes_per_second`, on average over `window`, at least
    /// 100 ms.
    pub fn new(bytes_per_second: u32, window: Duration) -> Self {
        Self {
            bytes_per_second,
            window: window.max(Self::LEAST_WINDOW),
        }
    }

    /// The rate with a valid window; `None` if it allows any rate.
    pub(crate) fn effective(self) -> Option<Self> {
        let asks = self.bytes_per_second > 0 && self.window < Duration::MAX;
        asks.then(|| Self::new(self.bytes_per_second, self.window))
    }

    /// Number of bytes required in `elapsed`, rounded up: a transfer without progress is never fast
    /// enough.
    pub(crate) fn least(&self, elapsed: Duration) -> u64 {
        const NANOS: u128 = 1_000_000_000;
        let bytes = u128::from(self.bytes_per_second) * elapsed.as_nanos();
        u64::try_from(bytes.div_ceil(NANOS)).unwrap_or(u64::MAX)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_window_takes_time_however_it_was_set() {
        for window in [0, 1, 99, 100].map(Duration::from_millis) {
            let mut rate = DataRate::new(240, window);
            assert_eq!(rate.window, DataRate::LEAST_WINDOW);
            rate.window = window;
            assert_eq!(rate.effective().unwrap().window, DataRate::LEAST_WINDOW);
        }
        let long = DataRate::new(240, Duration::from_millis(101));
        assert_eq!(long.window, Duration::from_millis(101));
        assert_eq!(long.effective(), Some(long));
    }

    #[test]
    fn what_asks_for_nothing_is_none() {
        assert_eq!(DataRate::new(0, Duration::from_secs(1)).effective(), None);
        assert_eq!(DataRate::new(240, Duration::MAX).effective(), None);
        let least = DataRate::new(1, Duration::from_secs(1));
        assert_eq!(least.effective(), Some(least));
    }

    #[test]
    fn bytes_are_rounded_up() {
        for (rate, millis, bytes) in [
            (240, 30_000, 7200),
            (240, 100, 24),
            (1, 100, 1),
            (3, 1001, 4),
            (0, 1000, 0),
            (240, 0, 0),
        ] {
            let rate = DataRate::new(rate, Duration::from_secs(1));
            assert_eq!(rate.least(Duration::from_millis(millis)), bytes);
        }
        let most = DataRate::new(u32::MAX, Duration::MAX);
        assert_eq!(most.least(Duration::MAX), u64::MAX);
    }
}
