//! The response from a destination of HTTP/1.1 to a stream.

use std::sync::Arc;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use h2::{Reason, SendStream};
use http::HeaderMap;
use tokio::time::Instant;

use crate::http1::{HeadTable, PooledTable, RawResponse};
use crate::response::TrailerRules;
use crate::server::connection::{ConnectionState, Held};
use crate::server::engine::downstream;
use crate::server::http2::{Room, poll_room};
use crate::upstream::{Http1Body, Http1Connection};

/// The state of a response.
#[derive(Default)]
pub(in crate::server::engine) struct StreamDownload {
    /// The fields of the head.
    pub(super) table: PooledTable,
    /// The response after its head was sent.
    pub(super) begun: Option<Begun>,
    pub(super) held: Held,
}

/// A response whose head was sent.
pub(super) struct Begun {
    /// The body to read.
    body: Http1Body,
    /// True if the destination keeps its connection open.
    is_persistent: bool,
    stream: Option<SendStream<Bytes>>,
    /// Body bytes received but not sent.
    data: Bytes,
    trailers: Option<Box<HeaderMap>>,
    /// Changes of trailers that were not received yet.
    rules: TrailerRules,
    room: Room,
    /// True for gRPC and similar protocols, whose clients may read slowly.
    is_exempt: bool,
    /// True if all of it was handed to the connection.
    is_sent: bool,
    /// Body bytes received.
    received: u64,
    /// Body bytes already counted for the destination.
    counted: u64,
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
        self.begun.as_ref().is_some_and(Begun::has_all)
    }

    fn is_done(&self) -> bool {
        self.begun.as_ref().is_some_and(|begun| begun.is_sent)
    }

    fn is_persistent(&self) -> bool {
        let begun = self.begun.as_ref();
        begun.is_some_and(|begun| begun.is_persistent && begun.body.has_ended())
    }

    fn take_uncounted(&mut self) -> u64 {
        self.begun.as_mut().map_or(0, Begun::take_uncounted)
    }

    fn sent(&self) -> u64 {
        self.begun.as_ref().map_or(0, |begun| begun.sent)
    }
}

impl Begun {
    /// Returns a response of which `data` has arrived. `is_exempt`: the client may read slowly.
    pub(super) fn of(
        response: &RawResponse,
        body: Http1Body,
        data: Bytes,
        is_exempt: bool,
        rules: TrailerRules,
    ) -> Self {
        let mut begun = Self {
            is_persistent: response.is_persistent(),
            body,
            stream: None,
            received: data.len() as u64,
            counted: 0,
            data,
            trailers: None,
            rules,
            room: Room::default(),
            is_exempt,
            is_sent: false,
            sent: 0,
        };
        begun.add_trailers();
        begun
    }

    /// Records that the head was sent. `is_end`: it was the whole response.
    pub(super) fn begin(&mut self, stream: SendStream<Bytes>, is_end: bool) {
        self.stream = Some(stream);
        self.is_sent = is_end;
    }

    /// Returns the body bytes received since the last call.
    fn take_uncounted(&mut self) -> u64 {
        let before = std::mem::replace(&mut self.counted, self.received);
        self.received - before
    }

    /// Returns true if all of it was handed to the connection.
    pub(super) fn is_sent(&self) -> bool {
        self.is_sent
    }

    /// Returns true if received bytes wait for the client's window.
    pub(super) fn has_data(&self) -> bool {
        !self.data.is_empty()
    }

    /// The number of received bytes that wait for the client's window.
    pub(super) fn waiting(&self) -> usize {
        self.data.len()
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
            Some(stream) if !self.is_sent => stream.poll_reset(cx).map(drop),
            _ => Poll::Pending,
        }
    }

    /// Returns true if all of it was received, and only the end is left to send.
    pub(super) fn has_all(&self) -> bool {
        self.body.has_ended() && self.data.is_empty() && self.trailers.is_none()
    }

    /// Reads the next part; ready when a part or the end has arrived.
    pub(super) fn poll_read(
        &mut self,
        connection: &mut Http1Connection,
        cx: &mut Context<'_>,
    ) -> Poll<Result<(), ()>> {
        match ready!(self.body.poll_frame(connection, cx)) {
            Some(Ok(frame)) => match frame.into_data() {
                Ok(data) => {
                    self.received += data.len() as u64;
                    self.data = data;
                }
                Err(frame) => {
                    let mut trailers = frame.into_trailers().unwrap_or_default();
                    std::mem::take(&mut self.rules).apply(&mut trailers);
                    self.trailers = (!trailers.is_empty()).then(|| Box::new(trailers));
                }
            },
            Some(Err(error)) => {
                tracing::debug!(target: crate::observe::targets::REQUEST, %error, "the response broke off");
                return Poll::Ready(Err(()));
            }
            None => {}
        }
        self.add_trailers();
        Poll::Ready(Ok(()))
    }

    /// Adds the route's trailers to a body that has ended without any.
    fn add_trailers(&mut self) {
        if self.rules.may_add() && self.body.has_ended() {
            let mut trailers = HeaderMap::new();
            std::mem::take(&mut self.rules).apply(&mut trailers);
            self.trailers = (!trailers.is_empty()).then(|| Box::new(trailers));
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
        while !self.data.is_empty() {
            let Some(room) = ready!(poll_room(stream, self.data.len(), &client.backlog, cx)) else {
                return Poll::Ready(Err(Disconnected));
            };
            self.room.is_found(room);
            let part = self.data.split_to(room);
            let is_end = self.data.is_empty() && self.trailers.is_none() && self.body.has_ended();
            self.sent += room as u64;
            if stream.send_data(part, is_end).is_err() {
                return Poll::Ready(Err(Disconnected));
            }
            self.is_sent = is_end;
        }
        if self.is_sent || !self.body.has_ended() {
            return Poll::Ready(Ok(()));
        }
        let sent = match self.trailers.take() {
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
