//! The connections of one worker, by destination.

use std::collections::HashMap;
use std::hash::BuildHasherDefault;
use std::sync::{Arc, Weak};
use std::time::Duration;

use parking_lot::{Mutex, MutexGuard};
use proxy_model::compiled::Upstream;
use tokio::sync::oneshot;
use tokio::time::{Instant, sleep};

use super::destination::DestinationPool;
use super::lease::Lease;
use super::{ConnectionRequest, UpstreamOptions};
use crate::live::{ClientKey, DestinationKey, DestinationState, KeyHasher};

/// Interval at which connections that were idle for too long are closed.
const SWEEP: Duration = Duration::from_secs(2);

/// Connections by destination.
#[derive(Debug)]
pub(super) struct Pool {
    options: UpstreamOptions,
    /// True if requests of several runtimes use the pool. The end of one runtime then does not close all connections.
    is_shared: bool,
    state: Mutex<PoolState>,
    this: Weak<Self>,
}

type Destinations = HashMap<DestinationKey, Arc<DestinationPool>, BuildHasherDefault<KeyHasher>>;

#[derive(Debug, Default)]
struct PoolState {
    destinations: Destinations,
    /// The stop signal of the sweeping task, if it runs. Dropping it ends the task.
    sweeper: Option<oneshot::Sender<()>>,
}

impl Pool {
    /// Creates a pool for the requests of one runtime.
    pub(super) fn new(options: UpstreamOptions) -> Arc<Self> {
        Self::of_runtimes(options, false)
    }

    /// Creates a pool for the requests of several runtimes, each of which may end before the others.
    pub(super) fn shared(options: UpstreamOptions) -> Arc<Self> {
        Self::of_runtimes(options, true)
    }

    fn of_runtimes(options: UpstreamOptions, is_shared: bool) -> Arc<Self> {
        Arc::new_cyclic(|this| Self {
            options,
            is_shared,
            state: Mutex::default(),
            this: Weak::clone(this),
        })
    }

    /// Returns the connections to `destination`, and closes those with older settings.
    pub(super) fn of(
        &self,
        destination: &Arc<DestinationState>,
        client: ClientKey,
        upstream: &Upstream,
    ) -> Arc<DestinationPool> {
        let mut state = self.lock();
        if state.sweeper.is_none() {
            let (stop, stopped) = oneshot::channel();
            state.sweeper = Some(stop);
            drop(state);
            // A runtime that is ending drops the task here, and the sweeper's drop takes the lock.
            tokio::spawn(Sweeper::new(&self.this).run(stopped));
            state = self.lock();
        }
        let filed = state.destinations.get(&destination.key());
        if let Some(pool) = filed
            && pool.client == client
        {
            return Arc::clone(pool);
        }
        // A request with settings older than a reload must not replace the pool of current requests.
        let is_overtaken = filed.is_some_and(|pool| pool.client > client);
        // The runtime is ending, so its connections must not be kept for requests of the next one.
        let is_ending = state.sweeper.is_none() && !self.is_shared;
        let pool = DestinationPool::new(destination, client, upstream, &self.options);
        if is_overtaken || is_ending {
            return pool;
        }
        let before = state
            .destinations
            .insert(destination.key(), Arc::clone(&pool));
        drop(state);
        if let Some(before) = before {
            before.close();
        }
        pool
    }

    /// Returns a pooled connection. `None` also if the pool of the destination has to be set up first, which
    /// [`of`](Self::of) does.
    #[inline]
    pub(super) fn ready(&self, wanted: &ConnectionRequest<'_>, now: Instant) -> Option<Lease> {
        let state = self.lock();
        // Nothing would close idle connections without a sweeper. `of` starts one.
        state.sweeper.as_ref()?;
        let pool = state.destinations.get(&wanted.destination.key())?;
        if pool.client != wanted.client {
            return None;
        }
        // Lock order: this pool, then the destination's. Nothing locks them the other way round.
        pool.ready(wanted, now)
    }

    /// Closes connections that were idle for too long or belong to removed destinations. Returns true if any are left.
    fn sweep(&self) -> bool {
        let now = Instant::now();
        let mut state = self.lock();
        state.destinations.retain(|_, pool| {
            if !pool.is_needed() {
                pool.close();
                return false;
            }
            // A request that holds the pool is about to open a connection.
            pool.close_idle(now) || Arc::strong_count(pool) > 1
        });
        if state.destinations.is_empty() {
            state.sweeper = None;
            return false;
        }
        true
    }

    /// Handles the end of the sweeper's runtime, on which connections depend. In a pool of one runtime all of them
    /// close: idle ones now, those in use when they are released.
    fn runtime_ended(&self) {
        let mut state = self.lock();
        state.sweeper = None;
        if self.is_shared {
            return;
        }
        let destinations = std::mem::take(&mut state.destinations);
        // Closing a connection locks this pool again.
        drop(state);
        destinations.into_values().for_each(|pool| pool.close());
    }

    fn lock(&self) -> MutexGuard<'_, PoolState> {
        self.state.lock()
    }
}

/// Sweeps a pool until it is empty or gone.
struct Sweeper {
    /// The pool; `None` after the pool has recorded the end of this sweeper.
    pool: Option<Weak<Pool>>,
}

impl Sweeper {
    fn new(pool: &Weak<Pool>) -> Self {
        Self {
            pool: Some(Weak::clone(pool)),
        }
    }

    async fn run(mut self, mut stopped: oneshot::Receiver<()>) {
        while let Some(pool) = &self.pool {
            tokio::select! {
                _ = &mut stopped => return,
                () = sleep(SWEEP) => {
                    if !pool.upgrade().is_some_and(|pool| pool.sweep()) {
                        self.pool = None;
                    }
                }
            }
        }
    }
}

/// Lets another runtime start a sweeper if this one ends with its runtime.
impl Drop for Sweeper {
    fn drop(&mut self) {
        if let Some(pool) = self.pool.as_ref().and_then(Weak::upgrade) {
            pool.runtime_ended();
        }
    }
}
