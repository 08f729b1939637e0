//! An HTTP/2 connection: frames of `h2`, and the streams that are served.

use std::pin::Pin;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::task::{Context, Poll, Waker, ready};

use bytes::Bytes;
use h2::server::{Builder, Handshake, SendResponse};
use h2::{Ping, PingPong, Reason, RecvStream};
use http::Request;
use tokio::task::coop::has_budget_remaining;
use tokio::time::Instant;

use super::blocks::Blocks;
use super::deadlines::{Deadline, StreamTimer};
use super::ready::{CONNECTION, Ready, TaskPart};
use super::resets::Resets;
use super::streams::{Ending, Streams};
use super::watch::{Noticed, Unfinished, Watched};
use crate::server::connection::Held;
use crate::server::connection::{ConnectionIo, ConnectionState, Transport};
use crate::server::limits::Limits;
use crate::server::validation;

/// Number of rounds after which the task yields to other connections.
const ROUNDS: usize = 16;

/// An HTTP/2 connection that serves each stream with a future of `serve`.
///
/// Dropping it cancels all streams.
pub(super) struct Connection<T: Transport, S, F> {
    phase: ConnectionPhase<T>,
    streams: Streams<F>,
    ready: Arc<Ready>,
    /// The connection's own part of the task.
    part: Arc<TaskPart>,
    waker: Waker,
    alarm: StreamTimer,
    state: Arc<ConnectionState>,
    resets: Resets,
    noticed: Rc<Noticed>,
    /// Memory that waits for the socket.
    held: Held,
    serve: S,
}

/// A stream that the client has opened.
pub(super) struct Accepted {
    pub(super) request: Request<RecvStream>,
    pub(super) respond: SendResponse<Bytes>,
    pub(super) deadline: Deadline,
}

enum ConnectionPhase<T: Transport> {
    Opening(Box<Handshake<Watched<T>, Bytes>>),
    Open(Box<OpenConnection<T>>),
    /// The server ended the connection before its handshake was complete.
    Closed,
}

struct OpenConnection<T: Transport> {
    h2: h2::server::Connection<Watched<T>, Bytes>,
    pings: Option<PingPong>,
    end: ShutdownState,
}

/// The announced end of the connection.
#[derive(Clone, Copy, Debug)]
enum ShutdownState {
    Never,
    /// End after the open streams, and `further` new ones.
    ///
    /// A client that has not received the GOAWAY yet opens at most as many streams as are allowed
    /// at a time: for any further one it waits for a response that follows the GOAWAY.
    Soon {
        further: u32,
    },
    /// End now, because of the client.
    Now(Reason),
}

impl ShutdownState {
    /// Returns true if another stream may be served.
    fn admits(&mut self) -> bool {
        match self {
            Self::Never => true,
            Self::Soon { further } => {
                let admits = *further > 0;
                *further = further.saturating_sub(1);
                admits
            }
            Self::Now(_) => false,
        }
    }
}

impl<T, S, F> Connection<T, S, F>
where
    T: Transport,
    S: Fn(Accepted) -> F,
    F: Future<Output = Ending>,
{
    /// Futures of `serve` have their memory from `blocks`.
    pub(super) fn new(
        io: ConnectionIo<T>,
        state: &Arc<ConnectionState>,
        serve: S,
        blocks: Rc<Blocks<F>>,
    ) -> Self {
        let limits = &state.worker.limits;
        let (io, noticed) = Watched::new(io, state);
        let ready = Arc::<Ready>::default();
        let part = TaskPart::new(&ready, CONNECTION);
        let waker = Waker::from(Arc::clone(&part));
        // Schedules the first poll.
        waker.wake_by_ref();
        Self {
            phase: ConnectionPhase::Opening(Box::new(builder(limits).handshake(io))),
            streams: Streams::new(&ready, blocks),
            ready,
            part,
            waker,
            alarm: StreamTimer::default(),
            state: Arc::clone(state),
            resets: Resets::new(&limits.http2),
            noticed,
            held: Held::default(),
            serve,
        }
    }

    /// Reads, writes, and begins to serve new streams. Ready at the end of the connection.
    fn poll_connection(&mut self) -> Poll<Result<(), h2::Error>> {
        let polled = self.poll_frames();
        let state = &self.state;
        let is_full = state.write_blocked.load(Relaxed);
        state.backlog.is_flushed(is_full);
        // Counts only while the socket is full: otherwise `h2` has written everything.
        let bytes = match is_full {
            true => state.backlog.held() + state.behind_socket(),
            false => 0,
        };
        self.held.set(bytes, state);
        polled
    }

    fn poll_frames(&mut self) -> Poll<Result<(), h2::Error>> {
        self.part.begin();
        let cx = &mut Context::from_waker(&self.waker);
        loop {
            match &mut self.phase {
                ConnectionPhase::Opening(handshake) => {
                    let mut h2 = ready!(Pin::new(&mut **handshake).poll(cx))?;
                    let pings = h2.ping_pong();
                    let end = ShutdownState::Never;
                    self.phase = ConnectionPhase::Open(Box::new(OpenConnection { h2, pings, end }));
                }
                ConnectionPhase::Open(open) => match ready!(open.h2.poll_accept(cx)) {
                    Some(accepted) => {
                        let (request, mut respond) = accepted?;
                        if !open.end.admits() {
                            // A stream that was not processed may be retried elsewhere (RFC 9113
                            // section 8.7).
                            respond.send_reset(Reason::REFUSED_STREAM);
                            // Refused streams count like resets: a client could open them without
                            // limit.
                            if self.resets.add(1, Instant::now()) {
                                open.end_now(Reason::ENHANCE_YOUR_CALM, &self.state);
                            }
                            continue;
                        }
                        let serve = &self.serve;
                        self.streams.begin(|deadline| {
                            serve(Accepted {
                                request,
                                respond,
                                deadline,
                            })
                        });
                    }
                    None => {
                        return Poll::Ready(match open.end {
                            ShutdownState::Now(reason) => Err(reason.into()),
                            ShutdownState::Never | ShutdownState::Soon { .. } => Ok(()),
                        });
                    }
                },
                ConnectionPhase::Closed => return Poll::Ready(Ok(())),
            }
        }
    }
}

impl<T, S, F> Future for Connection<T, S, F>
where
    T: Transport,
    S: Fn(Accepted) -> F + Unpin,
    F: Future<Output = Ending>,
{
    type Output = Result<(), h2::Error>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let this = self.get_mut();
        this.ready.begin(cx);
        let mut round = 0;
        loop {
            // Output of the streams is written in the connection's turn, all at once. So the
            // connection is polled first, and then the streams that its input concerns.
            let is_ready = this.streams.gather();
            if is_ready && let Poll::Ready(ended) = this.poll_connection() {
                return Poll::Ready(ended);
            }
            let resets = this.streams.poll();
            let is_too_much = resets > 0 && this.resets.add(resets, Instant::now());
            if is_too_much {
                this.end_now(Reason::ENHANCE_YOUR_CALM);
            } else if let Some(reason) = this.noticed.end() {
                this.end_now(reason);
            }
            if this.ready.end() {
                break;
            }
            round += 1;
            if round == ROUNDS || !has_budget_remaining() {
                this.ready.pause();
                break;
            }
        }
        let deadlines = Rc::clone(this.streams.deadlines());
        this.alarm
            .poll(cx, &deadlines, |place| this.ready.push(place));
        Poll::Pending
    }
}

impl<T: Transport, S, F> Connection<T, S, F> {
    /// Ends the connection gracefully: at once if it is idle, else after the requests in flight.
    pub(super) fn shut_down(&mut self) {
        match &mut self.phase {
            // No stream was opened before the handshake, so nothing has to be finished.
            ConnectionPhase::Opening(_) => self.phase = ConnectionPhase::Closed,
            ConnectionPhase::Open(open) => {
                if let ShutdownState::Never = open.end {
                    let further = self.state.worker.limits.http2.concurrent_streams;
                    open.end = ShutdownState::Soon { further };
                }
                open.h2.graceful_shutdown();
            }
            ConnectionPhase::Closed => {}
        }
        // The task writes the GOAWAY in its next turn.
        self.waker.wake_by_ref();
    }

    /// Ends the connection at once with `reason`.
    pub(super) fn end_now(&mut self, reason: Reason) {
        if let ConnectionPhase::Open(open) = &mut self.phase
            && open.end_now(reason, &self.state)
        {
            self.waker.wake_by_ref();
        }
    }

    /// The frame that has arrived only in part.
    pub(super) fn unfinished(&self) -> Option<Unfinished> {
        self.noticed.unfinished()
    }

    /// Sends a PING, which a live client must answer.
    pub(super) fn ping(&mut self) {
        let ConnectionPhase::Open(open) = &mut self.phase else {
            return;
        };
        let Some(pings) = &mut open.pings else { return };
        // The previous pong must be fetched before another ping. Its arrival shows in the number of
        // bytes read.
        let _ = pings.poll_pong(&mut Context::from_waker(Waker::noop()));
        if pings.send_ping(Ping::opaque()).is_ok() {
            self.waker.wake_by_ref();
        }
    }
}

impl<T: Transport> OpenConnection<T> {
    /// Ends the connection at once. Returns false if it was ending already.
    #[cold]
    fn end_now(&mut self, reason: Reason, state: &ConnectionState) -> bool {
        if let ShutdownState::Now(_) = self.end {
            return false;
        }
        self.end = ShutdownState::Now(reason);
        // Makes the close linger, so that a client that still sends can read the reason.
        state.unread.store(true, Relaxed);
        self.h2.abrupt_shutdown(reason);
        true
    }
}

fn builder(limits: &Limits) -> Builder {
    let http2 = &limits.http2;
    let mut builder = Builder::new();
    builder
        // WebSockets over HTTP/2 (RFC 8441).
        .enable_connect_protocol()
        .max_header_list_size(validation::header_list_limit(limits))
        // `h2` panics for more.
        .max_send_buffer_size(limits.effective_buffer().min(u32::MAX as usize))
        .max_concurrent_streams(http2.concurrent_streams)
        .initial_window_size(http2.stream_window)
        .initial_connection_window_size(http2.connection_window)
        .max_pending_accept_reset_streams(http2.pending_resets)
        .max_local_error_reset_streams(Some(http2.error_resets));
    builder
}
