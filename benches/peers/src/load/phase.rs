//! The course of a run: warm-up, measurement, end.

use std::time::Duration;

use super::Extent;

/// Phase of a run. [`advance`](Course::advance) moves it on; every sent request is reported to it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Phase {
    WarmUp,
    /// No request is sent until all answers have arrived, so that counters outside start at zero.
    Settling,
    Measuring {
        since: Duration,
    },
    /// After the measurement: answers in flight may arrive, so that no proxy sees a broken
    /// connection.
    Draining {
        since: Duration,
    },
    Over,
}

/// The next step of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Step {
    Go,
    Begin,
    End,
    Stop,
}

/// Maximum wait for answers after the measurement.
const PATIENCE: Duration = Duration::from_secs(2);

#[derive(Debug)]
pub(super) struct Course {
    warm_up: Duration,
    extent: Extent,
    phase: Phase,
    sent: u64,
}

impl Course {
    pub(super) fn new(warm_up: Duration, extent: Extent) -> Self {
        Self {
            warm_up,
            extent,
            phase: Phase::WarmUp,
            sent: 0,
        }
    }

    pub(super) fn phase(&self) -> Phase {
        self.phase
    }

    /// Returns true if another request may be sent.
    pub(super) fn may_send(&self) -> bool {
        match (self.phase, self.extent) {
            (Phase::WarmUp, _) | (Phase::Measuring { .. }, Extent::Time(_)) => true,
            (Phase::Measuring { .. }, Extent::Requests(most)) => self.sent < most,
            (Phase::Settling | Phase::Draining { .. } | Phase::Over, _) => false,
        }
    }

    pub(super) fn has_sent(&mut self) {
        if matches!(self.phase, Phase::Measuring { .. }) {
            self.sent += 1;
        }
    }

    /// Moves on at `now`, counted from the start of the run, with `under_way` requests in flight.
    /// Call it until it returns [`Step::Go`] or [`Step::Stop`].
    pub(super) fn advance(&mut self, now: Duration, under_way: u64) -> Step {
        match (self.phase, self.extent) {
            (Phase::WarmUp, Extent::Time(_)) if now >= self.warm_up => {
                self.phase = Phase::Measuring { since: now };
                Step::Begin
            }
            (Phase::WarmUp, Extent::Requests(_)) if now >= self.warm_up => {
                self.phase = Phase::Settling;
                self.advance(now, under_way)
            }
            (Phase::Settling, _) if under_way == 0 => {
                self.phase = Phase::Measuring { since: now };
                Step::Begin
            }
            (Phase::Measuring { since }, Extent::Time(window)) if now >= since + window => {
                self.phase = Phase::Draining { since: now };
                Step::End
            }
            (Phase::Measuring { .. }, Extent::Requests(most))
                if self.sent >= most && under_way == 0 =>
            {
                self.phase = Phase::Draining { since: now };
                Step::End
            }
            (Phase::Draining { since }, _) if under_way == 0 || now >= since + PATIENCE => {
                self.phase = Phase::Over;
                Step::Stop
            }
            (Phase::Over, _) => Step::Stop,
            _ => Step::Go,
        }
    }

    /// The instant at which time alone ends the phase.
    pub(super) fn next(&self) -> Option<Duration> {
        match (self.phase, self.extent) {
            (Phase::WarmUp, _) => Some(self.warm_up),
            (Phase::Measuring { since }, Extent::Time(window)) => Some(since + window),
            (Phase::Draining { since }, _) => Some(since + PATIENCE),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: Duration = Duration::from_millis(1);

    #[test]
    fn a_timed_run_begins_and_ends_on_time_and_lets_answers_arrive() {
        let mut course = Course::new(10 * MS, Extent::Time(100 * MS));
        assert_eq!(course.advance(9 * MS, 64), Step::Go);
        assert_eq!(course.advance(12 * MS, 64), Step::Begin);
        assert_eq!(course.next(), Some(112 * MS));
        assert_eq!(course.advance(111 * MS, 64), Step::Go);
        assert!(course.may_send());
        assert_eq!(course.advance(112 * MS, 64), Step::End);
        assert!(!course.may_send());
        assert_eq!(course.advance(113 * MS, 3), Step::Go);
        assert_eq!(course.advance(114 * MS, 0), Step::Stop);
    }

    #[test]
    fn an_answer_that_never_comes_does_not_hold_up_the_run() {
        let mut course = Course::new(MS, Extent::Time(MS));
        assert_eq!(course.advance(MS, 1), Step::Begin);
        assert_eq!(course.advance(2 * MS, 1), Step::End);
        assert_eq!(course.advance(2 * MS + PATIENCE, 1), Step::Stop);
    }

    #[test]
    fn a_counted_run_begins_at_rest_and_sends_exactly_so_many() {
        let mut course = Course::new(10 * MS, Extent::Requests(2));
        course.has_sent();
        assert_eq!(course.advance(10 * MS, 1), Step::Go);
        assert!(!course.may_send());
        assert_eq!(course.advance(11 * MS, 0), Step::Begin);
        for _ in 0..2 {
            assert!(course.may_send());
            course.has_sent();
        }
        assert!(!course.may_send());
        assert_eq!(course.advance(12 * MS, 1), Step::Go);
        assert_eq!(course.advance(13 * MS, 0), Step::End);
    }
}
