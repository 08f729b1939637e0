//! Timers for exchanges without progress.

use std::pin::Pin;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{Context, Poll, ready};
use std::time::Duration;

use pin_project_lite::pin_project;
use tokio::time::{Instant, Sleep, sleep_until};

use crate::progress::after;

/// The time of the last progress of an exchange, in either direction.
///
/// Each transfer of bytes updates it, with one store. A waiting future uses an [`IdleTimer`].
#[derive(Debug)]
pub(crate) struct Activity {
    timeout: Duration,
    start: Instant,
    /// The time of the last progress, in nanoseconds after `start`.
    last: AtomicU64,
}

impl Activity {
    /// Creates the record of an exchange that begins at `start`.
    pub(crate) fn new(timeout: Duration, start: Instant) -> Self {
        Self {
            timeout,
            start,
            last: AtomicU64::new(0),
        }
    }

    /// Records progress now.
    pub(crate) fn touch(&self) {
        self.touch_at(Instant::now());
    }

    /// Records progress at this time.
    pub(crate) fn touch_at(&self, now: Instant) {
        let elapsed = now.saturating_duration_since(self.start);
        let elapsed = u64::try_from(elapsed.as_nanos()).unwrap_or(u64::MAX);
        // Both directions write, and their clocks may be read out of order.
        self.last.fetch_max(elapsed, Ordering::Relaxed);
    }

    /// The time of the last progress.
    fn last(&self) -> Instant {
        let last = Duration::from_nanos(self.last.load(Ordering::Relaxed));
        after(self.start, last)
    }

    /// The time at which the exchange times out without further progress.
    pub(crate) fn deadline(&self) -> Instant {
        after(self.last(), self.timeout)
    }
}

pin_project! {
    /// A timer without an allocation, for a deadline that moves.
    ///
    /// The timer is armed by the first wait, and not again for a later time: it checks the time when it fires.
    #[derive(Default)]
    pub(crate) struct Timer {
        #[pin]
        sleep: Option<Sleep>,
    }
}

impl Timer {
    /// Ready at `due`, which may be another time at each poll.
    pub(crate) fn poll_due(self: Pin<&mut Self>, cx: &mut Context<'_>, due: Instant) -> Poll<()> {
        let mut place = self.project().sleep;
        if place.is_none() {
            place.set(Some(sleep_until(due)));
        }
        let Some(mut sleep) = place.as_pin_mut() else {
            return Poll::Pending;
        };
        // A later time needs no change now: the early ring is noticed below.
        if due < sleep.deadline() {
            sleep.as_mut().reset(due);
        }
        loop {
            ready!(sleep.as_mut().poll(cx));
            if due <= Instant::now() {
                return Poll::Ready(());
            }
            sleep.as_mut().reset(due);
        }
    }
}

/// A timer for an [`Activity`].
///
/// It is set when first awaited, and not moved by progress: when it fires too early, it is set again. So a steady
/// transfer costs no timer operations.
#[derive(Debug, Default)]
pub(crate) struct IdleTimer(Option<Pin<Box<Sleep>>>);

impl IdleTimer {
    /// Ready when there was no progress for too long.
    pub(crate) fn poll_expired(&mut self, cx: &mut Context<'_>, activity: &Activity) -> Poll<()> {
        let sleep = self
            .0
            .get_or_insert_with(|| Box::pin(sleep_until(activity.deadline())));
        // Progress moves the deadline often, so the timer is moved only when it rings.
        while sleep.as_mut().poll(cx).is_ready() {
            let deadline = activity.deadline();
            if deadline <= Instant::now() {
                return Poll::Ready(());
            }
            sleep.as_mut().reset(deadline);
        }
        Poll::Pending
    }
}

#[cfg(test)]
mod tests {
    use std::future::poll_fn;

    use tokio::time::{advance, timeout};

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn activity_postpones_the_end() {
        let activity = Activity::new(Duration::from_secs(10), Instant::now());
        let mut timer = IdleTimer::default();
        let started = Instant::now();
        for _ in 0..5 {
            let expired = poll_fn(|cx| timer.poll_expired(cx, &activity));
            assert!(timeout(Duration::from_secs(9), expired).await.is_err());
            activity.touch();
        }
        poll_fn(|cx| timer.poll_expired(cx, &activity)).await;
        assert_eq!(started.elapsed().as_secs(), 5 * 9 + 10);
    }

    #[tokio::test(start_paused = true)]
    async fn a_late_look_sees_that_it_is_over() {
        let started = Instant::now();
        let activity = Activity::new(Duration::from_secs(10), started);
        advance(Duration::from_secs(11)).await;
        let mut timer = IdleTimer::default();
        poll_fn(|cx| timer.poll_expired(cx, &activity)).await;
        // Nothing was waited for, which the clock would have gone on for.
        assert_eq!(started.elapsed().as_secs(), 11);
    }

    #[tokio::test(start_paused = true)]
    async fn the_longest_timeout_does_not_overflow() {
        let activity = Activity::new(Duration::MAX, Instant::now());
        activity.touch();
        assert!(activity.deadline() > Instant::now());
    }
}
