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

/// How often connections that have been idle for too long are looked for.
const SWEEP: Duration = Duration::from_secs(2);

/// Connections by destination.
#[derive(Debug)]
pub(super) struct Pool {
    options: UpstreamOptions,
    /// Requests of several runtimes use it, so that the end of one of them does not concern all connections.
    is_shared: bool,
    state: Mutex<PoolState>,
    this: Weak<Self>,
}

type Destinations = HashMap<DestinationKey, Arc<DestinationPool>, BuildHasherDefault<KeyHasher>>;

#[derive(Debug, Default)]
struct PoolState {
    destinations: Destinations,
    /// There while a task sweeps. Dropped with the pool, it ends the task.
    sweeper: Option<oneshot::Sender<()>>,
}

impl Pool {
    /// For the requests of one runtime.
    pub(super) fn new(options: UpstreamOptions) -> Arc<Self> {
        Self::of_runtimes(options, false)
    }

    /// For the requests of several runtimes, each of which may end before the others.
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

    /// The connections to `destination`. Those that were made with older settings are closed.
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
            // A runtime that is ending drops the task here and now, and with it the sweeper, which wants the lock.
            tokio::spawn(Sweeper::new(&self.this).run(stopped));
            state = self.lock();
        }
        let filed = state.destinations.get(&destination.key());
        if let Some(pool) = filed
            && pool.client == client
        {
            return Arc::clone(pool);
        }
        // What a request opens that a reload has overtaken is not kept in the place of what serves the requests after it.
        let is_overtaken = filed.is_some_and(|pool| pool.client > client);
        // The runtime is ending: what the request opens on it is not kept for those of the next one.
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

    /// A connection that is there already. `None` as well where there is something to be set up first, as
    /// [`of`](Self::of) does.
    #[inline]
    pub(super) fn ready(&self, wanted: &ConnectionRequest<'_>, now: Instant) -> Option<Lease> {
        let state = self.lock();
        state.sweeper.as_ref()?;
        let pool = state.destinations.get(&wanted.destination.key())?;
        if pool.client != wanted.client {
            return None;
        }
        // Its lock is taken within this one, and nowhere the other way round.
        pool.ready(wanted, now)
    }

    /// Closes what is idle for too long or belongs to a removed destination. Returns whether anything is left to watch.
    fn sweep(&self) -> bool {
        let now = Instant::now();
        let mut state = self.lock();
        state.destinations.retain(|_, pool| {
            if !pool.is_needed() {
                pool.close();
                return false;
            }
            // A pool that somebody holds is about to open a connection.
            pool.close_idle(now) || Arc::strong_count(pool) > 1
        });
        if state.destinations.is_empty() {
            state.sweeper = None;
            return false;
        }
        true
    }

    /// The runtime that the sweeper ran on ends, and with it what the connections that were opened there need. In a pool of one
    /// runtime these are all of them: they close, those in use instead of being kept when they are given back.
    fn runtime_ended(&self) {
        let mut state = self.lock();
        state.sweeper = None;
        if self.is_shared {
            return;
        }
        let destinations = std::mem::take(&mut state.destinations);
        drop(state);
        destinations.into_values().for_each(|pool| pool.close());
    }

    fn lock(&self) -> MutexGuard<'_, PoolState> {
        self.state.lock()
    }
}

/// Sweeps a pool until it is empty or gone.
struct Sweeper {
    /// `None` when the pool knows that this sweeper has ended.
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

/// A sweeper that is dropped together with the runtime that it ran on makes room for one on another runtime.
impl Drop for Sweeper {
    fn drop(&mut self) {
        if let Some(pool) = self.pool.as_ref().and_then(Weak::upgrade) {
            pool.runtime_ended();
        }
    }
}
