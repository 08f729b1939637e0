//! A response on its way from a destination of HTTP/1.1 to a stream.

use std::sync::Arc;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use h2::{Reason, SendStream};
use http::HeaderMap;
use tokio::time::Instant;

use crate::http1::{HeadTable, LentTable, RawResponse};
use crate::response::TrailerRules;
use crate::server::connection::{ConnectionState, Held};
use crate::server::engine::downstream;
use crate::server::http2::{Room, poll_room};
use crate::upstream::{Http1Body, Http1Connection};

/// A response on its way to a stream.
#[derive(Default)]
pub(in crate::server::engine) struct StreamDownload {
    /// The fields of its head.
    pub(super) table: LentTable,
    /// The response, once its head was sent.
    pub(super) begun: Option<Begun>,
    pub(super) held: Held,
}

/// A response whose head was sent.
pub(super) struct Begun {
    /// Its body, as it comes.
    body: Http1Body,
    /// Whether the destination keeps its connection behind it.
    is_persistent: bool,
    stream: Option<SendStream<Bytes>>,
    /// What has come of it and was not sent.
    data: Bytes,
    trailers: Option<Box<HeaderMap>>,
    /// What the route does to trailers that have not come.
    rules: TrailerRules,
    room: Room,
    /// gRPC and the like: a slow reader is no attacker.
    is_exempt: bool,
    /// All of it was handed to the connection.
    is_sent: bool,
    /// Bytes of content that came.
    received: u64,
    /// How many of them were counted for the destination.
    counted: u64,
    /// Bytes of content that were handed to the connection.
    pub(super) sent: u64,
}

/// The client wants no more.
pub(super) struct Gone;

impl downstream::Download for StreamDownload {
    fn restart(&mut self) {
        self.table.give_back();
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
    /// Of which `data` has come. `is_exempt`: the client may be as slow as it likes.
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

    /// The head was sent, and with it all if `is_end`.
    pub(super) fn begin(&mut self, stream: SendStream<Bytes>, is_end: bool) {
        self.stream = Some(stream);
        self.is_sent = is_end;
    }

    /// Bytes of content that came since this was last asked.
    fn take_uncounted(&mut self) -> u64 {
        let before = std::mem::replace(&mut self.counted, self.received);
        self.received - before
    }

    /// Whether all of it was handed to the connection.
    pub(super) fn is_sent(&self) -> bool {
        self.is_sent
    }

    /// Whether something has come that the client has no room for yet.
    pub(super) fn has_data(&self) -> bool {
        !self.data.is_empty()
    }

    /// Bytes that have come and that the client has no room for yet.
    pub(super) fn waiting(&self) -> usize {
        self.data.len()
    }

    /// Notes that the client is waited for.
    pub(super) fn waits_for(&mut self, client: &Arc<ConnectionState>) {
        if !self.is_exempt {
            self.room.lacks(client);
        }
    }

    /// When a client that is waited for may take too little; [`Room::due`].
    pub(super) fn room_due(&mut self) -> Option<Instant> {
        self.room.due()
    }

    /// Whether it did.
    pub(super) fn is_too_slow(&mut self) -> bool {
        self.room.is_too_slow()
    }

    /// Ready when the client has reset the stream before it had all.
    pub(super) fn poll_reset(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        match &mut self.stream {
            Some(stream) if !self.is_sent => stream.poll_reset(cx).map(drop),
            _ => Poll::Pending,
        }
    }

    /// Whether all has come, and nothing of it is left to be sent but the end.
    pub(super) fn has_all(&self) -> bool {
        self.body.has_ended() && self.data.is_empty() && self.trailers.is_none()
    }

    /// Reads what comes next; ready when something has come, be it the end.
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

    /// Adds the trailers of the route to a body that has ended without any.
    fn add_trailers(&mut self) {
        if self.rules.may_add() && self.body.has_ended() {
            let mut trailers = HeaderMap::new();
            std::mem::take(&mut self.rules).apply(&mut trailers);
            self.trailers = (!trailers.is_empty()).then(|| Box::new(trailers));
        }
    }

    /// Sends what has come to the client; ready when more of it can be taken.
    pub(super) fn poll_send(
        &mut self,
        client: &ConnectionState,
        cx: &mut Context<'_>,
    ) -> Poll<Result<(), Gone>> {
        let Some(stream) = &mut self.stream else {
            return Poll::Ready(Ok(()));
        };
        while !self.data.is_empty() {
            let Some(room) = ready!(poll_room(stream, self.data.len(), &client.backlog, cx)) else {
                return Poll::Ready(Err(Gone));
            };
            self.room.is_found(room);
            let part = self.data.split_to(room);
            let is_end = self.data.is_empty() && self.trailers.is_none() && self.body.has_ended();
            self.sent += room as u64;
            if stream.send_data(part, is_end).is_err() {
                return Poll::Ready(Err(Gone));
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
        Poll::Ready(sent.map_err(|_| Gone))
    }

    /// Lets the client see that it is not complete.
    pub(super) fn cut(&mut self, reason: Reason) {
        if let Some(stream) = &mut self.stream {
            stream.send_reset(reason);
        }
    }
}
