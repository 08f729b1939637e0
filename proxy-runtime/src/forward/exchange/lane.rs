//! The number of requests that the exchange forwards, for tests that compare its clients.

use std::cell::Cell;

thread_local! {
    static COUNT: Cell<u64> = const { Cell::new(0) };
}

/// Counts a request that the exchange forwards on this thread.
pub(super) fn is_exchange() {
    COUNT.set(COUNT.get() + 1);
}

/// Returns the number of requests that the exchange has forwarded since the last call.
pub(crate) fn take() -> u64 {
    COUNT.take()
}
