//! The right to have one more connection to a destination.

use std::sync::Weak;

use super::destination::DestinationPool;

/// The right to have one connection to a destination, taken before it is opened and given back when its socket closes.
#[derive(Debug)]
pub(super) struct Slot {
    /// Weak, since the pool's idle connections hold slots: strong ones would keep the pool alive for ever.
    pool: Weak<DestinationPool>,
}

impl Slot {
    pub(super) fn new(pool: Weak<DestinationPool>) -> Self {
        Self { pool }
    }

    /// The pool to which the slot returns.
    pub(super) fn pool(&self) -> &Weak<DestinationPool> {
        &self.pool
    }

    /// Ends it without giving it back: it was never handed on.
    pub(super) fn disarm(mut self) {
        self.pool = Weak::new();
    }

    /// Returns true if the slot belongs to this pool.
    pub(super) fn is_of(&self, pool: &Weak<DestinationPool>) -> bool {
        self.pool.ptr_eq(pool)
    }
}

impl Drop for Slot {
    fn drop(&mut self) {
        if let Some(pool) = self.pool.upgrade() {
            pool.slot_freed();
        }
    }
}
