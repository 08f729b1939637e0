//! Which lane requests take: what compares the two must not compare one with itself.

use std::cell::Cell;

thread_local! {
    static RAW: Cell<u64> = const { Cell::new(0) };
}

/// A request is forwarded in the raw lane, by this thread.
pub(in crate::server::engine) fn is_raw() {
    RAW.set(RAW.get() + 1);
}

/// How many were since this was last asked.
pub(super) fn take_raw() -> u64 {
    RAW.take()
}
