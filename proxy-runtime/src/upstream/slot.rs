//! The right to have one more connection to a destination, and the pool that gives it.

use std::fmt;
use std::ptr;
use std::sync::Weak;

use tokio::time::Instant;

use super::http1::Http1Connection;

/// The pool that a connection was opened for, as far as the connection and its slot need it.
pub(super) trait ConnectionOwner: fmt::Debug + Send + Sync {
    /// Takes back the slot of a connection that has closed, or was not opened.
    fn slot_freed(&self);

    /// Takes back a connection after its request.
    fn put(&self, connection: Box<Http1Connection>, now: Instant);

    /// Handles the end of the last request on an HTTP/2 connection. If connections are limited and requests wait, idle
    /// HTTP/2 connections close to free their slots.
    #[cfg(feature = "http2")]
    fn http2_idle(&self);
}

/// The right to have one connection to a destination, taken before it is opened and given back when its socket closes.
#[derive(Debug)]
pub(super) struct Slot {
    /// The owner of the slot. `None`: the slot is not returned. Weak, since the pool's idle connections hold slots:
    /// strong ones would keep the pool alive for ever.
    pool: Option<Weak<dyn ConnectionOwner>>,
}

impl Slot {
    pub(super) fn new(pool: Weak<dyn ConnectionOwner>) -> Self {
        Self { pool: Some(pool) }
    }

    /// The pool to which the slot returns, if it does.
    pub(super) fn pool(&self) -> Option<&Weak<dyn ConnectionOwner>> {
        self.pool.as_ref()
    }

    /// Ends it without giving it back: it was never handed on.
    pub(super) fn disarm(mut self) {
        self.pool = None;
    }

    /// Returns true if the slot belongs to this pool.
    pub(super) fn is_of<P: ConnectionOwner>(&self, pool: &Weak<P>) -> bool {
        let own = self.pool.as_ref();
        own.is_some_and(|own| ptr::addr_eq(own.as_ptr(), pool.as_ptr()))
    }
}

impl Drop for Slot {
    fn drop(&mut self) {
        if let Some(pool) = self.pool.as_ref().and_then(Weak::upgrade) {
            pool.slot_freed();
        }
    }
}
