//! How long nothing may happen.

use std::pin::Pin;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{Context, Poll};
use std::time::Duration;

use tokio::time::{Instant, Sleep, sleep_until};

/// Longer than any program runs; adding it to a moment does not overflow.
const FOREVER: Duration = Duration::from_secs(30 * 365 * 24 * 60 * 60);

/// `moment` and so much more, capped so that it does not overflow.
pub(crate) fn after(moment: Instant, wait: Duration) -> Instant {
    moment + wait.min(FOREVER)
}

/// When something last happened on an exchange, in either direction.
///
/// Whatever moves bytes says so, which is one store. Whoever waits has an [`IdleTimer`].
#[derive(Debug)]
pub(crate) struct Activity {
    timeout: Duration,
    start: Instant,
    /// Nanoseconds after `start`.
    last: AtomicU64,
}

impl Activity {
    /// Nothing may happen for no longer than `timeout`, from now on.
    pub(crate) fn new(timeout: Duration) -> Self {
        Self {
            timeout,
            start: Instant::now(),
            last: AtomicU64::new(0),
        }
    }

    /// Something happened.
    pub(crate) fn touch(&self) {
        let elapsed = u64::try_from(self.start.elapsed().as_nanos()).unwrap_or(u64::MAX);
        self.last.fetch_max(elapsed, Ordering::Relaxed);
    }

    /// When the exchange is given up, if nothing happens until then.
    pub(crate) fn deadline(&self) -> Instant {
        let last = Duration::from_nanos(self.last.load(Ordering::Relaxed));
        after(after(self.start, last), self.timeout)
    }
}

/// A timer for an [`Activity`].
///
/// It is armed when it is first waited for, and it is not moved when something happens: it looks when it fires, and
/// sleeps on if it was too early. So bytes that keep coming cost no timer at all.
#[derive(Debug, Default)]
pub(crate) struct IdleTimer(Option<Pin<Box<Sleep>>>);

impl IdleTimer {
    /// Ready when nothing has happened for too long.
    pub(crate) fn poll_expired(&mut self, cx: &mut Context<'_>, activity: &Activity) -> Poll<()> {
        let sleep = self
            .0
            .get_or_insert_with(|| Box::pin(sleep_until(activity.deadline())));
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
        let activity = Activity::new(Duration::from_secs(10));
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
        let activity = Activity::new(Duration::from_secs(10));
        advance(Duration::from_secs(11)).await;
        let mut timer = IdleTimer::default();
        poll_fn(|cx| timer.poll_expired(cx, &activity)).await;
    }

    #[tokio::test(start_paused = true)]
    async fn the_longest_timeout_does_not_overflow() {
        let activity = Activity::new(Duration::MAX);
        activity.touch();
        assert!(activity.deadline() > Instant::now());
    }
}
