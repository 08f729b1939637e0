//! What a pool keeps of one destination, and who waits for it.

use std::collections::VecDeque;
#[cfg(feature = "http2")]
use std::sync::Arc;
use std::sync::Weak;

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

/// Boxed, since they are handed around with every request.
pub(super) type IdleConnections = Vec<Box<Http1Connection>>;

/// The connections to one destination that are open, and the requests that wait for one.
#[derive(Debug, Default)]
pub(super) struct QueueState {
    /// No connection is kept any more.
    pub(super) closed: bool,
    /// The one that was used last is at the end, and is used first: the others can grow old and close.
    pub(super) idle: IdleConnections,
    #[cfg(feature = "http2")]
    pub(super) http2: Vec<Arc<Http2Connection>>,
    /// Slots that are taken.
    pub(super) open: u32,
    /// Requests that wait for a slot or a connection, the first to come at the front.
    pub(super) waiting: VecDeque<WaitingRequest>,
    /// An attempt to connect whose connection several requests can share.
    pub(super) attempt: Option<Ongoing>,
    /// Those that are overdue. Dropped with the pool, this ends them.
    pub(super) overdue: Vec<oneshot::Sender<()>>,
    /// ALPN agreed on HTTP/1.1 the last time. Then requests cannot share a connection.
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
    /// A connection was opened on the current one.
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

    /// Whether one of them may end while requests of another one use the pool.
    #[inline]
    pub(super) fn are_several(&self) -> bool {
        matches!(self, Self::Several)
    }
}

#[derive(Debug)]
pub(super) struct WaitingRequest {
    pub(super) protocols: Protocols,
    pub(super) group: RuntimeGroup,
    /// It had a connection, which failed.
    pub(super) is_again: bool,
    pub(super) granted: oneshot::Sender<Grant>,
}

/// What a waiting request gets.
#[derive(Debug)]
pub(super) enum Grant {
    Connection(Box<Http1Connection>),
    Slot(Slot),
    /// There is an HTTP/2 connection now: look again.
    #[cfg(feature = "http2")]
    LookAgain,
}

/// What a request has to do to get a connection.
pub(super) enum Admission {
    Use(Lease),
    Open(Slot, Option<ConnectAttempt>),
    AwaitGrant(oneshot::Receiver<Grant>),
    /// Until it is overdue.
    AwaitAttempt(watch::Receiver<Option<ConnectError>>, Instant),
}

/// The attempt that others wait for. Dropped without a result, it lets one of them try.
pub(super) struct ConnectAttempt {
    pub(super) pool: Weak<DestinationPool>,
    pub(super) began: Instant,
    pub(super) result: watch::Sender<Option<ConnectError>>,
    /// The pool is gone, and with it all who could wait.
    pub(super) stopped: oneshot::Receiver<()>,
}

/// What the pool has of an attempt.
#[derive(Debug)]
pub(super) struct Ongoing {
    pub(super) result: watch::Receiver<Option<ConnectError>>,
    pub(super) began: Instant,
    /// Dropped with the pool, it ends the attempt.
    pub(super) stop: oneshot::Sender<()>,
}

impl Drop for ConnectAttempt {
    fn drop(&mut self) {
        if let Some(pool) = self.pool.upgrade() {
            pool.attempt_ended(self.began);
        }
    }
}
