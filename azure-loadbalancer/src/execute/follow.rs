//! Reconciliation of changing services and nodes.

use std::time::Duration;

use async_trait::async_trait;
use tokio::time::{Instant, sleep_until};

use super::executor::{Executor, ReconcileError};
use super::outcome::Reconciled;
use crate::arm::RetryPolicy;
use crate::node::Node;
use crate::service::Service;
use crate::sources::{Source, SourceError};

/// The options of following changes.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct FollowOptions {
    /// The time to wait for more changes after one. Default: 500 ms.
    pub debounce: Duration,
    /// The maximum time to wait while changes keep arriving. Default: 5 s.
    pub longest_debounce: Duration,
    /// The time after which everything is checked again although nothing has changed, since another client
    /// may have written. Default: 10 min.
    pub resync: Duration,
    /// The waits after an incomplete reconciliation. Default: from 5 s, × 1.5, at most 2 min.
    pub backoff: RetryPolicy,
}

impl Default for FollowOptions {
    fn default() -> Self {
        Self {
            debounce: Duration::from_millis(500),
            longest_debounce: Duration::from_secs(5),
            resync: Duration::from_secs(10 * 60),
            backoff: RetryPolicy::default(),
        }
    }
}

/// The observer of reconciliations. A closure is an observer that always succeeds.
#[async_trait]
pub trait Observer: Send {
    /// Handles the result of a reconciliation. Returns false on failure: everything is then reconciled and
    /// reported again after the next wait of [`FollowOptions::backoff`].
    ///
    /// # Cancel safety
    ///
    /// The future is dropped together with that of [`follow`].
    async fn reconciled(&mut self, result: &Result<Reconciled, ReconcileError>) -> bool;
}

#[async_trait]
impl<F: FnMut(&Result<Reconciled, ReconcileError>) + Send> Observer for F {
    async fn reconciled(&mut self, result: &Result<Reconciled, ReconcileError>) -> bool {
        self(result);
        true
    }
}

/// Reconciles whenever services or nodes have changed, after failures, and periodically. Reports the result
/// of each reconciliation. Begins when both sources have returned their first state, and never returns.
///
/// A source that fails keeps its last state.
///
/// # Cancel safety
///
/// That of [`Executor::reconcile`].
pub async fn follow(
    executor: &Executor,
    services: &mut dyn Source<Service>,
    nodes: &mut dyn Source<Node>,
    options: &FollowOptions,
    observer: &mut dyn Observer,
) {
    let mut inputs = FollowedInputs {
        services: None,
        nodes: None,
    };
    let mut failures = 0;
    let mut due = Instant::now() + options.resync;
    loop {
        let mut has_changed = false;
        let mut quiet = due;
        let mut latest = due;
        // Further changes during the debounce are included.
        loop {
            let is_ready = inputs.services.is_some() && inputs.nodes.is_some();
            let until = if has_changed { quiet.min(latest) } else { due };
            tokio::select! {
                biased;
                () = sleep_until(until), if is_ready => break,
                state = services.next() => has_changed |= take(&mut inputs.services, state, "services"),
                state = nodes.next() => has_changed |= take(&mut inputs.nodes, state, "nodes"),
            }
            if has_changed {
                let now = Instant::now();
                if latest == due {
                    latest = now + options.longest_debounce;
                }
                quiet = now + options.debounce;
            }
        }
        let (Some(wanted), Some(members)) = (&inputs.services, &inputs.nodes) else {
            continue;
        };
        let result = executor.reconcile(wanted, members).await;
        let is_noted = observer.reconciled(&result).await;
        let is_done = is_noted && result.as_ref().is_ok_and(Reconciled::is_converged);
        failures = if is_done { 0 } else { failures + 1 };
        let wait = if is_done {
            options.resync
        } else {
            options.backoff.wait(failures)
        };
        due = Instant::now() + wait;
        let kept_until = executor.pools_kept_until();
        if let Some(until) = kept_until.filter(|until| *until > Instant::now()) {
            due = due.min(until);
        }
    }
}

struct FollowedInputs {
    services: Option<Vec<Service>>,
    nodes: Option<Vec<Node>>,
}

fn take<T>(held: &mut Option<Vec<T>>, state: Result<Vec<T>, SourceError>, what: &str) -> bool {
    match state {
        Ok(state) => {
            *held = Some(state);
            true
        }
        Err(error) => {
            let cause = std::error::Error::source(&error).map(ToString::to_string);
            tracing::warn!(%error, cause, what, "the last state stays in force");
            false
        }
    }
}
