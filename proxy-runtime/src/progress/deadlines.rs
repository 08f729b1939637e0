//! The two timeouts of an exchange. The waiting future reads when they are due, and sets its timer.

use std::time::Duration;

use tokio::time::{Instant, timeout_at};

use crate::error::ForwardError;
use crate::progress::{End, Stage};

/// A time longer than any program runs, which can be added to an instant without overflow.
const FOREVER: Duration = Duration::from_secs(30 * 365 * 24 * 60 * 60);

/// Returns `moment + wait`, capped so that it does not overflow.
pub(crate) fn after(moment: Instant, wait: Duration) -> Instant {
    moment + wait.min(FOREVER)
}

/// The time limits of an exchange.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Deadlines {
    /// The time at which the response must have begun, by the route's `Timeout`.
    pub(crate) head: Option<Instant>,
    /// True if the whole exchange must have ended by then, and not only have a response.
    pub(crate) includes_body: bool,
    /// The longest time without progress: the cluster's `ActivityTimeout`.
    pub(crate) activity: Duration,
}

impl Deadlines {
    /// Returns the time at which the exchange times out if there is no progress after `last`.
    #[inline]
    pub(crate) fn due(&self, last: Instant, is_unanswered: bool) -> Instant {
        let idle = after(last, self.activity);
        self.limit(is_unanswered)
            .map_or(idle, |limit| limit.min(idle))
    }

    /// Returns the time at which the exchange times out, whatever its progress.
    #[inline]
    pub(crate) fn limit(&self, is_unanswered: bool) -> Option<Instant> {
        self.head.filter(|_| is_unanswered || self.includes_body)
    }

    /// Returns the timeout that has expired by `now`, if any.
    #[cold]
    pub(crate) fn expired(&self, last: Instant, is_unanswered: bool, now: Instant) -> Option<End> {
        if after(last, self.activity) <= now {
            return Some(End::Idle);
        }
        let is_late = self.limit(is_unanswered).is_some_and(|limit| limit <= now);
        is_late.then_some(End::Deadline)
    }
}

/// Cancels `work` at the time `head`, when the response must have begun.
pub(crate) async fn within<T>(
    head: Option<Instant>,
    work: impl Future<Output = Result<T, ForwardError>>,
) -> Result<T, ForwardError> {
    match head {
        None => work.await,
        Some(head) => timeout_at(head, work)
            .await
            .unwrap_or_else(|_| Err(End::Deadline.error(Stage::Done))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn it_is_late_when_it_is_due() {
        let begin = Instant::now();
        let at = |secs| begin + Duration::from_secs(secs);
        for (head, includes_body, is_unanswered, due, why) in [
            (None, false, true, 10, End::Idle),
            (Some(20), false, true, 10, End::Idle),
            (Some(10), false, true, 10, End::Idle),
            (Some(5), false, true, 5, End::Deadline),
            (Some(5), false, false, 10, End::Idle),
            (None, true, false, 10, End::Idle),
            (Some(20), true, false, 10, End::Idle),
            (Some(5), true, true, 5, End::Deadline),
            (Some(5), true, false, 5, End::Deadline),
        ] {
            let deadlines = Deadlines {
                head: head.map(at),
                includes_body,
                activity: Duration::from_secs(10),
            };
            assert_eq!(deadlines.due(begin, is_unanswered), at(due));
            let before = at(due) - Duration::from_nanos(1);
            assert_eq!(deadlines.expired(begin, is_unanswered, before), None);
            assert_eq!(deadlines.expired(begin, is_unanswered, at(due)), Some(why));
        }
    }

    #[tokio::test(start_paused = true)]
    async fn the_longest_timeout_does_not_overflow() {
        let deadlines = Deadlines {
            head: None,
            includes_body: false,
            activity: Duration::MAX,
        };
        assert!(deadlines.due(Instant::now(), true) > Instant::now());
    }

    #[tokio::test(start_paused = true)]
    async fn work_ends_when_the_response_must_have_begun() {
        let begin = Instant::now();
        let head = after(begin, Duration::from_secs(3));
        let ended: Result<(), _> = within(Some(head), std::future::pending()).await;
        assert_eq!(ended.unwrap_err().status(), 504);
        assert_eq!(begin.elapsed(), Duration::from_secs(3));
        assert_eq!(within(None, async { Ok(7) }).await.unwrap(), 7);
    }
}
