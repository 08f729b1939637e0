//! Triggers of a source: noted while a cycle runs, and folded into one cycle otherwise.

use std::future::{Future, pending};
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use tokio::time::{Instant, sleep_until};

use crate::contain::{Broken, contained};
use crate::discoverer::Discoverer;

/// Number of consecutive change notifications after which a cycle begins even though the source sends more.
const MOST_DRAINED: usize = 64;

/// Waits of one pause between cycles.
#[derive(Clone, Copy, Debug)]
pub(super) struct Pause {
    /// The start of the next cycle without a trigger.
    pub(super) due: Instant,
    /// The earliest start of a triggered cycle.
    pub(super) earliest: Instant,
    /// True if triggers can start the cycle early.
    pub(super) early: bool,
    /// The time without triggers after which a triggered cycle begins.
    pub(super) debounce: Duration,
    /// The longest time that a triggered cycle waits for that.
    pub(super) debounce_max: Duration,
}

type Call = Pin<Box<dyn Future<Output = Result<(), Broken>> + Send>>;

/// Listens to [`Discoverer::changed`].
pub(super) struct Triggers {
    discoverer: Arc<dyn Discoverer>,
    /// The current call. It is kept across cycles, so that events it has already seen are not lost.
    call: Option<Call>,
    /// True if a trigger came that no cycle has handled yet.
    pending: bool,
    /// True if the call panicked.
    broken: bool,
}

impl Triggers {
    pub(super) fn new(discoverer: Arc<dyn Discoverer>) -> Self {
        Self {
            discoverer,
            call: None,
            pending: false,
            broken: false,
        }
    }

    /// Runs a cycle. A trigger that comes meanwhile is handled by the next cycle, since this one may have
    /// read before it.
    pub(super) async fn beside<F: Future>(&mut self, cycle: F) -> F::Output {
        self.drain().await;
        self.pending = false;
        let mut cycle = pin!(cycle);
        loop {
            if self.pending {
                return cycle.await;
            }
            tokio::select! {
                biased;
                result = &mut cycle => return result,
                () = self.next() => self.pending = true,
            }
        }
    }

    /// Waits until the next cycle starts.
    pub(super) async fn pause(&mut self, pause: Pause) {
        if !self.pending {
            tokio::select! {
                biased;
                () = sleep_until(pause.due) => return,
                () = self.next() => self.pending = true,
            }
        }
        if !pause.early {
            sleep_until(pause.due).await;
            return;
        }
        let first = Instant::now();
        let latest = (first + pause.debounce_max)
            .max(pause.earliest)
            .min(pause.due);
        let at = |now: Instant| (now + pause.debounce).max(pause.earliest).min(latest);
        let mut start = at(first);
        loop {
            tokio::select! {
                biased;
                () = sleep_until(start) => return,
                () = self.next() => {
                    let now = Instant::now();
                    start = at(now);
                    // A source that notifies without end must not keep a core busy.
                    let deaf = (pause.debounce / 8).max(Duration::from_millis(1));
                    sleep_until((now + deaf).min(start)).await;
                }
            }
        }
    }

    /// Takes triggers that are already there: they are older than the cycle that begins now.
    async fn drain(&mut self) {
        for _ in 0..MOST_DRAINED {
            let mut next = pin!(self.next());
            let ready =
                std::future::poll_fn(|context| Poll::Ready(next.as_mut().poll(context).is_ready()));
            if !ready.await {
                return;
            }
        }
    }

    /// Waits for one trigger. Can be dropped at any time without losing one.
    async fn next(&mut self) {
        if self.broken {
            return pending().await;
        }
        let call = self.call.get_or_insert_with(|| {
            let discoverer = Arc::clone(&self.discoverer);
            Box::pin(contained(async move { discoverer.changed().await }))
        });
        let result = call.as_mut().await;
        self.call = None;
        if let Err(broken) = result {
            self.broken = true;
            tracing::warn!(
                target: "discovery::runner",
                provider = self.discoverer.name(),
                "the source's triggers are off, since waiting for them {broken}; the interval remains",
            );
            pending().await
        }
    }
}
