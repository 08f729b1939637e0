//! Groups of runtimes that wait for each other at the end.

use std::cell::Cell;
#[cfg(feature = "server")]
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// Threads whose runtimes end together: the workers of a server, and all threads that are no workers.
///
/// A connection goes with the runtime that it was opened on. So one that several threads share is lent within its
/// group only: another server of the process, which shares the proxy, would go on when it is gone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct RuntimeGroup(u64);

thread_local! {
    static OWN: Cell<RuntimeGroup> = const { Cell::new(RuntimeGroup(0)) };
}

impl RuntimeGroup {
    /// A new one.
    #[cfg(feature = "server")]
    pub(crate) fn new() -> Self {
        static LAST: AtomicU64 = AtomicU64::new(0);
        Self(LAST.fetch_add(1, Relaxed) + 1)
    }

    /// Makes this thread a member, for the rest of its life.
    #[cfg(feature = "server")]
    pub(crate) fn enter(self) {
        OWN.set(self);
    }

    /// Returns the group of this thread.
    pub(crate) fn current() -> Self {
        OWN.get()
    }
}
