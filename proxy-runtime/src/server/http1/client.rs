//! One HTTP/1.1 connection to a client: its socket, its buffers, its timer.

use std::future::poll_fn;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use tokio::time::Instant;

use super::clock::Clock;
use crate::http1::{LentTable, RawRequest, Refusal, Status, read_request};
use crate::server::connection::{ConnectionIo, ConnectionState, RequestRecord, Transport, after};
use crate::server::metrics::WorkerMetrics;
use crate::server::mode::{Mode, ModeWatch};
use crate::stream::{ByteStream, ReadBuffer, spare};

/// One HTTP/1.1 connection to a client.
///
/// While it waits for a request it holds neither of the buffers, nor the room of the table.
pub(crate) struct Client<T: Transport> {
    /// What was read: while a request is served, at its front the request's head, until who serves it consumes that.
    pub(crate) input: ReadBuffer,
    /// What is to be written. Empty between two responses.
    pub(crate) output: Vec<u8>,
    /// The fields of the request's head.
    pub(crate) table: LentTable,
    pub(crate) clock: Clock,
    pub(crate) state: Arc<ConnectionState>,
    /// Of the request that is being served, until the typed lane takes it along.
    pub(crate) record: Option<RequestRecord>,
    watch: Option<ModeWatch>,
    /// Others may get this connection's place.
    is_offered: bool,
    waiting: Waiting,
    /// The carriage return of an empty line has come, and its line feed has not.
    has_half_line: bool,
    /// When [`waiting`](Self::waiting) began, if it is for something.
    since: Instant,
    mode: Mode,
    mode_since: Instant,
    // The last one to be dropped: with it the connection's place is free.
    pub(crate) io: ConnectionIo<T>,
}

/// What the connection waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Waiting {
    /// A first request, since the connection was accepted.
    First,
    /// A further request, of which nothing has come.
    Next,
    /// The rest of a head.
    Rest,
    /// Nothing: a request is served.
    Not,
    /// Nothing any more: a request was served, at the time that is noted.
    Served,
}

/// What came of waiting for a request.
#[derive(Debug)]
pub(super) enum Head {
    /// A request, whose head is at the front of the input.
    Request,
    Refused(Refusal),
    /// The client begins with what begins HTTP/2, in the clear: with TLS, ALPN has settled it.
    #[cfg(feature = "http2")]
    Http2,
    /// The head, of which a part is there since then, took too long.
    TimedOut(Instant),
    /// There is nothing more to be done: the client has closed, or was idle for too long.
    Ended,
    /// There is another connection for the place.
    Evicted,
}

/// Begins HTTP/2, and no HTTP/1 request (RFC 9113 section 3.4).
#[cfg(feature = "http2")]
const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

/// For how long the socket of a new client is not watched that waits for its first response.
const EARLY: Duration = Duration::from_millis(250);

/// What a new connection sends without waiting for the client (RFC 6928): what is no more than that has left.
const SENT_AT_ONCE: u64 = 10 * 1460;

/// What some clients send behind a body, and is no beginning of a request (RFC 9112 section 2.2).
const EMPTY_LINE: &[u8] = b"\r\n";

impl<T: Transport> Client<T> {
    pub(crate) fn new(io: ConnectionIo<T>, state: Arc<ConnectionState>) -> Self {
        let since = state.accepted;
        Self {
            io,
            input: ReadBuffer::default(),
            output: Vec::new(),
            table: LentTable::default(),
            clock: Clock::new(&state),
            record: None,
            watch: None,
            is_offered: false,
            waiting: Waiting::First,
            has_half_line: false,
            since,
            mode: Mode::Serving,
            mode_since: since,
            state,
        }
    }

    /// What is left when the connection is none of HTTP/1.1: socket, what was read of it, and state.
    #[cfg(feature = "http2")]
    pub(super) fn into_parts(self) -> (ConnectionIo<T>, ReadBuffer, Arc<ConnectionState>) {
        (self.io, self.input, self.state)
    }

    /// Whether this connection is to be closed after the response that is about to be written, which has to say so
    /// (RFC 9112 section 9.6). To be asked right before the head is written.
    #[inline]
    pub(crate) fn is_closing(&self) -> bool {
        self.state.is_retiring()
            || self.clock.is_retired()
            || self.state.worker.mode() != Mode::Serving
    }

    /// Reads until a request's head is there, which makes `request`.
    pub(super) fn poll_head(
        &mut self,
        cx: &mut Context<'_>,
        request: &mut RawRequest,
    ) -> Poll<Head> {
        loop {
            if (matches!(self.input.filled().len(), 1 | 2) || self.has_half_line)
                && matches!(self.waiting, Waiting::Not | Waiting::Served | Waiting::Next)
                && let Err(refusal) = self.skip_empty_line()
            {
                return Poll::Ready(Head::Refused(refusal));
            }
            if !self.input.is_empty()
                && let Some(head) = self.parse(request)
            {
                self.waiting = Waiting::Not;
                if self.is_offered {
                    self.withdraw();
                }
                return Poll::Ready(head);
            }
            match self.input.poll_read(&mut self.io, cx) {
                Poll::Ready(Ok(1..)) => {}
                Poll::Ready(Ok(0) | Err(_)) => return Poll::Ready(Head::Ended),
                Poll::Pending => return self.poll_wait(cx),
            }
        }
    }

    /// Leaves out an empty line between two requests, be it in two parts, so that the connection is as idle as before and
    /// holds no memory for it.
    #[cold]
    fn skip_empty_line(&mut self) -> Result<(), Refusal> {
        let skipped = match (self.has_half_line, self.input.filled()) {
            (false, EMPTY_LINE) => EMPTY_LINE.len(),
            (false, b"\r") | (true, [b'\n', ..]) => {
                self.has_half_line = !self.has_half_line;
                1
            }
            // As the parser says of both parts together.
            (true, [_, ..]) => return Err(Refusal::BareCarriageReturn),
            _ => return Ok(()),
        };
        self.input.consume(skipped);
        // Which may have seen a part of it.
        self.table.clear();
        Ok(())
    }

    #[inline]
    fn parse(&mut self, request: &mut RawRequest) -> Option<Head> {
        #[cfg(feature = "http2")]
        if self.waiting == Waiting::First
            && !self.state.info.tls
            && self.input.filled()[0] == PREFACE[0]
        {
            let filled = self.input.filled();
            if filled.starts_with(PREFACE) {
                return Some(Head::Http2);
            }
            if PREFACE.starts_with(filled) {
                return None;
            }
        }
        let limits = self.state.worker.limits.head();
        match read_request(self.input.filled(), &limits, &mut self.table, request) {
            Ok(Status::Complete(())) => Some(Head::Request),
            Ok(Status::Partial) => None,
            Err(refusal) => Some(Head::Refused(refusal)),
        }
    }

    /// Nothing has come: looks at the time, and gives back what is not needed until something does.
    fn poll_wait(&mut self, cx: &mut Context<'_>) -> Poll<Head> {
        let is_silent = self.input.is_empty();
        match self.waiting {
            Waiting::First | Waiting::Rest => {}
            Waiting::Not | Waiting::Served | Waiting::Next if !is_silent => {
                self.waiting = Waiting::Rest;
                self.since = Instant::now();
            }
            Waiting::Not => {
                self.waiting = Waiting::Next;
                self.since = Instant::now();
            }
            Waiting::Served => self.waiting = Waiting::Next,
            Waiting::Next => {}
        }
        if is_silent {
            self.rest();
            self.state.hold_nothing();
        } else {
            if self.state.hold(self.input.memory(), cx.waker()) {
                return Poll::Ready(Head::Evicted);
            }
        }
        let worker = &self.state.worker;
        let watch = self
            .watch
            .get_or_insert_with(|| ModeWatch::new(worker, cx.waker()));
        if self.waiting != Waiting::Next {
            if self.is_offered && watch.gives_way() {
                return Poll::Ready(Head::Evicted);
            }
            self.is_offered = self.is_offered || worker.offer(watch, self.state.info.remote);
        }
        let mode = self.state.worker.mode();
        if mode != self.mode {
            self.mode = mode;
            self.mode_since = Instant::now();
        }
        ready!(self.clock.poll_due(cx, self.deadline(is_silent)));
        if self.waiting == Waiting::Rest || !is_silent {
            WorkerMetrics::add(&self.state.metrics().header_timeouts);
            return Poll::Ready(Head::TimedOut(self.since));
        }
        if self.waiting == Waiting::First && self.mode == Mode::Serving {
            WorkerMetrics::add(&self.state.metrics().header_timeouts);
        }
        Poll::Ready(Head::Ended)
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
            Waiting::Next => after(self.since, limits.keep_alive),
            _ => after(self.since, limits.header_timeout),
        };
        let grace = match self.mode {
            Mode::Serving => return deadline,
            // Read from for a little longer: a request may be on its way.
            _ if is_silent => limits.closing_grace,
            Mode::Full => limits.haste(),
            Mode::Draining => return deadline,
        };
        deadline.min(after(self.since.max(self.mode_since), grace))
    }

    /// Notes when a request was served.
    #[inline]
    pub(crate) fn served(&mut self, now: Instant) {
        self.waiting = Waiting::Served;
        self.since = now;
    }

    /// Gives the output room for a response.
    #[inline]
    pub(crate) fn lend_output(&mut self) {
        spare::lend(&mut self.output);
    }

    /// Gives back what an idle connection does not need.
    fn rest(&mut self) {
        self.input.rest();
        if self.output.capacity() > 0 {
            spare::give_back(std::mem::take(&mut self.output));
        }
        self.table.give_back();
    }

    /// Reads from a client that waits for its response, to see whether it is still there; what comes is the next
    /// request, and is left until it is its turn. Ready when the client is gone, be it behind that, as long as there is room for it.
    ///
    /// To be polled when the request's body is at its end and there is nothing to do but wait. Of a client that has only just
    /// come, the runtime need not know its socket for that.
    #[inline]
    pub(crate) fn poll_gone(&mut self, cx: &mut Context<'_>) -> Poll<()> {
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

    /// Whether something has come that nobody will read.
    ///
    /// Of a client that has only just come that is not known, and the system is asked for responses alone that a reset may cut.
    pub(super) fn has_unread(&mut self, cx: &mut Context<'_>) -> bool {
        if !self.input.is_empty() {
            return true;
        }
        if self.io.is_early() {
            return self.state.written.load(Relaxed) > SENT_AT_ONCE && self.io.has_come_early();
        }
        matches!(self.input.poll_read(&mut self.io, cx), Poll::Ready(Ok(1..)))
    }

    /// Waits for `work`; `None` when the client is gone before it is done. What comes meanwhile of a client that
    /// `is_watched` is read once, behind what is there, again as long as there is room for it, and then left to the network.
    pub(crate) async fn unless_gone<F: Future>(
        &mut self,
        mut is_watched: bool,
        work: F,
    ) -> Option<F::Output> {
        let mut work = pin!(work);
        poll_fn(|cx| {
            if let Poll::Ready(done) = work.as_mut().poll(cx) {
                return Poll::Ready(Some(done));
            }
            while is_watched {
                match self.input.poll_read(&mut self.io, cx) {
                    Poll::Ready(Ok(0) | Err(_)) => return Poll::Ready(None),
                    Poll::Ready(Ok(_)) => is_watched = self.input.has_room(),
                    Poll::Pending => break,
                }
            }
            match self.state.hold(self.input.memory(), cx.waker()) {
                true => Poll::Ready(None),
                false => Poll::Pending,
            }
        })
        .await
    }
}

/// How long a connection may take to take leave.
pub(super) const CLOSING: Duration = Duration::from_secs(3);
