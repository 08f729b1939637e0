//! The response from a destination of HTTP/1.1 to a stream.

use std::sync::Arc;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use h2::{Reason, SendStream};
use tokio::time::Instant;

use crate::forward::exchange::downstream;
use crate::forward::exchange::incoming::Incoming;
use crate::http1::{HeadTable, PooledTable};
use crate::server::connection::{ConnectionState, Held};
use crate::server::http2::{Room, compact, poll_room};

/// The state of a response.
#[derive(Default)]
pub(crate) struct StreamDownload {
    /// The fields of the head.
    pub(super) table: PooledTable,
    /// The response after its head was sent.
    pub(super) begun: Option<Begun>,
    pub(super) held: Held,
}

/// A response whose head was sent.
pub(crate) struct Begun {
    pub(super) incoming: Incoming,
    stream: Option<SendStream<Bytes>>,
    room: Room,
    /// True for gRPC and similar protocols, whose clients may read slowly.
    is_exempt: bool,
    /// True if all of it was handed to the connection.
    is_sent: bool,
    /// True if more is not read before the client's socket has accepted what other streams have sent.
    is_held_back: bool,
    /// Body bytes handed to the connection.
    pub(super) sent: u64,
}

/// The client has reset the stream.
pub(super) struct Disconnected;

impl downstream::Download for StreamDownload {
    fn restart(&mut self) {
        self.table.release();
        self.begun = None;
    }

    fn rest(&mut self) {
        *self = Self::default();
    }

    fn table(&mut self) -> &mut HeadTable {
        &mut self.table
    }

    fn is_unanswered(&self) -> bool {
        self.begun.is_none()
    }

    fn has_all(&self) -> bool {
        let begun = self.begun.as_ref();
        begun.is_some_and(|begun| begun.incoming.has_all())
    }

    fn is_done(&self) -> bool {
        self.begun.as_ref().is_some_and(|begun| begun.is_sent)
    }

    fn is_persistent(&self) -> bool {
        let begun = self.begun.as_ref();
        begun.is_some_and(|begun| begun.incoming.is_persistent())
    }

    fn take_uncounted(&mut self) -> u64 {
        let begun = self.begun.as_mut();
        begun.map_or(0, |begun| begun.incoming.take_uncounted())
    }

    fn sent(&self) -> u64 {
        self.begun.as_ref().map_or(0, |begun| begun.sent)
    }
}

impl Begun {
    /// `is_exempt`: the client may read slowly.
    pub(super) fn new(incoming: Incoming, is_exempt: bool) -> Self {
        Self {
            incoming,
            stream: None,
            room: Room::default(),
            is_exempt,
            is_sent: false,
            is_held_back: false,
            sent: 0,
        }
    }

    /// Records that the head was sent. `is_end`: it was the whole response.
    pub(super) fn begin(&mut self, stream: SendStream<Bytes>, is_end: bool) {
        self.stream = Some(stream);
        self.is_sent = is_end;
    }

    /// Returns true if all of it was handed to the connection.
    pub(super) fn is_sent(&self) -> bool {
        self.is_sent
    }

    /// Returns true if the client is waited for: received bytes wait for its window, or its socket is full.
    pub(super) fn waits_for_client(&self) -> bool {
        self.is_held_back || !self.incoming.data.is_empty()
    }

    /// Ready when the connection can take more. Until then nothing is read, so that the streams of a client that does
    /// not read hold no data each. True: it had to wait.
    #[inline]
    pub(super) fn poll_taken(
        &mut self,
        client: &ConnectionState,
        cx: &mut Context<'_>,
    ) -> Poll<bool> {
        let is_shared = client.is_shared_by_responses();
        if client.backlog.is_full(is_shared) {
            self.is_held_back = true;
            ready!(client.backlog.poll_read(is_shared, cx));
        }
        let has_waited = std::mem::take(&mut self.is_held_back);
        if has_waited {
            self.room.is_found(0);
        }
        Poll::Ready(has_waited)
    }

    /// The number of received bytes that wait for the client's window.
    pub(super) fn waiting(&self) -> usize {
        self.incoming.data.len()
    }

    /// Records that the client's window is waited for.
    pub(super) fn waits_for(&mut self, client: &Arc<ConnectionState>) {
        if !self.is_exempt {
            self.room.lacks(client);
        }
    }

    /// Returns the next check of the data rate; [`Room::due`].
    pub(super) fn room_due(&mut self) -> Option<Instant> {
        self.room.due()
    }

    /// Checks the data rate; [`Room::is_too_slow`].
    pub(super) fn is_too_slow(&mut self) -> bool {
        self.room.is_too_slow()
    }

    /// Ready when the client has reset the stream before the end.
    pub(super) fn poll_reset(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        match &mut self.stream {
            // Once all of it was handed over, a reset changes nothing.
            Some(stream) if !self.is_sent => stream.poll_reset(cx).map(drop),
            _ => Poll::Pending,
        }
    }

    /// Sends received bytes to the client; ready when more can be read.
    pub(super) fn poll_send(
        &mut self,
        client: &ConnectionState,
        cx: &mut Context<'_>,
    ) -> Poll<Result<(), Disconnected>> {
        let Some(stream) = &mut self.stream else {
            return Poll::Ready(Ok(()));
        };
        let incoming = &mut self.incoming;
        while !incoming.data.is_empty() {
            let wanted = incoming.data.len();
            let Some(room) = ready!(poll_room(stream, wanted, client, cx)) else {
                return Poll::Ready(Err(Disconnected));
            };
            self.room.is_found(room);
            client
                .backlog
                .hold_behind(std::mem::take(&mut incoming.behind) as usize);
            let part = compact(incoming.data.split_to(room), client);
            // The last part ends the stream, which saves an empty frame.
            let is_end = incoming.has_all();
            self.sent += room as u64;
            if stream.send_data(part, is_end).is_err() {
                return Poll::Ready(Err(Disconnected));
            }
            self.is_sent = is_end;
        }
        if self.is_sent || !incoming.has_ended() {
            return Poll::Ready(Ok(()));
        }
        let sent = match incoming.trailers.take() {
            Some(trailers) => stream.send_trailers(*trailers),
            None => stream.send_data(Bytes::new(), true),
        };
        self.is_sent = true;
        Poll::Ready(sent.map_err(|_| Disconnected))
    }

    /// Resets the stream.
    pub(super) fn cut(&mut self, reason: Reason) {
        if let Some(stream) = &mut self.stream {
            stream.send_reset(reason);
        }
    }
}
