//! One question, asked again and again by blocking queries.

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use discovery_core::Backoff;
use tokio::time::{Instant, sleep};

use super::index::{BlockingIndex, Moved};
use super::pace::Pace;
use crate::client::{Answer, ConsulError, ConsulErrorKind, Meta, Query, Retry};

/// How a [`Follower`] asks.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct FollowOptions {
    /// How long one query waits for news. 30 s. After its servers were replaced a datacenter may be silent for so long.
    /// The servers add up to a sixteenth.
    pub wait: Duration,
    /// The least time between two queries in the long run; two may follow each other at once. 250 ms.
    pub min_gap: Duration,
    /// The same for queries that come back early without any news, which is what a broken server does. 15 s.
    pub idle_gap: Duration,
    /// How often what cannot be waited on is asked. 45 s.
    pub poll: Duration,
    /// The longest wait after a first error; it doubles with each further one, and varies by half. 500 ms.
    pub backoff: Duration,
    /// The longest wait after an error that may end by itself: an agent that is away, a datacenter without a leader. 1.5 s.
    pub backoff_max: Duration,
    /// The wait after a refusal, which stays until somebody changes something, and the longest one while a datacenter cannot
    /// be reached from the agent's. 30 s.
    pub refused: Duration,
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
            refused: Duration::from_secs(30),
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

    /// Sets [`refused`](Self::refused).
    #[must_use]
    pub fn with_refused(mut self, refused: Duration) -> Self {
        self.refused = refused;
        self
    }

    /// How long to wait after the `failures`th error in a row: full jitter above a half, so that those who failed together
    /// do not ask together.
    pub(crate) fn wait_after(&self, error: &ConsulError, failures: u32) -> Duration {
        let (longest, failures) = match (error.retry(), error.kind()) {
            (Retry::Slowly, _) => (self.refused, u32::MAX),
            (Retry::Backoff, ConsulErrorKind::NoPathToDatacenter) => (self.refused, failures),
            (Retry::Backoff, _) => (self.backoff_max, failures),
        };
        let policy = Backoff::new(self.backoff.min(longest), longest);
        policy.wait(failures, fastrand::f64())
    }
}

/// What came of one query of a [`Follower`].
#[derive(Debug)]
#[non_exhaustive]
pub enum Followed<T> {
    /// The answer is another one than before, or the first.
    Changed {
        /// The answer.
        answer: Answer<Arc<T>>,
        /// Whether the servers may have another history: it is the first answer, or the first after a failure, or the index has
        /// gone back with it or with the one before it.
        is_anew: bool,
    },
    /// The same answer as before, though its index has moved: something near it has changed.
    Woken {
        /// What came with the answer.
        meta: Meta,
        /// As of [`Changed`](Self::Changed).
        is_anew: bool,
    },
    /// The wait is over without news.
    Quiet,
    /// There was no answer. What was known stays true as far as anybody knows.
    Failed(ConsulError),
}

type Wake = Pin<Box<dyn Future<Output = ()> + Send>>;

type Asked<T> = Pin<Box<dyn Future<Output = Result<Answer<T>, ConsulError>> + Send>>;

/// One question, asked again and again: follows the [index](BlockingIndex), compares answers, paces itself and backs off.
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
    pace: Pace,
    idle: Pace,
    /// How long to wait before the next query.
    pause: Duration,
    /// Makes what ends the pause after a refusal.
    woken: Option<Box<dyn Fn() -> Wake + Send + Sync>>,
    /// Ends the present pause, which is one after a refusal.
    wake: Option<Wake>,
    failures: u32,
    /// Whether the next answer is the first after the beginning, a failure, or a step back.
    is_anew: bool,
}

impl<T: PartialEq + Send + Sync> Follower<T> {
    /// Asks `ask`, which makes the call that it is given the query for.
    pub fn new<F, A>(options: FollowOptions, query: Query, ask: F) -> Self
    where
        F: Fn(Query) -> A + Send + Sync + 'static,
        A: Future<Output = Result<Answer<T>, ConsulError>> + Send + 'static,
    {
        const BURST: u32 = 2;
        Self {
            pace: Pace::new(BURST, options.min_gap),
            idle: Pace::new(BURST, options.idle_gap),
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

    /// Makes one query when it is time to, and says what came of it.
    ///
    /// # Cancel safety
    ///
    /// When it is dropped the query is given up; the next call makes it again, and no news is lost.
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
        let index = self.index.get();
        let query = self.query.clone().blocking(index, self.options.wait);
        match (self.ask)(query).await {
            Ok(answer) => {
                self.failures = 0;
                let waited = started.elapsed();
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

    /// Ends the pause after a refusal when the future returns that `wake` makes before each question:
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

    /// The last good answer.
    pub fn last(&self) -> Option<Arc<T>> {
        self.last.clone()
    }

    fn answered(&mut self, answer: Answer<T>, moved: Moved, waited: Duration) -> Followed<T> {
        let went_back = moved == Moved::Backward;
        let is_anew = std::mem::replace(&mut self.is_anew, went_back) || went_back;
        let is_same = self.last.as_deref() == Some(&answer.value);
        match moved {
            Moved::Unknown => self.pause = self.options.poll.mul_f64(0.9 + fastrand::f64() / 5.0),
            // Who comes back early with nothing would do so for ever.
            Moved::Not if waited < self.options.wait => {
                let due = self.idle.take();
                self.pause = due.saturating_duration_since(Instant::now());
            }
            // Once or twice, servers were replaced. An index that goes back and forth says nothing, and never ends.
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
