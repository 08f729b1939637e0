//! The time limit of handshakes.

use std::future::poll_fn;
use std::net::SocketAddr;
use std::pin::pin;
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use tokio::time::{Instant, sleep_until};

use super::pace::after;
use crate::server::mode::{Mode, ModeWatch};
use crate::server::shared::WorkerShared;

/// Waits for a client's handshake, at most for a time since the client was accepted. `None` if it timed out, which
/// happens earlier if its slot is needed or the server stops.
pub(crate) async fn within<F: Future>(
    handshake: F,
    (accepted, timeout): (Instant, Duration),
    remote: Option<SocketAddr>,
    worker: &Arc<WorkerShared>,
) -> Option<F::Output> {
    let limits = &worker.limits;
    let latest = after(accepted, timeout);
    let mut handshake = pin!(handshake);
    let mut alarm = pin!(sleep_until(latest));
    let mut watch = None;
    let mut is_offered = false;
    let mut mode = Mode::Serving;
    poll_fn(|cx| {
        if let Poll::Ready(done) = handshake.as_mut().poll(cx) {
            return Poll::Ready(Some(done));
        }
        let watch = watch.get_or_insert_with(|| ModeWatch::new(worker, cx.waker()));
        if is_offered && watch.gives_way() {
            return Poll::Ready(None);
        }
        is_offered = is_offered || worker.offer(watch, remote);
        let before = std::mem::replace(&mut mode, worker.mode());
        if mode != before {
            alarm.as_mut().reset(match mode {
                Mode::Serving => latest,
                // A handshake gets no more time than other incomplete requests once its slot is needed.
                Mode::Full | Mode::Draining => latest.min(after(Instant::now(), limits.haste())),
            });
        }
        alarm.as_mut().poll(cx).map(|()| None)
    })
    .await
}

#[cfg(test)]
mod tests {
    use std::future::pending;

    use tokio::time::sleep;

    use super::*;
    use crate::server::limits::Limits;

    const LIMIT: Duration = Duration::from_secs(10);

    fn worker() -> Arc<WorkerShared> {
        let limits = Limits::default();
        Arc::new(WorkerShared::new(limits, 2, Arc::default(), None))
    }

    /// Returns the time after which a silent client is closed, if `change` happens after a second.
    async fn waited<C>(worker: &Arc<WorkerShared>, change: impl FnOnce() -> C) -> Duration {
        let begin = Instant::now();
        let _place = worker.enter();
        let changing = async {
            sleep(Duration::from_secs(1)).await;
            change()
        };
        let handshake = within(pending::<()>(), (begin, LIMIT), None, worker);
        let (done, _changed) = tokio::join!(handshake, changing);
        assert!(done.is_none());
        begin.elapsed()
    }

    #[track_caller]
    fn assert_seconds(waited: Duration, expected: u64) {
        assert_eq!(waited.as_millis() / 100, u128::from(expected) * 10);
    }

    #[tokio::test(start_paused = true)]
    async fn a_client_that_says_nothing_gives_way_soon_where_its_place_is_wanted() {
        let serving = worker();
        assert_seconds(waited(&serving, || ()).await, 10);
        let full = worker();
        assert_seconds(waited(&full, || full.enter()).await, 1 + 2);
        let draining = worker();
        assert_seconds(waited(&draining, || draining.drain()).await, 1 + 2);
    }

    #[tokio::test(start_paused = true)]
    async fn who_was_in_haste_has_its_time_again_once_there_is_room() {
        let worker = worker();
        let begin = Instant::now();
        let _place = worker.enter();
        let other = worker.enter();
        let leaving = async {
            sleep(Duration::from_secs(1)).await;
            drop(other);
        };
        let (done, ()) = tokio::join!(
            within(pending::<()>(), (begin, LIMIT), None, &worker),
            leaving
        );
        assert!(done.is_none());
        assert_seconds(begin.elapsed(), 10);
    }

    #[tokio::test(start_paused = true)]
    async fn who_ends_in_time_is_not_cut() {
        let worker = worker();
        worker.drain();
        let handshake = sleep(Duration::from_millis(1900));
        let done = within(handshake, (Instant::now(), LIMIT), None, &worker).await;
        assert!(done.is_some());
    }
}
