//! The memory that a connection holds for a peer that has to take it.

use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::task::Waker;

use super::state::ConnectionState;
use crate::server::memory::Holding;
use crate::server::offers::Source;

impl ConnectionState {
    /// Returns true if the connection must end because of the memory that it holds.
    #[inline]
    pub(crate) fn is_shed(&self) -> bool {
        self.has_held.load(Relaxed) && self.must_end()
    }

    #[inline(never)]
    fn must_end(&self) -> bool {
        let holding = self.holding.load();
        holding.as_ref().is_some_and(|holding| holding.is_shed())
    }

    /// Records the memory that the connection holds in total. `waker` wakes the task that must end if that is too
    /// much. Returns true if it must end already.
    #[inline]
    pub(crate) fn hold(&self, bytes: u64, waker: &Waker) -> bool {
        // Most connections never hold anything, and need no look at the shared state.
        (bytes > 0 || self.has_held.load(Relaxed)) && self.hold_other(bytes, waker)
    }

    #[inline(never)]
    fn hold_other(&self, bytes: u64, waker: &Waker) -> bool {
        let holding = self.holding();
        if holding.bytes() != bytes {
            // The waker first, since the change may end this very connection.
            holding.watch(waker);
            self.change_holding(&holding, holding.bytes(), bytes);
        }
        let is_shed = holding.is_shed();
        if bytes == 0 && !is_shed {
            self.has_held.store(false, Relaxed);
        }
        is_shed
    }

    /// Notes that it holds nothing.
    #[inline]
    pub(crate) fn hold_nothing(&self) {
        if self.has_held.load(Relaxed) {
            self.hold_no_more();
        }
    }

    #[inline(never)]
    fn hold_no_more(&self) {
        let holding = self.holding();
        if holding.bytes() > 0 {
            self.change_holding(&holding, holding.bytes(), 0);
        }
        // One that was told to end is to find that out.
        if !holding.is_shed() {
            self.has_held.store(false, Relaxed);
        }
    }

    /// Returns true if the connection must end because of the memory that its parts hold. Otherwise stores `waker`
    /// to be woken then.
    #[cfg(feature = "http2")]
    #[inline]
    pub(crate) fn is_to_end_for_memory(&self, waker: &Waker) -> bool {
        self.has_held.load(Relaxed) && {
            let holding = self.holding();
            holding.watch(waker);
            holding.is_shed()
        }
    }

    /// Stores the waker of the connection's task, which is being polled: a part with a task of its own is about to
    /// hold memory.
    #[cfg(feature = "http2")]
    pub(crate) fn expect_to_hold(&self) {
        self.holding();
    }

    fn holding(&self) -> Arc<Holding> {
        self.holding
            .load_full()
            .unwrap_or_else(|| self.enter_memory())
    }

    #[cold]
    fn enter_memory(&self) -> Arc<Holding> {
        let source = Source::of(self.info.remote);
        let holding = self.worker.memory.enter(source, &self.holding);
        self.has_held.store(true, Relaxed);
        holding
    }

    fn change_holding(&self, holding: &Holding, before: u64, after: u64) {
        if after > 0 {
            self.has_held.store(true, Relaxed);
        }
        let worker = &self.worker;
        worker
            .memory
            .changed(holding, before, after, &worker.metrics);
    }
}

/// The memory that a part of an HTTP/2 connection holds, until it is dropped.
#[cfg(feature = "http2")]
#[derive(Debug, Default)]
pub(crate) struct Held {
    bytes: u64,
    connection: Option<Arc<ConnectionState>>,
}

#[cfg(feature = "http2")]
impl Held {
    /// Notes that the part is so large now.
    #[inline]
    pub(crate) fn set(&mut self, bytes: u64, connection: &Arc<ConnectionState>) {
        if self.bytes != bytes {
            let before = std::mem::replace(&mut self.bytes, bytes);
            let connection = self
                .connection
                .get_or_insert_with(|| Arc::clone(connection));
            connection.change_holding(&connection.holding(), before, bytes);
        }
    }
}

#[cfg(feature = "http2")]
impl Drop for Held {
    fn drop(&mut self) {
        if let Some(connection) = &self.connection
            && self.bytes > 0
        {
            connection.change_holding(&connection.holding(), self.bytes, 0);
        }
    }
}
