use std::time::Duration;

use parking_lot::{Mutex, MutexGuard};
use tokio::time::Instant;

use crate::hosting::Timestamp;

/// The pace of virtual time.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub enum Time {
    /// Virtual time follows the real clock at this speed.
    Real {
        /// The seconds of the cluster in one second; more than 0, at most 10,000.
        speed: f64,
    },
    /// Virtual time moves only by [`Emulator::advance`](super::Emulator::advance).
    Manual,
}

impl Default for Time {
    fn default() -> Self {
        Self::Real { speed: 1.0 }
    }
}

/// The maximum speed of virtual time.
pub(super) const MAX_SPEED: f64 = 10_000.0;
/// The end of virtual time, after some three thousand years.
const END: u64 = 100_000_000_000_000;

/// The clock of virtual time.
#[derive(Debug)]
pub(crate) struct Clock(Mutex<ClockState>);

#[derive(Clone, Copy, Debug)]
struct ClockState {
    /// The moment at `since`.
    base: u64,
    since: Instant,
    /// The speed. 0 while time stands still.
    speed: f64,
}

impl ClockState {
    fn now(&self) -> u64 {
        let elapsed = self.since.elapsed().as_secs_f64() * 1_000.0 * self.speed;
        // A float becomes the nearest integer.
        self.base.saturating_add(elapsed as u64).min(END)
    }
}

impl Clock {
    /// Creates a clock at moment 0.
    pub(super) fn new(time: Time) -> Self {
        let speed = match time {
            Time::Real { speed } => speed,
            Time::Manual => 0.0,
        };
        Self(Mutex::new(ClockState {
            base: 0,
            since: Instant::now(),
            speed,
        }))
    }

    /// The present moment.
    pub(crate) fn now(&self) -> Timestamp {
        Timestamp::from_millis(self.lock().now())
    }

    /// Returns the seconds of the cluster in one second; 0 if time is moved by hand.
    pub(crate) fn speed(&self) -> f64 {
        self.lock().speed
    }

    /// Moves the clock forward at once.
    pub(crate) fn skip(&self, by: Duration) {
        let mut state = self.lock();
        let by = u64::try_from(by.as_millis()).unwrap_or(u64::MAX);
        state.base = state.base.saturating_add(by).min(END);
    }

    /// Returns the real time at which this moment comes. `None` if it never comes without intervention.
    pub(super) fn instant(&self, moment: Timestamp) -> Option<Instant> {
        let state = self.lock();
        if state.speed <= 0.0 {
            // A stopped clock reaches no later moment by itself.
            return None;
        }
        let ahead = moment.as_millis().saturating_sub(state.base) as f64 / 1_000.0;
        let after = Duration::try_from_secs_f64(ahead / state.speed).ok()?;
        // Timers count whole milliseconds; one more, so that the moment is certainly reached.
        state
            .since
            .checked_add(after.saturating_add(Duration::from_millis(1)))
    }

    /// Locks the state. Every change is atomic, so a panic of another thread leaves it consistent.
    fn lock(&self) -> MutexGuard<'_, ClockState> {
        self.0.lock()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn time_goes_as_fast_as_it_is_told() {
        let clock = Clock::new(Time::Real { speed: 10.0 });
        tokio::time::advance(Duration::from_secs(3)).await;
        assert_eq!(clock.now(), Timestamp::from_secs(30));
        clock.skip(Duration::from_secs(5));
        assert_eq!(clock.now(), Timestamp::from_secs(35));
    }

    #[tokio::test(start_paused = true)]
    async fn by_hand_time_stands_until_it_is_moved() {
        let clock = Clock::new(Time::Manual);
        tokio::time::advance(Duration::from_secs(3)).await;
        assert_eq!(clock.now(), Timestamp::ZERO);
        assert_eq!(clock.instant(Timestamp::from_secs(1)), None);
        clock.skip(Duration::from_millis(1_500));
        assert_eq!(clock.now(), Timestamp::from_millis(1_500));
    }

    #[tokio::test(start_paused = true)]
    async fn at_the_instant_of_a_moment_it_has_come() {
        let clock = Clock::new(Time::Real { speed: 3.0 });
        let due = Timestamp::from_millis(10_001);
        let instant = clock.instant(due).unwrap();
        tokio::time::sleep_until(instant).await;
        assert!(clock.now() >= due, "{:?}", clock.now());
        assert!(
            clock.now() < Timestamp::from_millis(10_010),
            "{:?}",
            clock.now()
        );
    }
}
