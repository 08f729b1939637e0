//! Timers for exchanges without progress.

use std::pin::Pin;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{Context, Poll, ready};
use std::time::Duration;

use pin_project_lite::pin_project;
use tokio::time::{Instant, Sleep, sleep_until};

use crate::progress::alarm;
use crate::progress::alarm::Ticket;
use crate::progress::{Deadlines, End, after};

/// The time of the last progress of an exchange, in either direction.
///
/// Each transfer of bytes updates it, with one store. A waiting future uses an [`IdleTimer`].
#[derive(Debug)]
pub(crate) struct Activity {
    timeout: Duration,
    start: Instant,
    /// The time at which the exchange must have ended, whatever its progress.
    end: Option<Instant>,
    /// The time of the last progress, in nanoseconds after `start`.
    last: AtomicU64,
}

impl Activity {
    /// Creates the record of an exchange that begins at `start`.
    pub(crate) fn new(timeout: Duration, start: Instant) -> Self {
        Self {
            timeout,
            start,
            end: None,
            last: AtomicU64::new(0),
        }
    }

    /// Ends the exchange at this time, whatever its progress.
    pub(crate) fn ending_at(self, end: Option<Instant>) -> Self {
        Self { end, ..self }
    }

    /// Returns true if the exchange ends for its whole length, and not for a lack of progress.
    pub(crate) fn is_over(&self) -> bool {
        self.end.is_some_and(|end| end <= Instant::now())
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
        let idle = after(self.last(), self.timeout);
        self.end.map_or(idle, |end| end.min(idle))
    }
}

pin_project! {
    /// The timer of a future that waits for the head of a response.
    ///
    /// It uses the timer of the task that polls it, if there is one. Otherwise it uses its own, without a heap
    /// allocation, set like that of an [`IdleTimer`].
    pub(crate) struct HeadTimer<'a> {
        activity: &'a Activity,
        deadlines: Deadlines,
        ticket: Ticket,
        // Used if the task has no timer.
        #[pin]
        sleep: Option<Sleep>,
    }
}

impl<'a> HeadTimer<'a> {
    /// Creates a timer. `head` is the time at which the response must have begun.
    pub(crate) fn new(activity: &'a Activity, head: Option<Instant>) -> Self {
        Self {
            activity,
            deadlines: Deadlines {
                head,
                includes_body: false,
                activity: activity.timeout,
            },
            ticket: Ticket::default(),
            sleep: None,
        }
    }

    /// The time of the next check.
    fn due(&self) -> Instant {
        self.deadlines.due(self.activity.last(), true)
    }

    /// Ready if a time limit has expired by now.
    fn look(&self) -> Poll<End> {
        let last = self.activity.last();
        let end = self.deadlines.expired(last, true, Instant::now());
        end.map_or(Poll::Pending, Poll::Ready)
    }

    /// Ready when a time limit has expired.
    pub(crate) fn poll_expired(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<End> {
        if self.sleep.is_none() {
            let due = self.due();
            let this = self.as_mut().project();
            let is_first = !this.ticket.is_used();
            if alarm::ask(cx, this.ticket, due) {
                // The first poll reads no clock: an expired limit is noticed when the task's timer fires.
                return if is_first { Poll::Pending } else { self.look() };
            }
            self.as_mut().project().sleep.set(Some(sleep_until(due)));
        }
        loop {
            let mut this = self.as_mut().project();
            let Some(sleep) = this.sleep.as_mut().as_pin_mut() else {
                return Poll::Pending;
            };
            ready!(sleep.poll(cx));
            if let Poll::Ready(end) = self.look() {
                return Poll::Ready(end);
            }
            let due = self.due();
            if let Some(sleep) = self.as_mut().project().sleep.as_pin_mut() {
                sleep.reset(due);
            }
        }
    }
}

pin_project! {
    /// A timer in its place, without memory of its own, for a time that moves.
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
    use std::pin::pin;

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
    async fn a_head_ends_with_whichever_comes_first() {
        for (deadline, expected, seconds) in [
            (None, End::Idle, 10),
            (Some(20), End::Idle, 10),
            (Some(10), End::Idle, 10),
            (Some(5), End::Deadline, 5),
        ] {
            let started = Instant::now();
            let activity = Activity::new(Duration::from_secs(10), Instant::now());
            let deadline = deadline.map(|seconds| started + Duration::from_secs(seconds));
            let mut timer = pin!(HeadTimer::new(&activity, deadline));
            let expired = poll_fn(|cx| timer.as_mut().poll_expired(cx)).await;
            assert_eq!((expired, started.elapsed().as_secs()), (expected, seconds));
        }
    }

    #[cfg(feature = "server")]
    #[tokio::test(start_paused = true)]
    async fn a_head_waits_by_the_timer_of_its_task() {
        for (deadline, expected, seconds) in [
            (None, End::Idle, 14),
            (Some(20), End::Idle, 14),
            (Some(5), End::Deadline, 5),
            (Some(0), End::Deadline, 0),
        ] {
            let started = Instant::now();
            let activity = Activity::new(Duration::from_secs(10), started);
            activity.touch_at(started + Duration::from_secs(4));
            let deadline = deadline.map(|seconds| started + Duration::from_secs(seconds));
            let mut timer = pin!(HeadTimer::new(&activity, deadline));
            let mut alarm_clock = pin!(sleep_until(started));
            let mut alarm = alarm::Alarm::default();
            let expired = poll_fn(|cx| {
                loop {
                    let poll = |cx: &mut Context<'_>| timer.as_mut().poll_expired(cx);
                    if let Poll::Ready(expired) = alarm.watch(cx, poll) {
                        return Poll::Ready(expired);
                    }
                    assert!(timer.sleep.is_none(), "it has a timer of its own");
                    alarm_clock.as_mut().reset(alarm.due().expect("it asks"));
                    ready!(alarm_clock.as_mut().poll(cx));
                    alarm.rang();
                }
            });
            assert_eq!(
                (expired.await, started.elapsed().as_secs()),
                (expected, seconds)
            );
        }
    }

    #[tokio::test(start_paused = true)]
    async fn activity_postpones_the_end_but_not_the_deadline() {
        let started = Instant::now();
        let activity = Activity::new(Duration::from_secs(10), Instant::now());
        let deadline = started + Duration::from_secs(25);
        let mut timer = pin!(HeadTimer::new(&activity, Some(deadline)));
        for _ in 0..3 {
            let expired = poll_fn(|cx| timer.as_mut().poll_expired(cx));
            assert!(timeout(Duration::from_secs(8), expired).await.is_err());
            activity.touch();
        }
        let expired = poll_fn(|cx| timer.as_mut().poll_expired(cx)).await;
        assert_eq!((expired, started.elapsed().as_secs()), (End::Deadline, 25));
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
