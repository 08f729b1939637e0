//! A query that is repeated as blocking queries.

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use discovery_core::Backoff;
use tokio::time::{Instant, sleep};

use super::index::{BlockingIndex, Moved};
use super::token_bucket::TokenBucket;
use crate::client::{Answer, ConsulError, ConsulErrorKind, Meta, Query, Retry};

/// A response that comes sooner than this has not waited for a change.
const AT_ONCE: Duration = Duration::from_secs(1);

/// The options of a [`Follower`].
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct FollowOptions {
    /// The time for which one query waits for a change, to which the servers add up to a sixteenth. After
    /// its servers were replaced, a datacenter may be silent for this time. Default: 30 s.
    pub wait: Duration,
    /// The least time between two queries on average; two may follow each other at once. Default: 250 ms.
    pub min_gap: Duration,
    /// The pause after a query that returned early and unchanged, as a faulty server may do. Default: 15 s.
    pub idle_gap: Duration,
    /// The poll interval of queries that cannot block. Default: 45 s.
    pub poll: Duration,
    /// The longest wait after a first error. It doubles with each further one, and varies by half. Default:
    /// 500 ms.
    pub backoff: Duration,
    /// The longest wait after an error that may pass: an unavailable agent, a datacenter without a leader.
    /// Default: 1.5 s.
    pub backoff_max: Duration,
    /// The wait after a rejection, which lasts until an operator changes something, and the longest wait
    /// while a datacenter cannot be reached from the agent's. Default: 30 s.
    pub rejected: Duration,
}

impl Default for FollowOptions {
    fn default() -> Self {
        Self {
            wait: Duration::from_secs(30),
            min_gap: Duration::from_millis(250),
            idle_gap: Duration::from_secs(15),
            poll: Duration::from_secs(45),
            backoff: Duration::from_millis(500),
            backoff_max: Duration::from_millis(1_500),
            rejected: Duration::from_secs(30),
        }
    }
}

impl FollowOptions {
    /// Sets [`wait`](Self::wait).
    #[must_use]
    pub fn with_wait(mut self, wait: Duration) -> Self {
        self.wait = wait;
        self
    }

    /// Sets [`min_gap`](Self::min_gap).
    #[must_use]
    pub fn with_min_gap(mut self, min_gap: Duration) -> Self {
        self.min_gap = min_gap;
        self
    }

    /// Sets [`idle_gap`](Self::idle_gap).
    #[must_use]
    pub fn with_idle_gap(mut self, idle_gap: Duration) -> Self {
        self.idle_gap = idle_gap;
        self
    }

    /// Sets [`poll`](Self::poll).
    #[must_use]
    pub fn with_poll(mut self, poll: Duration) -> Self {
        self.poll = poll;
        self
    }

    /// Sets [`backoff`](Self::backoff).
    #[must_use]
    pub fn with_backoff(mut self, backoff: Duration) -> Self {
        self.backoff = backoff;
        self
    }

    /// Sets [`backoff_max`](Self::backoff_max).
    #[must_use]
    pub fn with_backoff_max(mut self, backoff_max: Duration) -> Self {
        self.backoff_max = backoff_max;
        self
    }

    /// Sets [`rejected`](Self::rejected).
    #[must_use]
    pub fn with_rejected(mut self, rejected: Duration) -> Self {
        self.rejected = rejected;
        self
    }

    /// Returns the wait after the `failures`th consecutive error: full jitter above a half, so that clients
    /// that failed together do not retry together.
    pub(crate) fn wait_after(&self, error: &ConsulError, failures: u32) -> Duration {
        let (longest, failures) = match (error.retry(), error.kind()) {
            (Retry::Slowly, _) => (self.rejected, u32::MAX),
            (Retry::Backoff, ConsulErrorKind::NoPathToDatacenter) => (self.rejected, failures),
            (Retry::Backoff, _) => (self.backoff_max, failures),
        };
        let policy = Backoff::new(self.backoff.min(longest), longest);
        policy.wait(failures, fastrand::f64())
    }
}

/// The result of one query of a [`Follower`].
#[derive(Debug)]
#[non_exhaustive]
pub enum Followed<T> {
    /// A result that differs from the previous one, or the first.
    Changed {
        /// The response.
        answer: Answer<Arc<T>>,
        /// True if the servers may have another history: the result is the first one, or the first after a
        /// failure, or its index or the one before it went back.
        is_anew: bool,
    },
    /// An unchanged result with a new index: something related has changed.
    Woken {
        /// The headers of the response.
        meta: Meta,
        /// True if the servers may have another history, as in [`Changed`](Self::Changed).
        is_anew: bool,
    },
    /// The end of the wait without a change.
    Quiet,
    /// A failed query. The last result is still the best known.
    Failed(ConsulError),
}

type Wake = Pin<Box<dyn Future<Output = ()> + Send>>;

type Asked<T> = Pin<Box<dyn Future<Output = Result<Answer<T>, ConsulError>> + Send>>;

/// A query that is repeated as blocking queries. Follows the [index](BlockingIndex), compares results,
/// limits its own rate and backs off.
///
/// ```no_run
/// use discovery_consul::client::{ConsulClient, Followed, Follower, FollowOptions, Query};
///
/// # async fn example(client: ConsulClient) {
/// let mut web = Follower::new(FollowOptions::default(), Query::new(), move |query| {
///     let client = client.clone();
///     async move { client.health_service("web", &query).await }
/// });
/// loop {
///     match web.next().await {
///         Followed::Changed { answer, .. } => println!("{} instances", answer.value.len()),
///         Followed::Failed(error) => eprintln!("{}", error.explained()),
///         _ => {}
///     }
/// }
/// # }
/// ```
pub struct Follower<T> {
    options: FollowOptions,
    query: Query,
    ask: Box<dyn Fn(Query) -> Asked<T> + Send + Sync>,
    index: BlockingIndex,
    last: Option<Arc<T>>,
    pace: TokenBucket,
    idle: TokenBucket,
    /// The wait before the next query.
    pause: Duration,
    /// Creates the future that ends the pause after a rejection.
    woken: Option<Box<dyn Fn() -> Wake + Send + Sync>>,
    /// The future that ends the current pause after a rejection.
    wake: Option<Wake>,
    failures: u32,
    /// True if the next result is the first after the start, a failure, or a step back.
    is_anew: bool,
}

impl<T: PartialEq + Send + Sync> Follower<T> {
    /// Creates a follower that calls `ask` with each query.
    pub fn new<F, A>(options: FollowOptions, query: Query, ask: F) -> Self
    where
        F: Fn(Query) -> A + Send + Sync + 'static,
        A: Future<Output = Result<Answer<T>, ConsulError>> + Send + 'static,
    {
        const BURST: u32 = 2;
        Self {
            pace: TokenBucket::new(BURST, options.min_gap),
            idle: TokenBucket::new(BURST, options.idle_gap),
            options,
            query,
            ask: Box::new(move |query| Box::pin(ask(query))),
            index: BlockingIndex::new(),
            last: None,
            pause: Duration::ZERO,
            woken: None,
            wake: None,
            failures: 0,
            is_anew: true,
        }
    }

    /// Makes one query when it is due, and returns its result.
    ///
    /// # Cancel safety
    ///
    /// May be dropped at any time. That cancels the query; the next call repeats it, and no change is
    /// missed.
    pub async fn next(&mut self) -> Followed<T> {
        let woken = async {
            match &mut self.wake {
                Some(wake) => wake.await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            () = sleep(self.pause) => {}
            () = woken => {}
        }
        self.pause = Duration::ZERO;
        self.wake = None;
        self.pace.wait().await;
        // Made before the question: what changes while it is on its way counts.
        let wake = self.woken.as_ref().map(|woken| woken());
        let started = Instant::now();
        // After a failure the next success is known at once, and not at the end of a wait.
        let index = match self.failures {
            0 => self.index.get(),
            _ => 0,
        };
        let query = self.query.clone().blocking(index, self.options.wait);
        match (self.ask)(query).await {
            Ok(answer) => {
                self.failures = 0;
                let waited = (index > 0).then(|| started.elapsed());
                let moved = self.index.answered(answer.meta.index);
                self.answered(answer, moved, waited)
            }
            Err(error) => {
                self.index.failed(&error);
                self.is_anew |= self.index.get() == 0;
                self.failures = self.failures.saturating_add(1);
                self.pause = self.options.wait_after(&error, self.failures);
                self.wake = wake.filter(|_| error.retry() == Retry::Slowly);
                Followed::Failed(error)
            }
        }
    }

    /// Ends the pause after a rejection when the future returns that `wake` creates before each query:
    /// [`ConsulClient::token_changed`](crate::client::ConsulClient::token_changed).
    #[must_use]
    pub fn woken_by<W, F>(mut self, wake: W) -> Self
    where
        W: Fn() -> F + Send + Sync + 'static,
        F: Future<Output = ()> + Send + 'static,
    {
        self.woken = Some(Box::new(move || Box::pin(wake())));
        self
    }

    /// The last known good result.
    pub fn last(&self) -> Option<Arc<T>> {
        self.last.clone()
    }

    /// `waited`: the duration of a query that may wait for a change.
    fn answered(
        &mut self,
        answer: Answer<T>,
        moved: Moved,
        waited: Option<Duration>,
    ) -> Followed<T> {
        let went_back = moved == Moved::Backward;
        let is_anew = std::mem::replace(&mut self.is_anew, went_back) || went_back;
        let is_same = self.last.as_deref() == Some(&answer.value);
        match moved {
            Moved::Unknown => self.pause = self.options.poll.mul_f64(0.9 + fastrand::f64() / 5.0),
            // A server that responds at once without a change would do so forever. One with a lower limit for
            // waiting than ours (`max_query_time`) is queried again at once, so that no change comes late.
            Moved::Not if waited.is_some_and(|waited| waited < AT_ONCE.min(self.options.wait)) => {
                let due = self.idle.take();
                self.pause = due.saturating_duration_since(Instant::now());
            }
            // Once or twice, servers were replaced. An index that goes back and forth has no meaning, and
            // never ends.
            Moved::Backward if is_same => {
                let due = self.idle.take();
                self.pause = due.saturating_duration_since(Instant::now());
            }
            Moved::Not | Moved::Forward | Moved::Backward => {}
        }
        if !is_same {
            let answer = answer.map(Arc::new);
            self.last = Some(Arc::clone(&answer.value));
            return Followed::Changed { answer, is_anew };
        }
        match moved {
            Moved::Forward | Moved::Backward => Followed::Woken {
                meta: answer.meta,
                is_anew,
            },
            Moved::Not | Moved::Unknown => Followed::Quiet,
        }
    }
}

impl<T> fmt::Debug for Follower<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Follower")
            .field("query", &self.query)
            .field("index", &self.index)
            .field("failures", &self.failures)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests;
