//! An HTTP/1.1 connection to a client: its socket, buffers and timer.

use std::future::poll_fn;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use tokio::time::Instant;

use super::clock::Clock;
use crate::connection::ConnectionInfo;
use crate::http1::{FieldValue, PooledTable, RawRequest, Rejection, Status, read_request};
use crate::server::connection::{ConnectionIo, ConnectionState, RequestRecord, Transport, after};
use crate::server::metrics::WorkerMetrics;
use crate::server::mode::{Mode, ModeWatch};
use crate::stream::{ByteStream, ReadBuffer, recycled};

/// An HTTP/1.1 connection to a client.
///
/// While it waits for a request it holds no buffers and no memory of the table.
pub(crate) struct Client<T: Transport> {
    /// Received bytes. During a request they begin with its head, until that is consumed.
    pub(crate) input: ReadBuffer,
    /// Bytes to write. Empty between two responses.
    pub(crate) output: Vec<u8>,
    /// The fields of the request head.
    pub(crate) table: PooledTable,
    pub(crate) clock: Clock,
    pub(crate) state: Arc<ConnectionState>,
    /// The record of the current request, until the `http` path takes it.
    pub(crate) record: Option<RequestRecord>,
    watch: Option<ModeWatch>,
    /// True if the connection is marked as evictable.
    is_offered: bool,
    waiting: ClientWait,
    /// True if the carriage return of an empty line was skipped, and its line feed is still to
    /// come.
    has_half_line: bool,
    /// The start of the current wait.
    since: Instant,
    mode: Mode,
    mode_since: Instant,
    // Dropped last: with it the connection's permit is released.
    pub(crate) io: ConnectionIo<T>,
}

/// The event that the connection waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ClientWait {
    /// The first request, since the connection was accepted.
    First,
    /// Before the next request, no byte of which has arrived.
    Next,
    /// The rest of a head.
    Rest,
    /// No event: a request is in progress.
    Not,
    /// No event yet: a request has ended at the recorded time.
    Served,
}

/// The result of waiting for a request.
#[derive(Debug)]
pub(super) enum HeadRead {
    /// A request whose head is at the front of the input.
    Request,
    Rejected(Rejection),
    /// The client sent the preface of HTTP/2 without TLS. With TLS, ALPN decides.
    #[cfg(feature = "http2")]
    Http2,
    /// A head that began at this time timed out.
    TimedOut(Instant),
    /// The client has closed the connection, or was idle for too long.
    Ended,
    /// Another connection needs the slot.
    Evicted,
}

/// The preface of HTTP/2, which no HTTP/1 request begins with (RFC 9113 section 3.4).
#[cfg(feature = "http2")]
const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

/// Time for which the socket of a new client is not monitored during its first response.
const EARLY: Duration = Duration::from_millis(250);

/// Interval at which a client is looked for whose unread bytes fill the buffer.
const LOOK: Duration = Duration::from_secs(1);

/// The initial congestion window (RFC 6928): a response up to this size has been sent without
/// waiting for an ACK.
const SENT_AT_ONCE: u64 = 10 * 1460;

/// An empty line that some clients send after a body (RFC 9112 section 2.2).
const EMPTY_LINE: &[u8] = b"\r\n";

impl<T: Transport> Client<T> {
    pub(crate) fn new(io: ConnectionIo<T>, state: Arc<ConnectionState>) -> Self {
        let since = state.accepted;
        Self {
            io,
            input: ReadBuffer::default(),
            output: Vec::new(),
            table: PooledTable::default(),
            clock: Clock::new(&state),
            record: None,
            watch: None,
            is_offered: false,
            waiting: ClientWait::First,
            has_half_line: false,
            since,
            mode: Mode::Serving,
            mode_since: since,
            state,
        }
    }

    /// The facts about the connection of the client of the current request.
    #[inline]
    pub(crate) fn info(&self) -> &ConnectionInfo {
        match &self.record {
            Some(record) => record.info(),
            None => &self.state.info,
        }
    }

    /// Returns the client's address without port, for header fields to destinations.
    #[inline]
    pub(crate) fn remote_value(&self) -> Option<FieldValue<'_>> {
        match &self.record {
            Some(record) => record.remote_value(),
            None => self.state.remote_value(),
        }
    }

    /// Returns socket, unparsed bytes and state, to continue with another protocol.
    #[cfg(feature = "http2")]
    pub(super) fn into_parts(self) -> (ConnectionIo<T>, ReadBuffer, Arc<ConnectionState>) {
        (self.io, self.input, self.state)
    }

    /// Returns true if the connection closes after the next response, which must announce that (RFC
    /// 9112 section 9.6). Call it right before the head is written.
    #[inline]
    pub(crate) fn is_closing(&self) -> bool {
        self.state.is_retiring()
            || self.clock.is_retired()
            || self.state.worker.mode() != Mode::Serving
    }

    /// Reads the head of the next request into `request`.
    pub(super) fn poll_head(
        &mut self,
        cx: &mut Context<'_>,
        request: &mut RawRequest,
    ) -> Poll<HeadRead> {
        loop {
            // RFC 9112 section 2.2: an empty line may precede a request.
            if (matches!(self.input.filled().len(), 1 | 2) || self.has_half_line)
                && matches!(
                    self.waiting,
                    ClientWait::Not | ClientWait::Served | ClientWait::Next
                )
                && let Err(rejection) = self.skip_empty_line()
            {
                return Poll::Ready(HeadRead::Rejected(rejection));
            }
            if !self.input.is_empty()
                && let Some(head) = self.parse(request)
            {
                self.waiting = ClientWait::Not;
                if self.is_offered {
                    self.withdraw();
                }
                return Poll::Ready(head);
            }
            match self.input.poll_read(&mut self.io, cx) {
                Poll::Ready(Ok(1..)) => {}
                Poll::Ready(Ok(0) | Err(_)) => return Poll::Ready(HeadRead::Ended),
                Poll::Pending => return self.poll_wait(cx),
            }
        }
    }

    /// Skips an empty line between two requests, even in two parts. The connection counts as idle
    /// afterwards, and holds no memory.
    #[cold]
    fn skip_empty_line(&mut self) -> Result<(), Rejection> {
        let skipped = match (self.has_half_line, self.input.filled()) {
            (false, EMPTY_LINE) => EMPTY_LINE.len(),
            (false, b"\r") | (true, [b'\n', ..]) => {
                self.has_half_line = !self.has_half_line;
                1
            }
            // The parser rejects both parts together with the same error.
            (true, [_, ..]) => return Err(Rejection::BareCarriageReturn),
            _ => return Ok(()),
        };
        self.input.consume(skipped);
        // The table may hold a partial parse of the line.
        self.table.clear();
        Ok(())
    }

    #[inline]
    fn parse(&mut self, request: &mut RawRequest) -> Option<HeadRead> {
        #[cfg(feature = "http2")]
        if self.waiting == ClientWait::First
            && !self.state.info.tls
            // A cheap first look, since `POST`, `PUT` and `PATCH` begin with the same byte.
            && self.input.filled()[0] == PREFACE[0]
        {
            let filled = self.input.filled();
            if filled.starts_with(PREFACE) {
                return Some(HeadRead::Http2);
            }
            // Incomplete, but no HTTP/1 request begins like this.
            if PREFACE.starts_with(filled) {
                return None;
            }
        }
        let limits = self.state.worker.limits.head();
        match read_request(self.input.filled(), &limits, &mut self.table, request) {
            Ok(Status::Complete(())) => Some(HeadRead::Request),
            Ok(Status::Partial) => None,
            Err(rejection) => Some(HeadRead::Rejected(rejection)),
        }
    }

    /// Handles a wait without data: checks the deadline, and releases memory that is not needed.
    fn poll_wait(&mut self, cx: &mut Context<'_>) -> Poll<HeadRead> {
        let is_silent = self.input.is_empty();
        match self.waiting {
            ClientWait::First | ClientWait::Rest => {}
            // The time limit of a head counts from its first byte, not from the end of the last request.
            ClientWait::Not | ClientWait::Served | ClientWait::Next if !is_silent => {
                self.waiting = ClientWait::Rest;
                self.since = Instant::now();
            }
            ClientWait::Not => {
                self.waiting = ClientWait::Next;
                self.since = Instant::now();
            }
            // The wait began at the recorded end, so the clock is not read again.
            ClientWait::Served => self.waiting = ClientWait::Next,
            ClientWait::Next => {}
        }
        if is_silent {
            // An idle connection holds no buffers.
            self.rest();
            self.state.hold_nothing();
        } else {
            if self.state.hold(self.input.memory(), cx.waker()) {
                return Poll::Ready(HeadRead::Evicted);
            }
        }
        // Without a registered watcher a drain would not wake this task.
        let worker = &self.state.worker;
        let watch = self
            .watch
            .get_or_insert_with(|| ModeWatch::new(worker, cx.waker()));
        // A connection between requests is not offered: in mode `Full` it ends after its grace.
        if self.waiting != ClientWait::Next {
            if self.is_offered && watch.gives_way() {
                return Poll::Ready(HeadRead::Evicted);
            }
            self.is_offered = self.is_offered || worker.offer(watch, self.state.info.remote);
        }
        let mode = self.state.worker.mode();
        // The grace counts from the change of the mode.
        if mode != self.mode {
            self.mode = mode;
            self.mode_since = Instant::now();
        }
        ready!(self.clock.poll_due(cx, self.deadline(is_silent)));
        if self.waiting == ClientWait::Rest || !is_silent {
            WorkerMetrics::add(&self.state.metrics().header_timeouts);
            return Poll::Ready(HeadRead::TimedOut(self.since));
        }
        // A client that never sends a request counts as a timeout, unless the server closes it
        // early.
        if self.waiting == ClientWait::First && self.mode == Mode::Serving {
            WorkerMetrics::add(&self.state.metrics().header_timeouts);
        }
        Poll::Ready(HeadRead::Ended)
    }

    #[cold]
    fn withdraw(&mut self) {
        self.is_offered = false;
        if let Some(watch) = &self.watch {
            self.state.worker.withdraw(watch);
        }
    }

    fn deadline(&self, is_silent: bool) -> Instant {
        let limits = &self.state.worker.limits;
        let deadline = match self.waiting {
            ClientWait::Next => after(self.since, limits.keep_alive),
            _ => after(self.since, limits.header_timeout),
        };
        let begin = self.since.max(self.mode_since);
        let grace = match self.mode {
            Mode::Serving => return deadline,
            // A request may be on its way, so the socket is read for a little longer.
            _ if is_silent => after(begin, limits.closing_grace),
            Mode::Full => after(begin, limits.haste()),
            // Half a head does not delay the end of the program.
            Mode::Draining => after(self.mode_since, limits.haste()),
        };
        deadline.min(grace)
    }

    /// Records the end of a request.
    #[inline]
    pub(crate) fn served(&mut self, now: Instant) {
        self.waiting = ClientWait::Served;
        self.since = now;
    }

    /// Gives the output a buffer for a response.
    #[inline]
    pub(crate) fn acquire_output(&mut self) {
        recycled::acquire(&mut self.output);
    }

    /// Releases the memory that an idle connection does not need.
    fn rest(&mut self) {
        self.input.rest();
        if self.output.capacity() > 0 {
            recycled::release(std::mem::take(&mut self.output));
        }
        self.table.release();
    }

    /// Reads from a client that waits for its response, to detect a disconnect. The next request
    /// may arrive meanwhile, and stays in the input. Ready when the client has disconnected, even
    /// after a further request, as long as the buffer has space.
    ///
    /// Poll it when the request body has ended and the task only waits. In the first moments of a
    /// connection it does not register the socket with the runtime.
    #[inline]
    pub(crate) fn poll_gone(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        // Waiting would register the socket, which most requests do not need.
        if self.io.is_early() {
            ready!(self.clock.poll_due(cx, after(self.state.accepted, EARLY)));
        }
        while self.input.has_room() {
            match ready!(self.input.poll_read(&mut self.io, cx)) {
                Ok(1..) => {}
                Ok(0) | Err(_) => return Poll::Ready(()),
            }
        }
        Poll::Pending
    }

    /// Watches a client while its request body is not read. Ready when the client has disconnected.
    ///
    /// Reads while the buffer has space. Bytes left in the socket hide its end from reads; then the runtime's event
    /// is checked each second, next at `look`.
    pub(super) fn poll_left(
        &mut self,
        cx: &mut Context<'_>,
        look: &mut Option<Instant>,
    ) -> Poll<()> {
        // Not beyond the buffer, since the bytes belong to the next request.
        while self.input.has_room() {
            match ready!(self.input.poll_read(&mut self.io, cx)) {
                Ok(1..) => {}
                Ok(0) | Err(_) => return Poll::Ready(()),
            }
        }
        loop {
            let due = *look.get_or_insert_with(|| after(Instant::now(), LOOK));
            ready!(self.clock.poll_due(cx, due));
            *look = None;
            if self.io.has_ended_behind(cx) {
                return Poll::Ready(());
            }
        }
    }

    /// Returns true if data has arrived that will not be read.
    ///
    /// In the first moments of a connection this is unknown, and a system call finds out, but only for responses
    /// that a reset could truncate.
    pub(super) fn has_unread(&mut self, cx: &mut Context<'_>) -> bool {
        if !self.input.is_empty() {
            return true;
        }
        if self.io.is_early() {
            return self.state.written.load(Relaxed) > SENT_AT_ONCE && self.io.has_come_early();
        }
        matches!(self.input.poll_read(&mut self.io, cx), Poll::Ready(Ok(1..)))
    }

    /// Runs `work`. Returns `None` if the client disconnects first. If `is_watched`, further data
    /// is read while the buffer has space, and then left in the socket.
    pub(crate) async fn unless_gone<F: Future>(
        &mut self,
        is_watched: bool,
        work: F,
    ) -> Option<F::Output> {
        let mut work = pin!(work);
        let mut look = None;
        poll_fn(|cx| {
            // Work first, so that a finished result is not lost to a disconnect.
            if let Poll::Ready(done) = work.as_mut().poll(cx) {
                return Poll::Ready(Some(done));
            }
            if is_watched && self.poll_left(cx, &mut look).is_ready() {
                return Poll::Ready(None);
            }
            match self.state.hold(self.input.memory(), cx.waker()) {
                // A connection over its memory budget must end.
                true => Poll::Ready(None),
                false => Poll::Pending,
            }
        })
        .await
    }
}

/// Time limit for closing a connection.
pub(super) const CLOSING: Duration = Duration::from_secs(3);
