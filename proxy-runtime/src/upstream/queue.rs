//! The connections of a pool to one destination, and the queue of requests that wait for one.

use std::collections::VecDeque;
#[cfg(feature = "http2")]
use std::sync::Arc;
use std::sync::Weak;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

use tokio::runtime::{self, Handle};
use tokio::sync::{oneshot, watch};
use tokio::time::Instant;

use super::destination::DestinationPool;
use super::error::ConnectError;
use super::group::RuntimeGroup;
use super::http1::Http1Connection;
#[cfg(feature = "http2")]
use super::http2::Http2Connection;
use super::lease::Lease;
use super::protocol::Protocols;
use super::slot::Slot;

/// Idle connections, boxed because every request moves one.
pub(super) type IdleConnections = Vec<Box<Http1Connection>>;

/// The connections to one destination that are open, and the requests that wait for one.
#[derive(Debug, Default)]
pub(super) struct QueueState {
    /// True if the pool is closed and keeps no connection.
    pub(super) closed: bool,
    /// Idle connections, the last used at the end. That is used first, so the others can time out.
    pub(super) idle: IdleConnections,
    #[cfg(feature = "http2")]
    pub(super) http2: Vec<Arc<Http2Connection>>,
    /// Number of slots in use.
    pub(super) open: u32,
    /// Requests that wait for a slot or a connection, in order of arrival.
    pub(super) waiting: VecDeque<WaitingRequest>,
    /// The current attempt to open a connection that several requests can share.
    pub(super) attempt: Option<Ongoing>,
    /// Stop signals of overdue attempts. Dropping the pool drops these, which ends the attempts.
    pub(super) overdue: Vec<oneshot::Sender<()>>,
    /// True if ALPN last selected HTTP/1.1, so that requests cannot share a connection.
    pub(super) agreed_on_http1: bool,
    pub(super) runtimes: Runtimes,
}

/// The runtimes that connections of HTTP/1.1 were opened on.
#[derive(Debug, Default)]
pub(super) enum Runtimes {
    #[default]
    None,
    One(runtime::Id),
    Several,
}

impl Runtimes {
    /// Records that a connection was opened on the current runtime.
    pub(super) fn add_current(&mut self) {
        let Ok(current) = Handle::try_current().map(|handle| handle.id()) else {
            return;
        };
        *self = match self {
            Self::None => Self::One(current),
            Self::One(only) if *only == current => Self::One(current),
            Self::One(_) | Self::Several => Self::Several,
        };
    }

    /// Returns true if there are several runtimes, one of which may end before the others.
    #[inline]
    pub(super) fn are_several(&self) -> bool {
        matches!(self, Self::Several)
    }
}

#[derive(Debug)]
pub(super) struct WaitingRequest {
    pub(super) protocols: Protocols,
    pub(super) group: RuntimeGroup,
    /// True if the request is a retry after its connection failed.
    pub(super) is_again: bool,
    pub(super) granted: oneshot::Sender<Grant>,
}

/// The end of a request's wait.
#[derive(Debug)]
pub(super) enum Grant {
    Connection(Box<Http1Connection>),
    Slot(Slot),
    /// A new HTTP/2 connection exists: search again.
    #[cfg(feature = "http2")]
    LookAgain,
}

/// Waits for a grant, and notes that meanwhile.
pub(super) async fn queued<T>(granted: impl Future<Output = T>, is_queued: &AtomicBool) -> T {
    is_queued.store(true, Relaxed);
    let granted = granted.await;
    is_queued.store(false, Relaxed);
    granted
}

/// The next step of a request on its way to a connection.
pub(super) enum Admission {
    Use(Lease),
    Open(Slot, Option<ConnectAttempt>),
    AwaitGrant(oneshot::Receiver<Grant>),
    /// Wait for the attempt's result until this time, when the attempt is overdue.
    AwaitAttempt(watch::Receiver<Option<ConnectError>>, Instant),
}

/// An attempt to connect that other requests wait for. If dropped without a result, one of them makes the next attempt.
pub(super) struct ConnectAttempt {
    pub(super) pool: Weak<DestinationPool>,
    pub(super) began: Instant,
    pub(super) result: watch::Sender<Option<ConnectError>>,
    /// Ends when the pool is dropped, so that no request can wait any more.
    pub(super) stopped: oneshot::Receiver<()>,
}

/// The pool's side of an attempt.
#[derive(Debug)]
pub(super) struct Ongoing {
    pub(super) result: watch::Receiver<Option<ConnectError>>,
    pub(super) began: Instant,
    /// Ends the attempt when dropped.
    pub(super) stop: oneshot::Sender<()>,
}

impl Drop for ConnectAttempt {
    fn drop(&mut self) {
        if let Some(pool) = self.pool.upgrade() {
            pool.attempt_ended(self.began);
        }
    }
}
