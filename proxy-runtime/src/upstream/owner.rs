//! The pool of a connection, as the connection sees it.

use std::fmt;

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
