//! An eye on the frames that come: how often a client sends what `h2` answers without telling, and what must not reach it.

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
    ACK, CONTINUATION, Frames, Head, PING, PRIORITY, SETTINGS, Verdict, WINDOW_UPDATE,
};
use crate::server::connection::{ConnectionIo, ConnectionState, Transport};
use crate::stream::ByteStream;

/// What a client says before its first frame (RFC 9113 section 3.4).
const PREFACE: usize = 24;

/// What answers a PING, and a frame's head: more than that is sent to a client that asks about data that it gets.
const PONG_AND_HEAD: u64 = 17 + 9;

/// The shortest answer to a request, a frame's head and an indexed status: who sends one frame of another type with each request may
/// do so however many there are.
const ANSWER: u64 = 10;

/// Half of the shortest DATA frame that has something in it, for which there may be a WINDOW_UPDATE of the stream and one of the
/// connection (RFC 9113 section 6.9).
const DATA_OF_UPDATE: u64 = 5;

/// WINDOW_UPDATE frames that a client may send within a second, whatever it is sent, besides two for each stream that it may
/// have.
const UPDATES: u32 = 1000;

const SECOND: Duration = Duration::from_secs(1);

/// What was noticed.
#[derive(Debug, Default)]
pub(super) struct Noticed {
    /// Why the connection has to end.
    end: Cell<Option<Reason>>,
    unfinished: Cell<Option<Unfinished>>,
}

/// A frame of which a part has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Unfinished {
    pub(super) since: Instant,
    /// It belongs to the head of a request, or to its trailer fields, before which nothing else may come.
    pub(super) is_block: bool,
}

impl Noticed {
    /// Why the connection has to end for what the client has sent, if it has.
    #[inline]
    pub(super) fn end(&self) -> Option<Reason> {
        self.end.get()
    }

    /// The frame that `h2` has not been told of, since only a part of it has come.
    pub(super) fn unfinished(&self) -> Option<Unfinished> {
        self.unfinished.get()
    }
}

/// The connection's socket, with an eye on the frames that come.
pub(super) struct Watched<T: Transport> {
    io: ConnectionIo<T>,
    watch: Watch,
    /// What came behind the last frame that `h2` could be told of, and what it is told in its place.
    held: Vec<u8>,
    /// How much of `held` may be passed on, and how much of that was.
    released: usize,
    passed: usize,
}

impl<T: Transport> Watched<T> {
    pub(super) fn new(io: ConnectionIo<T>, state: &Arc<ConnectionState>) -> (Self, Rc<Noticed>) {
        let limits = &state.worker.limits.http2;
        let noticed = Rc::<Noticed>::default();
        let watch = Watch {
            skip: PREFACE,
            frames: Frames::default(),
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

    /// Hands out what may be passed on; whether there was something.
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

    /// Holds what came, but for the frames in front of it that may be passed on at once. Returns how much that is.
    fn take(&mut self, bytes: &[u8]) -> usize {
        let mut at_once = 0;
        let mut replaced = None;
        if self.held.is_empty() {
            (at_once, replaced) = self.watch.look(bytes);
            if at_once == bytes.len() {
                self.watch.noticed.unfinished.set(None);
                return at_once;
            }
        } else {
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

/// Where in the frames the bytes are that come.
struct Watch {
    /// What is to be passed over before the next head.
    skip: usize,
    frames: Frames,
    pings: Rate,
    settings: Rate,
    updates: Rate,
    others: Rate,
    state: Arc<ConnectionState>,
    noticed: Rc<Noticed>,
}

impl Watch {
    /// Looks at what comes next. Returns how much of it may be passed on as it is, and, if so much of the rest is to be replaced,
    /// with what.
    fn look(&mut self, bytes: &[u8]) -> (usize, Option<(usize, Vec<u8>)>) {
        let mut at = 0;
        loop {
            let passed = self.skip.min(bytes.len() - at);
            self.skip -= passed;
            at += passed;
            let rest = &bytes[at..];
            if rest.is_empty() || self.noticed.end.get().is_some() {
                return (at, None);
            }
            let Some(head) = Head::of(rest) else {
                self.wait(false);
                return (at, None);
            };
            match self.frames.look(head, rest) {
                Verdict::Pass(bytes) => {
                    self.skip = bytes;
                    self.note(head.kind, head.flags & ACK != 0);
                }
                Verdict::Wait { is_block } => {
                    self.wait(is_block);
                    return (at, None);
                }
                Verdict::Replace { taken, with } => return (at, Some((taken, with))),
                Verdict::End(reason) => {
                    self.noticed.end.set(Some(reason));
                    return (at, None);
                }
            }
            // The next one has all its time.
            self.noticed.unfinished.set(None);
        }
    }

    fn wait(&self, is_block: bool) {
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
            // Ours are few. Those that were never asked for cost work, and `h2` logs each.
            (PING, true) => &mut self.others,
            (WINDOW_UPDATE, _) => &mut self.updates,
            (PRIORITY, _) => &mut self.others,
            (kind, _) if kind > CONTINUATION => &mut self.others,
            _ => return,
        };
        let written = self.state.written.load(Relaxed);
        if rate.is_exceeded(written) {
            self.noticed.end.set(Some(Reason::ENHANCE_YOUR_CALM));
        }
    }
}

/// How often a client sends what costs an answer, or work.
#[derive(Debug)]
struct Rate {
    per_second: u32,
    /// Whoever is sent so much for each may send more of them.
    least: u64,
    /// What it was sent and has sent nothing for counts later as well.
    keeps_rest: bool,
    count: u32,
    /// When the count began, and how much had been written by then.
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

    /// Of WINDOW_UPDATE. All that was written may be taken, and acknowledged, at a later time and at once.
    fn of_updates(streams: u32) -> Self {
        let per_second = streams.saturating_mul(2).saturating_add(UPDATES);
        Self {
            keeps_rest: true,
            ..Self::new(per_second, DATA_OF_UPDATE)
        }
    }

    /// Counts one more. The clock is read when there are as many as a second may have, and not with each of them.
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
                // The connection ends in this turn.
                return Poll::Pending;
            }
            // `h2` looks with all that it does, and mostly in vain.
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
