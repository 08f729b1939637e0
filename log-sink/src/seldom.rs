use std::time::{Duration, Instant};

use parking_lot::Mutex;

/// A rate limit for log messages of one cause. A stranger who can repeat the cause cannot fill the log with
/// it.
///
/// ```
/// use std::time::Duration;
///
/// use log_sink::Seldom;
///
/// static SELDOM: Seldom = Seldom::new(Duration::from_secs(10));
/// assert_eq!(SELDOM.pass(), Some(0));
/// assert_eq!(SELDOM.pass(), None);
/// ```
#[derive(Debug)]
pub struct Seldom {
    pause: Duration,
    state: Mutex<SeldomState>,
}

#[derive(Debug)]
struct SeldomState {
    last: Option<Instant>,
    left_out: u64,
}

impl Seldom {
    /// Creates a limit of one line in `pause`.
    pub const fn new(pause: Duration) -> Self {
        Self {
            pause,
            state: Mutex::new(SeldomState {
                last: None,
                left_out: 0,
            }),
        }
    }

    /// Returns the number of messages suppressed since the last one, if a message may be logged now.
    pub fn pass(&self) -> Option<u64> {
        self.pass_at(Instant::now())
    }

    fn pass_at(&self, now: Instant) -> Option<u64> {
        let mut state = self.state.lock();
        let is_early = |last: Instant| now.saturating_duration_since(last) < self.pause;
        if state.last.is_some_and(is_early) {
            state.left_out += 1;
            return None;
        }
        state.last = Some(now);
        Some(std::mem::take(&mut state.left_out))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cause_is_logged_once_in_a_while_and_the_others_are_counted() {
        let pause = Duration::from_secs(10);
        let (seldom, begin) = (Seldom::new(pause), Instant::now());
        assert_eq!(seldom.pass_at(begin), Some(0));
        assert_eq!(seldom.pass_at(begin), None);
        assert_eq!(seldom.pass_at(begin + pause / 2), None);
        assert_eq!(seldom.pass_at(begin + pause), Some(2));
        assert_eq!(seldom.pass_at(begin + pause), None);
    }
}
