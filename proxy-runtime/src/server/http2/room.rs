//! Room for data in the client's windows.

use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use h2::SendStream;

use crate::server::connection::ConnectionState;

/// Waits until data can be sent on a stream, and returns how much of `wanted` bytes; `None` when the client wants no more.
///
/// More than that would be held until the client opens its window.
pub(crate) fn poll_room(
    stream: &mut SendStream<Bytes>,
    wanted: usize,
    cx: &mut Context<'_>,
) -> Poll<Option<usize>> {
    stream.reserve_capacity(wanted);
    loop {
        match stream.capacity() {
            0 => {}
            room => return Poll::Ready(Some(room.min(wanted))),
        }
        match ready!(stream.poll_capacity(cx)) {
            Some(Ok(_)) => {}
            Some(Err(_)) | None => return Poll::Ready(None),
        }
    }
}

/// Notes that a stream waits for its client to take what it was given.
#[derive(Debug, Default)]
pub(crate) struct Room(Option<Arc<ConnectionState>>);

impl Room {
    /// It waits.
    pub(crate) fn lacks(&mut self, connection: &Arc<ConnectionState>) {
        if self.0.is_none() {
            connection.untaken.fetch_add(1, Relaxed);
            self.0 = Some(Arc::clone(connection));
        }
    }

    /// It does not wait any more.
    #[inline]
    pub(crate) fn is_found(&mut self) {
        if let Some(connection) = self.0.take() {
            connection.untaken.fetch_sub(1, Relaxed);
        }
    }
}

impl Drop for Room {
    fn drop(&mut self) {
        self.is_found();
    }
}
