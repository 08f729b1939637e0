//! The task that reads and writes an HTTP/2 connection, and sends PING frames to a silent destination.

use std::future::poll_fn;
use std::io;
use std::net::SocketAddr;
use std::pin::{Pin, pin};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Weak};
use std::task::{Context, Poll, Waker, ready};
use std::time::Duration;

use bytes::Bytes;
use futures_util::task::AtomicWaker;
use h2::client::{Connection, SendRequest};
use h2::{Ping, PingPong};
use parking_lot::Mutex;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::sync::{Notify, watch};
use tokio::time::{Instant, Sleep, sleep};
use tracing::debug;

use crate::observe::targets;
use crate::upstream::io::UpstreamIo;

/// The time of silence after which a destination gets a PING while requests wait for it.
const PING_INTERVAL: Duration = Duration::from_secs(20);
/// The time within which it has to give that sign.
const PING_TIMEOUT: Duration = Duration::from_secs(20);

/// Number of streams opened before the destination has announced its limit: more could be rejected, and the first
/// response shows the limit soon.
pub(super) const STREAMS_AT_FIRST: usize = 1;

/// The settings of a destination that matter here.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct DestinationSettings {
    /// True once they have arrived. Until then the other fields are assumptions.
    pub(super) are_known: bool,
    /// Streams that it allows.
    pub(super) max_streams: usize,
    /// Set if it allows extended CONNECT.
    pub(super) connect: bool,
}

impl Default for DestinationSettings {
    /// Settings that are assumed until they are known.
    fn default() -> Self {
        Self {
            are_known: false,
            max_streams: STREAMS_AT_FIRST,
            connect: false,
        }
    }
}

/// State that a connection's task and its requests share.
#[derive(Debug, Default)]
pub(super) struct Signs {
    /// Requests that are on the connection.
    pub(super) streams: AtomicUsize,
    /// Streams that were opened and have not ended.
    pub(super) opened: AtomicUsize,
    /// Wakes the request that waits for the destination to allow it a stream.
    pub(super) room: AtomicWaker,
    /// Turns of the task in which all streams were opened that were handed over before.
    turns: AtomicUsize,
    /// The turn in which the destination announced that it allows no stream. 0: it allows some.
    closed_in: AtomicUsize,
    /// The requests that were handed over since the last of these turns.
    handed_over: Mutex<Vec<Waker>>,
    /// The last write to the socket did not end.
    is_blocked: AtomicBool,
    /// Set by each read, cleared when it is checked.
    has_read: AtomicBool,
    /// Set when the first frame was read, which are the destination's settings (RFC 9113 section 3.4).
    has_settings: AtomicBool,
    /// The destination gave no sign of life.
    is_lost: AtomicBool,
    /// The task has ended.
    has_ended: AtomicBool,
    /// Wakes the task.
    task: AtomicWaker,
    /// Set while a request waits for the task to read.
    is_asked: AtomicBool,
    /// Tells that it has.
    has_looked: Notify,
}

impl Signs {
    fn has_settings(&self) -> bool {
        self.has_settings.load(Ordering::Relaxed)
    }

    pub(super) fn is_lost(&self) -> bool {
        self.is_lost.load(Ordering::Relaxed)
    }

    pub(super) fn has_ended(&self) -> bool {
        self.has_ended.load(Ordering::Relaxed)
    }

    /// Makes the task read, so that a limit or GOAWAY that has arrived is known.
    pub(super) async fn look(&self) {
        let mut looked = pin!(self.has_looked.notified());
        // Before the task is asked: an answer in between would be missed otherwise.
        looked.as_mut().enable();
        self.is_asked.store(true, Ordering::Release);
        self.task.wake();
        // The task sets this before its last notice, so that one of both is seen.
        if !self.has_ended() {
            looked.await;
        }
    }

    /// Records a request that is handed over. Returns the turn in which its stream is opened.
    pub(super) fn hand_over(&self, waker: &Waker) -> usize {
        self.handed_over.lock().push(waker.clone());
        self.turns.load(Ordering::Acquire) + 1
    }

    /// Returns true if the announcement that no stream is allowed arrived before this turn opened any.
    pub(super) fn is_closed_in(&self, turn: usize) -> bool {
        self.closed_in.load(Ordering::Acquire) == turn
    }

    /// Ends a turn of the task, in which it first read everything and then wrote as much as possible.
    fn end_turn(&self, allows_streams: bool) {
        let turn = self.turns.load(Ordering::Relaxed) + 1;
        if allows_streams {
            self.closed_in.store(0, Ordering::Release);
        } else if self.closed_in.load(Ordering::Relaxed) == 0 {
            self.closed_in.store(turn, Ordering::Release);
            self.handed_over.lock().drain(..).for_each(Waker::wake);
        }
        // A write that did not end has left streams of this turn unopened.
        if !self.is_blocked.load(Ordering::Relaxed) {
            self.turns.store(turn, Ordering::Release);
            self.handed_over.lock().clear();
        }
    }

    /// Wakes the tasks that wait until everything was read.
    fn looked(&self) {
        if self.is_asked.swap(false, Ordering::Acquire) {
            self.has_looked.notify_waiters();
        }
    }
}

/// Reads and writes until the connection has ended, and publishes the destination's settings.
///
/// Dropped, it closes the connection.
pub(super) async fn carry(
    mut connection: Connection<Heard, Bytes>,
    send: Weak<SendRequest<Bytes>>,
    seen: watch::Sender<DestinationSettings>,
    signs: Arc<Signs>,
    peer: SocketAddr,
) {
    let _ended = EndNotice(Arc::clone(&signs));
    let mut keep_alive = KeepAlive {
        pings: connection.ping_pong(),
        timer: None,
        is_asked: false,
    };
    let mut connection = pin!(connection);
    poll_fn(|cx| {
        // Before the poll: a request that arrives during it must not be missed.
        signs.task.register(cx.waker());
        let polled = connection.as_mut().poll(cx);
        signs.looked();
        let now = DestinationSettings {
            are_known: signs.has_settings(),
            max_streams: connection.max_concurrent_send_streams(),
            // Held weakly: the connection would never end if its own task held it.
            connect: send
                .upgrade()
                .is_some_and(|send| send.is_extended_connect_protocol_enabled()),
        };
        // Waiting requests wake only for a change, not at each turn.
        seen.send_if_modified(|settings| {
            let has_changed = *settings != now;
            *settings = now;
            has_changed
        });
        signs.end_turn(now.max_streams > 0);
        signs.room.wake();
        if let Poll::Ready(ended) = polled {
            if let Err(error) = ended {
                debug!(target: targets::UPSTREAM, %peer, %error, "connection failed");
            }
            return Poll::Ready(());
        }
        ready!(keep_alive.poll_lost(&signs, cx));
        // The streams then fail as lost and not as closed, which decides about a retry.
        signs.is_lost.store(true, Ordering::Relaxed);
        debug!(target: targets::UPSTREAM, %peer, "the destination gives no sign of life");
        Poll::Ready(())
    })
    .await;
}

/// Tells that the task has ended, however it does.
struct EndNotice(Arc<Signs>);

impl Drop for EndNotice {
    fn drop(&mut self) {
        self.0.has_ended.store(true, Ordering::Relaxed);
        self.0.has_looked.notify_waiters();
        self.0.room.wake();
    }
}

/// A stream that was opened, until the last of it is over.
#[derive(Debug)]
pub(super) struct Place(Arc<Signs>);

impl Place {
    pub(super) fn take(signs: &Arc<Signs>) -> Self {
        signs.opened.fetch_add(1, Ordering::Relaxed);
        Self(Arc::clone(signs))
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        self.0.opened.fetch_sub(1, Ordering::Release);
        self.0.room.wake();
    }
}

/// The keep-alive of a connection: PINGs while there are requests, and the timer for their answers.
struct KeepAlive {
    pings: Option<PingPong>,
    /// Runs while there are requests.
    timer: Option<Pin<Box<Sleep>>>,
    /// True while a PING waits for its answer.
    is_asked: bool,
}

impl KeepAlive {
    /// Ready when the destination has not responded to a PING in time.
    fn poll_lost(&mut self, signs: &Signs, cx: &mut Context<'_>) -> Poll<()> {
        let Some(pings) = &mut self.pings else {
            return Poll::Pending;
        };
        loop {
            if self.is_asked && pings.poll_pong(cx).is_ready() {
                self.is_asked = false;
                self.timer = None;
            }
            let is_idle = signs.streams.load(Ordering::Relaxed) == 0;
            let timer = match &mut self.timer {
                Some(timer) => timer,
                None if is_idle => return Poll::Pending,
                None => {
                    // Only what arrives from now on is a sign of life.
                    signs.has_read.store(false, Ordering::Relaxed);
                    self.timer.insert(Box::pin(sleep(PING_INTERVAL)))
                }
            };
            ready!(timer.as_mut().poll(cx));
            let has_read = signs.has_read.swap(false, Ordering::Relaxed);
            if self.is_asked {
                if !has_read {
                    return Poll::Ready(());
                }
                // Any byte is a sign of life, not only the answer to the PING.
                timer.as_mut().reset(Instant::now() + PING_TIMEOUT);
            } else if has_read || is_idle || pings.send_ping(Ping::opaque()).is_err() {
                self.timer = None;
            } else {
                self.is_asked = true;
                timer.as_mut().reset(Instant::now() + PING_TIMEOUT);
            }
        }
    }
}

/// A socket that records whether bytes, and the first frame, have arrived.
#[derive(Debug)]
pub(super) struct Heard {
    io: UpstreamIo,
    signs: Arc<Signs>,
    /// The parser of the first frame, until that is complete.
    first: Option<FirstFrame>,
}

impl Heard {
    pub(super) fn new(io: UpstreamIo, signs: Arc<Signs>) -> Self {
        Self {
            io,
            signs,
            first: Some(FirstFrame::default()),
        }
    }

    fn wrote<T>(&self, polled: &Poll<T>) {
        let is_blocked = polled.is_pending();
        self.signs.is_blocked.store(is_blocked, Ordering::Relaxed);
    }

    fn heard(&mut self, bytes: &[u8]) {
        self.signs.has_read.store(true, Ordering::Relaxed);
        if let Some(first) = &mut self.first
            && first.is_whole(bytes)
        {
            self.first = None;
            self.signs.has_settings.store(true, Ordering::Relaxed);
        }
    }
}

/// The part of a connection's first frame that was read.
#[derive(Debug, Default)]
struct FirstFrame {
    /// Bytes that were read.
    read: usize,
    /// Bytes of its content.
    length: usize,
}

impl FirstFrame {
    /// Returns true if the frame is complete with `bytes`, which follow the bytes of earlier calls.
    fn is_whole(&mut self, bytes: &[u8]) -> bool {
        // RFC 9113 section 4.1: a head of 9 bytes, and its first three are the length.
        const HEAD: usize = 9;
        const LENGTH: usize = 3;
        let length = bytes.iter().take(LENGTH.saturating_sub(self.read));
        self.length = length.fold(self.length, |length, byte| length << 8 | usize::from(*byte));
        self.read = self.read.saturating_add(bytes.len());
        self.read >= HEAD && self.read - HEAD >= self.length
    }
}

impl AsyncRead for Heard {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buf.filled().len();
        let polled = Pin::new(&mut self.io).poll_read(cx, buf);
        if buf.filled().len() > before {
            self.heard(&buf.filled()[before..]);
        }
        polled
    }
}

impl AsyncWrite for Heard {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &[u8],
    ) -> Poll<io::Result<usize>> {
        let polled = Pin::new(&mut self.io).poll_write(cx, buf);
        self.wrote(&polled);
        polled
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bufs: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let polled = Pin::new(&mut self.io).poll_write_vectored(cx, bufs);
        self.wrote(&polled);
        polled
    }

    fn is_write_vectored(&self) -> bool {
        self.io.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.io).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.io).poll_shutdown(cx)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_frame_is_whole_at_its_last_byte_however_it_is_cut() {
        let frame = [&[0, 1, 4, 4, 0, 0, 0, 0, 0][..], &[7; 260]].concat();
        let mut followed = frame.clone();
        followed.push(0);
        for cut in 0..frame.len() {
            let mut first = FirstFrame::default();
            assert!(!first.is_whole(&frame[..cut]), "{cut}");
            assert!(first.is_whole(&followed[cut..]), "{cut}");
            let mut bytewise = FirstFrame::default();
            let whole = frame.iter().position(|byte| bytewise.is_whole(&[*byte]));
            assert_eq!(whole, Some(frame.len() - 1));
        }
        assert!(FirstFrame::default().is_whole(&[0, 0, 0, 4, 0, 0, 0, 0, 0]));
    }
}
