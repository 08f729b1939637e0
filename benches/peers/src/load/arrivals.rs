//! The schedule of an open loop.

use std::collections::VecDeque;
use std::time::Duration;

/// Requests at equal intervals, and those that wait for a connection.
///
/// Time runs from the first one. A request that waits, because all connections are busy or the
/// generator is late, keeps its due time: its wait is part of its latency, as it would be for a
/// real client.
#[derive(Debug)]
pub(super) struct Arrivals {
    rate: f64,
    due: u64,
    waiting: VecDeque<Duration>,
}

impl Arrivals {
    /// A schedule of `rate` requests per second.
    pub(super) fn at_rate(rate: f64) -> Self {
        Self {
            rate,
            due: 0,
            waiting: VecDeque::new(),
        }
    }

    /// Adds all requests that are due by now.
    pub(super) fn advance(&mut self, now: Duration) {
        while self.next() <= now {
            self.waiting.push_back(self.next());
            self.due += 1;
        }
    }

    /// Takes the next request to send. Returns its due time.
    pub(super) fn take(&mut self) -> Option<Duration> {
        self.waiting.pop_front()
    }

    /// Puts the last taken request back, since it cannot be sent.
    pub(super) fn put_back(&mut self, due: Duration) {
        self.waiting.push_front(due);
    }

    /// The due time of the next request.
    pub(super) fn next(&self) -> Duration {
        #[expect(
            clippy::cast_precision_loss,
            reason = "a measurement has far fewer than 2^52 requests"
        )]
        Duration::from_secs_f64(self.due as f64 / self.rate)
    }

    /// Number of due requests that were not taken.
    pub(super) fn waiting(&self) -> u64 {
        self.waiting.len() as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: Duration = Duration::from_millis(1);

    #[test]
    fn requests_are_due_at_equal_intervals_from_the_beginning() {
        let mut arrivals = Arrivals::at_rate(1000.0);
        arrivals.advance(Duration::ZERO);
        assert_eq!(
            (arrivals.take(), arrivals.take()),
            (Some(Duration::ZERO), None)
        );
        assert_eq!(arrivals.next(), MS);
        arrivals.advance(MS - Duration::from_nanos(1));
        assert_eq!(arrivals.take(), None);
        arrivals.advance(MS);
        assert_eq!(arrivals.take(), Some(MS));
    }

    #[test]
    fn a_generator_that_slept_too_long_does_not_forgive_the_proxy() {
        let mut arrivals = Arrivals::at_rate(1000.0);
        // After 5 ms without a call: six are due, each at its own time.
        arrivals.advance(5 * MS);
        let due: Vec<_> = std::iter::from_fn(|| arrivals.take()).collect();
        assert_eq!(due, [0, 1, 2, 3, 4, 5].map(|ms| ms * MS));
    }

    #[test]
    fn what_waits_for_a_connection_keeps_its_instant() {
        let mut arrivals = Arrivals::at_rate(1000.0);
        arrivals.advance(2 * MS);
        assert_eq!(arrivals.take(), Some(Duration::ZERO));
        arrivals.advance(10 * MS);
        // A connection becomes free after 10 ms: the request of 1 ms has waited for 9.
        assert_eq!(arrivals.take().map(|due| 10 * MS - due), Some(9 * MS));
        assert_eq!(arrivals.waiting(), 9);
        arrivals.put_back(MS);
        assert_eq!((arrivals.waiting(), arrivals.take()), (10, Some(MS)));
    }
}
