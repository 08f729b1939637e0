//! The schedule of polls.

use std::time::Duration;

use fastrand::Rng;

use super::options::{RunnerOptions, SHORTEST};
use crate::backoff::Backoff;
use crate::error::DiscoverError;

/// Decides waits. Holds the only randomness of a runner.
#[derive(Debug)]
pub(super) struct Schedule {
    rng: Rng,
    interval: Duration,
    jitter: f64,
    backoff: Backoff,
    retry_after_max: Duration,
}

impl Schedule {
    pub(super) fn new(options: &RunnerOptions) -> Self {
        let jitter = if options.jitter.is_finite() {
            options.jitter.clamp(0.0, 0.9)
        } else {
            0.0
        };
        let backoff = options.backoff.max(SHORTEST);
        Self {
            rng: options.seed.map_or_else(Rng::new, Rng::with_seed),
            interval: options.interval.max(SHORTEST),
            jitter,
            backoff: Backoff::new(backoff, options.backoff_max.max(backoff)),
            retry_after_max: options.retry_after_max,
        }
    }

    /// Returns the wait after a successful cycle: the interval, varied by the jitter.
    pub(super) fn after_success(&mut self) -> Duration {
        let factor = 1.0 + self.jitter * (2.0 * self.rng.f64() - 1.0);
        self.interval.mul_f64(factor)
    }

    /// The longest wait after a first error.
    pub(super) fn first_step(&self) -> Duration {
        self.backoff.first()
    }

    /// Returns the wait after the `failures`th consecutive error: random below a limit that doubles each
    /// time, and at least the wait that the source requested.
    ///
    /// The randomness spreads the proxies of a fleet over the whole time ("full jitter"), but never lets
    /// one poll again at once.
    pub(super) fn after_error(&mut self, failures: u32, error: &DiscoverError) -> Duration {
        let random = self.rng.f64();
        let wait = match error.kind().is_lasting() {
            true => self.backoff.wait(u32::MAX, random),
            false => self.backoff.wide_wait(failures, random),
        };
        let asked = error.retry_after().unwrap_or_default();
        wait.max(asked.min(self.retry_after_max))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn schedule(seed: u64) -> Schedule {
        Schedule::new(&RunnerOptions::default().with_seed(seed))
    }

    #[test]
    fn intervals_stay_within_the_jitter_and_use_all_of_it() {
        let mut schedule = schedule(1);
        let waits: Vec<_> = (0..1000).map(|_| schedule.after_success()).collect();
        let (least, most) = (*waits.iter().min().unwrap(), *waits.iter().max().unwrap());
        assert!(least >= Duration::from_secs(27) && least < Duration::from_millis(27_100));
        assert!(most <= Duration::from_secs(33) && most > Duration::from_millis(32_900));
    }

    #[test]
    fn the_same_seed_gives_the_same_waits() {
        let waits = |seed| {
            let mut schedule = schedule(seed);
            [(); 5].map(|()| schedule.after_success())
        };
        assert_eq!(waits(7), waits(7));
        assert_ne!(waits(7), waits(8));
    }

    #[test]
    fn errors_wait_longer_each_time_up_to_a_limit() {
        let error = DiscoverError::transient("down");
        for (failures, most_ms) in [
            (1, 500),
            (2, 1000),
            (3, 2000),
            (7, 30_000),
            (u32::MAX, 30_000),
        ] {
            let mut schedule = schedule(3);
            let waits: Vec<_> = (0..500)
                .map(|_| schedule.after_error(failures, &error))
                .collect();
            let (least, most) = (*waits.iter().min().unwrap(), *waits.iter().max().unwrap());
            let limit = Duration::from_millis(most_ms);
            assert!(least >= Duration::from_millis(250), "{failures}: {least:?}");
            assert!(
                most <= limit && most > limit.mul_f64(0.9),
                "{failures}: {most:?}"
            );
        }
    }

    #[test]
    fn what_the_source_asks_for_is_honoured_within_reason() {
        let mut schedule = schedule(4);
        let patient = DiscoverError::transient("later").with_retry_after(Duration::from_secs(50));
        assert_eq!(schedule.after_error(1, &patient), Duration::from_secs(50));
        let mad = DiscoverError::transient("never").with_retry_after(Duration::from_secs(1 << 40));
        assert_eq!(schedule.after_error(1, &mad), Duration::from_secs(60));
        let soon = DiscoverError::transient("now").with_retry_after(Duration::ZERO);
        assert!(schedule.after_error(1, &soon) >= Duration::from_millis(250));
    }

    #[test]
    fn a_permanent_error_is_not_hurried() {
        let mut schedule = schedule(5);
        for error in [
            DiscoverError::permanent("wrong address"),
            DiscoverError::rejected("wrong key"),
        ] {
            assert!(schedule.after_error(1, &error) >= Duration::from_secs(15));
        }
    }

    #[test]
    fn nonsense_options_do_no_harm() {
        for jitter in [f64::NAN, f64::INFINITY, -3.0, 99.0] {
            let options = RunnerOptions::default()
                .with_interval(Duration::ZERO)
                .with_jitter(jitter)
                .with_backoff(Duration::ZERO)
                .with_backoff_max(Duration::ZERO);
            let mut schedule = Schedule::new(&options);
            assert!(schedule.after_success() >= Duration::from_millis(1));
            let error = DiscoverError::transient("down");
            assert!(schedule.after_error(40, &error) >= Duration::from_millis(5));
        }
    }
}
