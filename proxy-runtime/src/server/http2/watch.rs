//! Monitoring of client frames: rates of frames that `h2` handles silently, and frames that must
//! not reach it.

use std::cell::Cell;
use std::io::{self, IoSlice};
use std::pin::Pin;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use h2::Reason;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::Instant;

use super::frames::{
    ACK, CONTINUATION, ConnectionFrames, FrameAction, FrameHeader, PING, PRIORITY, SETTINGS,
    WINDOW_UPDATE,
};
use crate::server::connection::{ConnectionIo, ConnectionState, Transport};
use crate::stream::ByteStream;

/// The length of the client preface (RFC 9113 section 3.4).
const PREFACE: usize = 24;

/// The sizes of a PING answer and a frame header: a client that gets more than that between its
/// pings measures the latency of data.
const PONG_AND_HEAD: u64 = 17 + 9;

/// The size of the shortest response to a request: a frame header and an indexed status. A client
/// that sends one frame of another type with each request is not limited.
const ANSWER: u64 = 10;

/// Half of the shortest DATA frame with content, for which there may be a WINDOW_UPDATE of the
/// stream and one of the connection (RFC 9113 section 6.9).
const DATA_OF_UPDATE: u64 = 5;

/// WINDOW_UPDATE frames that a client may send per second in any case, besides two for each allowed
/// stream.
const UPDATES: u32 = 1000;

const SECOND: Duration = Duration::from_secs(1);

/// The findings about a client's frames.
#[derive(Debug, Default)]
pub(super) struct Noticed {
    /// The reason why the connection must end.
    end: Cell<Option<Reason>>,
    unfinished: Cell<Option<Unfinished>>,
}

/// A frame that has arrived in part.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Unfinished {
    pub(super) since: Instant,
    /// True if it belongs to a header block, before whose end no other frame may arrive.
    pub(super) is_block: bool,
}

impl Noticed {
    /// The reason why the connection must end, if there is one.
    #[inline]
    pub(super) fn end(&self) -> Option<Reason> {
        self.end.get()
    }

    /// The frame that `h2` has not seen, since only a part of it has arrived.
    pub(super) fn unfinished(&self) -> Option<Unfinished> {
        self.unfinished.get()
    }
}

/// The socket of a connection, with monitoring of received frames.
pub(super) struct Watched<T: Transport> {
    io: ConnectionIo<T>,
    watch: Watch,
    /// Bytes after the last frame that could be passed on, and replacements for them.
    held: Vec<u8>,
    /// Number of bytes of `held` that may be passed on, and that were passed on.
    released: usize,
    passed: usize,
}

impl<T: Transport> Watched<T> {
    pub(super) fn new(io: ConnectionIo<T>, state: &Arc<ConnectionState>) -> (Self, Rc<Noticed>) {
        let limits = &state.worker.limits.http2;
        let noticed = Rc::<Noticed>::default();
        let watch = Watch {
            skip: PREFACE,
            frames: ConnectionFrames::default(),
            pings: Rate::new(limits.pings_per_second, PONG_AND_HEAD),
            settings: Rate::new(limits.settings_per_second, u64::MAX),
            updates: Rate::of_updates(limits.concurrent_streams),
            others: Rate {
                keeps_rest: true,
                ..Rate::new(limits.other_frames_per_second, ANSWER)
            },
            state: Arc::clone(state),
            noticed: Rc::clone(&noticed),
        };
        let watched = Self {
            io,
            watch,
            held: Vec::new(),
            released: 0,
            passed: 0,
        };
        (watched, noticed)
    }

    /// Passes on the released bytes. Returns false if there are none.
    fn hand_out(&mut self, buffer: &mut ReadBuf<'_>) -> bool {
        let ready = &self.held[self.passed..self.released];
        if ready.is_empty() {
            return false;
        }
        let part = ready.len().min(buffer.remaining());
        buffer.put_slice(&ready[..part]);
        self.passed += part;
        if self.passed == self.held.len() {
            self.held = Vec::new();
            (self.released, self.passed) = (0, 0);
        }
        true
    }

    /// Stores received bytes, except for the frames at the front that may be passed on at once.
    /// Returns the length of these.
    fn take(&mut self, bytes: &[u8]) -> usize {
        let mut at_once = 0;
        let mut replaced = None;
        // Fast path: complete frames are passed on without a copy.
        if self.held.is_empty() {
            (at_once, replaced) = self.watch.look(bytes);
            if at_once == bytes.len() {
                self.watch.noticed.unfinished.set(None);
                return at_once;
            }
        } else {
            // Removes the bytes that `h2` has taken.
            self.held.drain(..self.passed);
            self.released -= self.passed;
            self.passed = 0;
        }
        self.held.extend_from_slice(&bytes[at_once..]);
        loop {
            if let Some((taken, with)) = replaced {
                let place = self.released..self.released + taken;
                self.released += with.len();
                self.held.splice(place, with);
            }
            let (more, next) = self.watch.look(&self.held[self.released..]);
            self.released += more;
            replaced = next;
            if replaced.is_none() {
                break;
            }
        }
        if self.released == self.held.len() {
            self.watch.noticed.unfinished.set(None);
        }
        at_once
    }
}

/// The position in the stream of frames.
struct Watch {
    /// Number of bytes before the next frame header.
    skip: usize,
    frames: ConnectionFrames,
    pings: Rate,
    settings: Rate,
    updates: Rate,
    others: Rate,
    state: Arc<ConnectionState>,
    noticed: Rc<Noticed>,
}

impl Watch {
    /// Checks the next bytes. Returns the number of bytes that may be passed on unchanged, and the
    /// number of following bytes to replace with their replacement.
    fn look(&mut self, bytes: &[u8]) -> (usize, Option<(usize, Vec<u8>)>) {
        let mut at = 0;
        loop {
            let passed = self.skip.min(bytes.len() - at);
            self.skip -= passed;
            at += passed;
            let rest = &bytes[at..];
            // After the end nothing more reaches `h2`.
            if rest.is_empty() || self.noticed.end.get().is_some() {
                return (at, None);
            }
            let Some(head) = FrameHeader::of(rest) else {
                self.wait(false);
                return (at, None);
            };
            match self.frames.look(head, rest) {
                FrameAction::Pass(bytes) => {
                    self.skip = bytes;
                    self.note(head.kind, head.flags & ACK != 0);
                }
                FrameAction::Wait { is_block } => {
                    self.wait(is_block);
                    return (at, None);
                }
                FrameAction::Replace { taken, with } => return (at, Some((taken, with))),
                FrameAction::End(reason) => {
                    self.noticed.end.set(Some(reason));
                    return (at, None);
                }
            }
            // The next frame has the full time limit.
            self.noticed.unfinished.set(None);
        }
    }

    fn wait(&self, is_block: bool) {
        // The time limit counts from the first part of the frame.
        let since = match self.noticed.unfinished.get() {
            Some(unfinished) => unfinished.since,
            None => Instant::now(),
        };
        self.noticed
            .unfinished
            .set(Some(Unfinished { since, is_block }));
    }

    fn note(&mut self, kind: u8, is_answer: bool) {
        let rate = match (kind, is_answer) {
            (SETTINGS, true) => return self.state.acknowledged.store(true, Relaxed),
            (SETTINGS, false) => &mut self.settings,
            (PING, false) => &mut self.pings,
            // The server sends few pings. Answers without a ping cost work, and `h2` logs each.
            (PING, true) => &mut self.others,
            (WINDOW_UPDATE, _) => &mut self.updates,
            (PRIORITY, _) => &mut self.others,
            (kind, _) if kind > CONTINUATION => &mut self.others,
            // Streams, resets, header blocks and empty DATA frames have limits of their own.
            _ => return,
        };
        let written = self.state.written.load(Relaxed);
        if rate.is_exceeded(written) {
            self.noticed.end.set(Some(Reason::ENHANCE_YOUR_CALM));
        }
    }
}

/// The rate of frames that cost an answer or work.
#[derive(Debug)]
struct Rate {
    per_second: u32,
    /// Number of bytes sent to the client that justify one more frame.
    least: u64,
    /// True if unused justification carries over to later seconds.
    keeps_rest: bool,
    count: u32,
    /// The start of the count, and the bytes written until then.
    began: (Instant, u64),
}

impl Rate {
    fn new(per_second: u32, least: u64) -> Self {
        Self {
            per_second,
            least,
            keeps_rest: false,
            count: 0,
            began: (Instant::now(), 0),
        }
    }

    /// The rate of WINDOW_UPDATE frames. All written data may be acknowledged later, and at once.
    fn of_updates(streams: u32) -> Self {
        let per_second = streams.saturating_mul(2).saturating_add(UPDATES);
        Self {
            keeps_rest: true,
            ..Self::new(per_second, DATA_OF_UPDATE)
        }
    }

    /// Counts a frame. Returns true if there are too many. The clock is read only after a full
    /// second's worth of frames.
    fn is_exceeded(&mut self, written: u64) -> bool {
        self.count += 1;
        if self.count <= self.per_second {
            return false;
        }
        let now = Instant::now();
        let count = u64::from(std::mem::take(&mut self.count));
        let (since, before) = std::mem::replace(&mut self.began, (now, written));
        let needed = self.least.saturating_mul(count);
        let is_covered = written - before >= needed;
        if self.keeps_rest {
            // Only the justified part is consumed; the rest counts later.
            self.began.1 = if is_covered { before + needed } else { before };
        }
        now < since + SECOND && !is_covered
    }
}

impl<T: Transport> AsyncRead for Watched<T> {
    fn poll_read(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        loop {
            if this.hand_out(buffer) {
                return Poll::Ready(Ok(()));
            }
            if this.watch.noticed.end.get().is_some() {
                // The connection ends in this poll.
                return Poll::Pending;
            }
            // `h2` reads after everything it does, mostly without any data.
            ready!(this.io.poll_readable(cx))?;
            let before = buffer.filled().len();
            ready!(Pin::new(&mut this.io).poll_read(cx, buffer))?;
            let came = &buffer.filled()[before..];
            if came.is_empty() {
                return Poll::Ready(Ok(()));
            }
            let at_once = this.take(came);
            buffer.set_filled(before + at_once);
            if at_once > 0 {
                return Poll::Ready(Ok(()));
            }
        }
    }
}

impl<T: Transport> AsyncWrite for Watched<T> {
    fn poll_write(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.get_mut().io).poll_write(cx, bytes)
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        slices: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.get_mut().io).poll_write_vectored(cx, slices)
    }

    fn is_write_vectored(&self) -> bool {
        self.io.is_write_vectored()
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.get_mut().io).poll_flush(cx)
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.get_mut().io).poll_shutdown(cx)
    }
}
