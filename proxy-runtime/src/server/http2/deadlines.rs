//! The deadlines of the streams of a connection, with one timer for all of them.

use std::cell::{Cell, RefCell};
use std::pin::{Pin, pin};
use std::rc::Rc;
use std::task::{Context, Poll};

use tokio::task::unconstrained;
use tokio::time::{Instant, Sleep, sleep_until};

/// The deadlines of the streams of a connection.
#[derive(Debug, Default)]
pub(super) struct StreamDeadlines {
    /// The deadlines by stream slot.
    dues: RefCell<Vec<Option<Instant>>>,
    /// A lower bound of the earliest deadline.
    next: Cell<Option<Instant>>,
    /// The time of the last check.
    passed: Cell<Option<Instant>>,
}

impl StreamDeadlines {
    fn set(&self, place: u32, due: Instant) {
        let mut dues = self.dues.borrow_mut();
        let place = place as usize;
        if dues.len() <= place {
            dues.resize(place + 1, None);
        }
        dues[place] = Some(due);
        if self.next.get().is_none_or(|next| due < next) {
            self.next.set(Some(due));
        }
    }

    fn clear(&self, place: u32) {
        if let Some(due) = self.dues.borrow_mut().get_mut(place as usize) {
            *due = None;
        }
    }

    /// Calls `expired` with the slot of each deadline that has passed.
    fn expire(&self, now: Instant, mut expired: impl FnMut(u32)) {
        self.passed.set(Some(now));
        let mut next: Option<Instant> = None;
        for (place, due) in self.dues.borrow_mut().iter_mut().enumerate() {
            match *due {
                Some(moment) if moment <= now => {
                    *due = None;
                    expired(place as u32);
                }
                Some(moment) => next = Some(next.map_or(moment, |next| next.min(moment))),
                None => {}
            }
        }
        self.next.set(next);
    }
}

/// The single timer. Armed at the first wait; fires early rather than being moved.
#[derive(Debug, Default)]
pub(super) struct StreamTimer(Option<Pin<Box<Sleep>>>);

impl StreamTimer {
    /// Arms the timer for the task, and calls `expired` with the slot of each deadline that has
    /// passed.
    #[inline]
    pub(super) fn poll(
        &mut self,
        cx: &mut Context<'_>,
        deadlines: &StreamDeadlines,
        expired: impl FnMut(u32),
    ) {
        let Some(next) = deadlines.next.get() else {
            return;
        };
        match &self.0 {
            // An alarm that rings earlier is moved when it rings.
            Some(alarm) if alarm.deadline() <= next && !alarm.is_elapsed() => {}
            _ => self.arm(cx, deadlines, expired),
        }
    }

    #[cold]
    fn arm(
        &mut self,
        cx: &mut Context<'_>,
        deadlines: &StreamDeadlines,
        mut expired: impl FnMut(u32),
    ) {
        if self.0.as_ref().is_some_and(|alarm| alarm.is_elapsed()) {
            deadlines.expire(Instant::now(), &mut expired);
        }
        // In a loop, since the next deadline may have passed meanwhile.
        while let Some(next) = deadlines.next.get() {
            let alarm = match &mut self.0 {
                Some(alarm) => {
                    alarm.as_mut().reset(next);
                    alarm
                }
                none => none.insert(Box::pin(sleep_until(next))),
            };
            // Unconstrained by the task budget: a pending poll must always register the waker.
            if pin!(unconstrained(alarm.as_mut())).poll(cx).is_pending() {
                return;
            }
            deadlines.expire(Instant::now(), &mut expired);
        }
    }
}

/// The deadline of one stream.
#[derive(Debug)]
pub(crate) struct Deadline {
    deadlines: Rc<StreamDeadlines>,
    place: u32,
}

impl Deadline {
    pub(super) fn new(deadlines: &Rc<StreamDeadlines>, place: u32) -> Self {
        Self {
            deadlines: Rc::clone(deadlines),
            place,
        }
    }

    /// Ready once `due` has passed; otherwise the stream is woken by then. A later call replaces
    /// the deadline.
    #[inline]
    pub(crate) fn poll_due(&self, due: Instant) -> Poll<()> {
        // The clock is read when the timer fires, not by every stream that waits.
        if self.deadlines.passed.get().is_some_and(|now| now >= due) {
            return Poll::Ready(());
        }
        self.deadlines.set(self.place, due);
        Poll::Pending
    }
}

impl Drop for Deadline {
    fn drop(&mut self) {
        self.deadlines.clear(self.place);
    }
}

#[cfg(test)]
mod tests {
    use std::future::poll_fn;
    use std::time::Duration;

    use super::*;

    /// Waits until a deadline passes. Returns the slots.
    async fn expired(alarm: &mut StreamTimer, deadlines: &StreamDeadlines) -> Vec<u32> {
        let mut places = Vec::new();
        poll_fn(|cx| {
            alarm.poll(cx, deadlines, |place| places.push(place));
            match places.is_empty() {
                true => Poll::Pending,
                false => Poll::Ready(()),
            }
        })
        .await;
        places
    }

    #[tokio::test(start_paused = true)]
    async fn each_is_woken_at_its_moment() {
        let begin = Instant::now();
        let at = |secs| begin + Duration::from_secs(secs);
        let deadlines = Rc::new(StreamDeadlines::default());
        let mut alarm = StreamTimer::default();
        let [first, second, gone] = [0, 5, 2].map(|place| Deadline::new(&deadlines, place));
        assert!(first.poll_due(at(30)).is_pending());
        assert!(second.poll_due(at(20)).is_pending());
        assert!(gone.poll_due(at(10)).is_pending());
        drop(gone);
        assert_eq!(expired(&mut alarm, &deadlines).await, [5]);
        assert_eq!(begin.elapsed(), Duration::from_secs(20));
        assert!(second.poll_due(at(20)).is_ready());
        assert!(second.poll_due(at(25)).is_pending(), "another one");
        assert!(first.poll_due(at(40)).is_pending(), "later than before");
        assert_eq!(expired(&mut alarm, &deadlines).await, [5]);
        assert_eq!(begin.elapsed(), Duration::from_secs(25));
        assert_eq!(expired(&mut alarm, &deadlines).await, [0]);
        assert_eq!(begin.elapsed(), Duration::from_secs(40));
    }

    #[tokio::test(start_paused = true)]
    async fn a_sooner_moment_moves_the_timer() {
        let begin = Instant::now();
        let deadlines = Rc::new(StreamDeadlines::default());
        let mut alarm = StreamTimer::default();
        let [late, soon] = [0, 1].map(|place| Deadline::new(&deadlines, place));
        assert!(late.poll_due(begin + Duration::from_secs(50)).is_pending());
        poll_fn(|cx| {
            alarm.poll(cx, &deadlines, |_| unreachable!("nobody's moment has come"));
            Poll::Ready(())
        })
        .await;
        assert!(soon.poll_due(begin + Duration::from_secs(5)).is_pending());
        assert_eq!(expired(&mut alarm, &deadlines).await, [1]);
        assert_eq!(begin.elapsed(), Duration::from_secs(5));
        assert!(
            soon.poll_due(begin).is_ready(),
            "what has passed is due at once"
        );
    }
}
