//! `Expect: 100-continue` (RFC 9110 section 10.1.1).

use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};
use std::task::{Context, Poll};
use std::time::Duration;

use futures_util::task::AtomicWaker;
use http::StatusCode;
use tokio::time::{Sleep, sleep};

const WAITING: u8 = 0;
const WANTED: u8 = 1;
const UNWANTED: u8 = 2;

/// The destination's decision about the body of a request with `Expect: 100-continue`.
#[derive(Debug, Default)]
pub(crate) struct Continuation {
    state: AtomicU8,
    waker: AtomicWaker,
}

impl Continuation {
    /// Records the destination's response, informational or final.
    ///
    /// A final success without an earlier `100 Continue` means that the destination reads the body.
    pub(crate) fn answered(&self, status: StatusCode) {
        let state = match status.as_u16() {
            100 | 200..=299 => WANTED,
            101..=199 => return,
            _ => UNWANTED,
        };
        // The first decision counts.
        let _ = self
            .state
            .compare_exchange(WAITING, state, Ordering::AcqRel, Ordering::Relaxed);
        self.waker.wake();
    }
}

/// Holds a body back until the destination wants it.
#[derive(Debug)]
pub(crate) struct Gate {
    continuation: Arc<Continuation>,
    patience: Pin<Box<Sleep>>,
}

impl Gate {
    /// Creates a gate that opens after `patience` if the destination does not respond.
    pub(crate) fn new(continuation: &Arc<Continuation>, patience: Duration) -> Self {
        Self {
            continuation: Arc::clone(continuation),
            patience: Box::pin(sleep(patience)),
        }
    }

    /// Ready when the body may be sent; never if the destination has rejected it.
    pub(crate) fn poll_open(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        // Registered before the load, so that a decision in between wakes the task.
        self.continuation.waker.register(cx.waker());
        match self.continuation.state.load(Ordering::Acquire) {
            WAITING => self.patience.as_mut().poll(cx),
            WANTED => Poll::Ready(()),
            _ => Poll::Pending,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::future::poll_fn;

    use tokio::time::{Instant, timeout};

    use super::*;

    const PATIENCE: Duration = Duration::from_secs(1);

    async fn opens(continuation: &Arc<Continuation>) -> bool {
        let mut gate = Gate::new(continuation, PATIENCE);
        timeout(Duration::from_secs(10), poll_fn(|cx| gate.poll_open(cx)))
            .await
            .is_ok()
    }

    #[tokio::test(start_paused = true)]
    async fn only_a_rejection_keeps_it_closed() {
        for (status, expected) in [
            (100, true),
            (102, true),
            (200, true),
            (409, false),
            (302, false),
        ] {
            let continuation = Arc::default();
            Continuation::answered(&continuation, StatusCode::from_u16(status).unwrap());
            assert_eq!(opens(&continuation).await, expected, "{status}");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_silent_destination_gets_the_body_after_a_second() {
        let started = Instant::now();
        assert!(opens(&Arc::default()).await);
        assert_eq!(started.elapsed(), PATIENCE);
    }

    #[tokio::test(start_paused = true)]
    async fn an_answer_wakes_who_waits() {
        let continuation = Arc::<Continuation>::default();
        let mut gate = Gate::new(&continuation, PATIENCE);
        let opened = tokio::spawn(async move {
            poll_fn(|cx| gate.poll_open(cx)).await;
            Instant::now()
        });
        tokio::task::yield_now().await;
        let answered = Instant::now();
        continuation.answered(StatusCode::CONTINUE);
        assert_eq!(opened.await.unwrap(), answered);
    }
}
