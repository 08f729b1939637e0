//! Reading a cluster: from application types down to replicas.
//!
//! ```text
//! applications ─▶ their types ─▶ service types with labels ─▶ services ─▶ labels ─▶ partitions ─▶ replicas
//! ```
//!
//! A cycle makes a new [`Memory`] from the old one. Stable data is read once and then again from time to
//! time; data that is likely to change soon is read again after a short while. The rest is read in every
//! cycle, or not at all while a cheap check of the whole cluster shows no change.

mod listing;
mod memory;
mod parts;
mod probe;
mod reading;
mod resolving;
mod settling;

use std::collections::HashSet;
use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use discovery_core::{DiscoverError, DiscoverErrorKind};
use futures_util::stream::{self, StreamExt, TryStreamExt};
use tokio::sync::Semaphore;
use tokio::time::{Instant, timeout};

pub(crate) use self::listing::DENIED;
use self::memory::{KnownApplication, TypeKey};
pub(crate) use self::memory::{KnownService, Memory};
pub(crate) use self::parts::PARTITION_NOT_READ;
pub(crate) use self::reading::service_id;
use self::settling::Cycle;
use crate::cache::CachedCalls;
use crate::calls::{CallError, CallErrorKind, ClusterCalls};
use crate::extension::{DeclaredLabels, LabelsProvider};
use crate::model::{Service, ServiceKind};
use crate::options::ServiceFabricOptions;

/// The calls of a cycle.
pub(crate) type Calls = CachedCalls<Arc<dyn ClusterCalls>>;

/// Maximum number of services that are read.
const MAX_SERVICES: usize = 100_000;

/// The time limit of a call about one service or one application. A cycle is published as a whole, so a
/// slower entity would delay all others. It continues to serve in its known state and is retried later. The
/// wait for a free slot among the calls in flight does not count.
const PATIENCE: Duration = Duration::from_secs(20);

/// Reads clusters.
pub(crate) struct Topology {
    calls: Arc<Calls>,
    labels: Arc<dyn LabelsProvider>,
    options: ServiceFabricOptions,
    /// One for each call that may be under way.
    permits: Semaphore,
}

/// A service that a cycle reads.
struct Listed {
    application: Arc<KnownApplication>,
    declared: Arc<DeclaredLabels>,
    info: Arc<Service>,
}

impl Topology {
    pub(crate) fn new(
        calls: Arc<Calls>,
        labels: Arc<dyn LabelsProvider>,
        options: ServiceFabricOptions,
    ) -> Self {
        Self {
            calls,
            labels,
            permits: Semaphore::new(options.max_concurrent_calls),
            options,
        }
    }

    /// Reads the cluster once more and returns its new state. Partitions and replicas of `unreachable`
    /// services are read in any case.
    ///
    /// # Errors
    ///
    /// Returns an error if nothing could be read: all calls failed, or the applications could not be
    /// listed, or everything below them failed and there was no earlier cycle or the list is an old one. A
    /// current list of applications is a result by itself: applications missing from it are removed, even
    /// if everything else fails.
    ///
    /// # Cancel safety
    ///
    /// May be dropped at any await point; only responses of the cluster stay cached then.
    pub(crate) async fn read(
        &self,
        before: &Memory,
        unreachable: &HashSet<Arc<str>>,
    ) -> Result<Memory, DiscoverError> {
        let now = Instant::now();
        let period = self.options.discovery_period;
        // The runner varies its interval by a tenth.
        let is_due = |listed| now.duration_since(listed) >= period.mul_f64(0.9);
        let is_whole = before.listed_at.is_none_or(is_due);
        let cycle = Cycle {
            now,
            is_whole,
            before: before.listed_at,
            unreachable,
            options: &self.options,
        };
        let answered = self.calls.tally().answered;
        let mut memory = Memory {
            was_whole: is_whole,
            ..before.clone()
        };
        if is_whole {
            memory.listed_at = Some(now);
            self.list_applications(&cycle, &mut memory).await?;
        }
        self.list_services(&cycle, &mut memory).await;
        let listed = listed(&memory).await?;
        let probe = self.probe(&cycle, &mut memory, &listed).await;
        self.read_services(&cycle, &mut memory, listed, probe).await;
        let is_answer = before.listed_at.is_some() && memory.is_live;
        if !is_answer && let Some(error) = nothing_read(&memory) {
            return Err(error);
        }
        let tally = self.calls.tally();
        if (is_whole || !unreachable.is_empty())
            && tally.answered == answered
            && let Some((kind, failure)) = tally.failure
        {
            // Old responses replace those of single calls. If there are only old ones, the source is
            // unavailable.
            let message = format!("the cluster answers nothing: {failure}");
            return Err(failed(kind, message));
        }
        if is_whole {
            // Entries that were not requested in two full refreshes no longer exist.
            let refresh = self.options.full_refresh_period;
            self.calls.evict((refresh * 2).max(period * 4));
        }
        Ok(memory)
    }

    /// The start of the cycle after `memory`, if it is earlier than the interval.
    pub(crate) fn wake(&self, memory: &Memory) -> Option<Instant> {
        settling::wake(memory, &self.options, Instant::now())
    }

    /// Makes a call when there is a place for it.
    async fn gated<T>(&self, call: impl Future<Output = T> + Send) -> T {
        let permit = self.permits.acquire().await;
        let _permit = permit.expect("the semaphore is never closed");
        call.await
    }

    /// Makes a call about a single service or application when there is a free slot, with a time limit.
    async fn limited<T>(
        &self,
        call: impl Future<Output = Result<T, CallError>> + Send,
    ) -> Result<T, CallError> {
        self.within(PATIENCE, call).await
    }

    /// Runs a call with another time limit.
    async fn within<T>(
        &self,
        patience: Duration,
        call: impl Future<Output = Result<T, CallError>> + Send,
    ) -> Result<T, CallError> {
        let call = async {
            timeout(patience, call).await.unwrap_or_else(|_| {
                let seconds = patience.as_secs();
                let message = format!("no answer within {seconds} s, and the others do not wait");
                let kind = CallErrorKind::TimedOut;
                Err(CallError::new(kind, "reading the cluster", message))
            })
        };
        self.gated(call).await
    }

    /// Like [`all`](Self::all), but stops at the first error.
    async fn try_all<I, F, T, E>(
        &self,
        items: Vec<I>,
        each: impl FnMut(I) -> F,
    ) -> Result<Vec<T>, E>
    where
        F: Future<Output = Result<T, E>>,
    {
        let work = stream::iter(items).map(each);
        let at_once = self.options.max_concurrent_calls;
        work.buffer_unordered(at_once).try_collect().await
    }

    /// Runs `each` for all items, as many at the same time as calls are allowed.
    async fn all<I, F: Future>(&self, items: Vec<I>, each: impl FnMut(I) -> F) -> Vec<F::Output> {
        // A future is large, and there may be tens of thousands: each is made when it is its turn.
        let work = stream::iter(items).map(each);
        let at_once = self.options.max_concurrent_calls;
        work.buffer_unordered(at_once).collect().await
    }

    async fn probe(
        &self,
        cycle: &Cycle<'_>,
        memory: &mut Memory,
        listed: &[Listed],
    ) -> Option<probe::Probe> {
        let is_of_use = self.options.change_probe
            && cycle.is_whole
            && listed
                .iter()
                .any(|listed| listed.info.service_kind == ServiceKind::Stateless);
        let is_rejected = memory
            .probe
            .rejected_until
            .is_some_and(|until| cycle.now < until);
        if !is_of_use || is_rejected {
            return None;
        }
        match self.limited(self.calls.replica_ids()).await {
            Ok(replicas) => {
                memory.probe.rejected_until = None;
                Some(probe::Probe::new(replicas))
            }
            Err(error) => {
                let lasting = probe::is_lasting(&error);
                tracing::debug!(
                    target: "discovery::servicefabric",
                    error = error.chain(),
                    lasting,
                    "the ids of all replicas cannot be listed; every service is read instead",
                );
                memory.probe.rejected_until =
                    lasting.then(|| cycle.now + self.options.full_refresh_period);
                None
            }
        }
    }
}

impl std::fmt::Debug for Topology {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Topology")
            .field("options", &self.options)
            .finish_non_exhaustive()
    }
}

/// The services to look at, each once.
async fn listed(memory: &Memory) -> Result<Vec<Listed>, DiscoverError> {
    let mut seen = HashSet::new();
    let mut all = Vec::new();
    for (name, list) in &memory.lists {
        let Some(application) = memory.applications.get(name) else {
            continue;
        };
        let Some(known) = memory.types.get(&application.type_key) else {
            continue;
        };
        let Some(declared) = &known.declared else {
            continue;
        };
        for info in &list.services {
            let_others_run(seen.len()).await;
            let Some(declared) = declared.get(&info.type_name) else {
                continue;
            };
            if seen.insert(info.name.as_str()) {
                all.push(Listed {
                    application: Arc::clone(application),
                    declared: Arc::clone(declared),
                    info: Arc::clone(info),
                });
            }
        }
    }
    if all.len() > MAX_SERVICES {
        let message = format!(
            "the cluster has {} services with labels, more than {MAX_SERVICES}",
            all.len()
        );
        return Err(DiscoverError::permanent(message));
    }
    Ok(all)
}

/// Yields to the runtime from time to time: with tens of thousands of services even a loop over them takes
/// a while.
async fn let_others_run(done: usize) {
    if done % 256 == 255 {
        tokio::task::yield_now().await;
    }
}

/// Returns the error that ends the cycle if nothing below the applications could be read. An empty result
/// would mean that nothing exists.
fn nothing_read(memory: &Memory) -> Option<DiscoverError> {
    let types = memory.types.values().filter_map(|known| {
        known
            .declared
            .is_none()
            .then_some(known.failed.as_ref())
            .flatten()
    });
    let lists = memory.lists.values();
    let lists = lists.filter_map(|list| list.failed.as_ref().map(|failed| &failed.problem));
    let services = memory.services.values();
    let services = services.filter_map(|known| known.failed.as_ref().map(|failed| &failed.problem));
    let problem = types.chain(lists).chain(services).next()?;
    let something = memory
        .lists
        .values()
        .any(|list| list.failed.is_none() && list.services.is_empty())
        || memory.services.values().any(|known| {
            let list = memory.lists.get(&known.application.name);
            known.failed.is_none() && list.is_some_and(|list| list.failed.is_none())
        });
    let message = problem.message.clone();
    (!something).then(|| match problem.code == DENIED {
        true => DiscoverError::rejected(message),
        false => DiscoverError::transient(message),
    })
}

/// Returns the error that ends the cycle after a failed call that is indispensable.
fn rejected(error: CallError) -> DiscoverError {
    let message = "the applications of the cluster cannot be listed";
    let rejected = failed(error.kind(), message.to_owned());
    let rejected = match error.retry_after() {
        Some(wait) => rejected.with_retry_after(wait),
        None => rejected,
    };
    rejected.with_source(error)
}

/// The error of a cycle that ended because of a call.
fn failed(kind: CallErrorKind, message: String) -> DiscoverError {
    match failure(kind) {
        DiscoverErrorKind::Rejected => DiscoverError::rejected(message),
        DiscoverErrorKind::Permanent => DiscoverError::permanent(message),
        _ => DiscoverError::transient(message),
    }
}

/// Returns the discoverer's kind of failure for a call's kind of error.
pub(crate) fn failure(kind: CallErrorKind) -> DiscoverErrorKind {
    match kind {
        CallErrorKind::Denied => DiscoverErrorKind::Rejected,
        CallErrorKind::Rejected => DiscoverErrorKind::Permanent,
        CallErrorKind::Gone
        | CallErrorKind::Unreachable
        | CallErrorKind::TimedOut
        | CallErrorKind::Busy
        | CallErrorKind::Failed
        | CallErrorKind::Malformed => DiscoverErrorKind::Transient,
    }
}

/// A type of applications.
fn type_key(name: &str, version: &str) -> TypeKey {
    (name.into(), version.into())
}
