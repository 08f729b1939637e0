//! An eye on the frames that come, for what `h2` answers without telling.

use std::cell::Cell;
use std::io::{self, IoSlice};
use std::pin::Pin;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::Instant;

use crate::server::connection::{ConnectionIo, ConnectionState, Transport};
use crate::stream::ByteStream;

/// What a client says before its first frame (RFC 9113 section 3.4).
const PREFACE: usize = 24;

/// A frame's head (RFC 9113 section 4.1).
const HEAD: usize = 9;

const PRIORITY: u8 = 2;
const SETTINGS: u8 = 4;
const PING: u8 = 6;
const WINDOW_UPDATE: u8 = 8;
/// Beyond it there are types that `h2` reads over (RFC 9113 section 5.5).
const CONTINUATION: u8 = 9;
const ACK: u8 = 1;

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
    /// The client sends more of some frames than it may.
    has_flood: Cell<bool>,
}

impl Noticed {
    #[inline]
    pub(super) fn has_flood(&self) -> bool {
        self.has_flood.get()
    }
}

/// The connection's socket, with an eye on the frames that come.
pub(super) struct Watched<T: Transport> {
    io: ConnectionIo<T>,
    watch: Watch,
}

impl<T: Transport> Watched<T> {
    pub(super) fn new(io: ConnectionIo<T>, state: &Arc<ConnectionState>) -> (Self, Rc<Noticed>) {
        let limits = &state.worker.limits.http2;
        let noticed = Rc::<Noticed>::default();
        let watch = Watch {
            skip: PREFACE,
            head: [0; HEAD],
            have: 0,
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
        (Self { io, watch }, noticed)
    }
}

/// Where in the frames the bytes are that come.
struct Watch {
    /// What is to be passed over before the next head.
    skip: usize,
    head: [u8; HEAD],
    /// How much of the head has come.
    have: usize,
    pings: Rate,
    settings: Rate,
    updates: Rate,
    others: Rate,
    state: Arc<ConnectionState>,
    noticed: Rc<Noticed>,
}

impl Watch {
    fn look(&mut self, mut bytes: &[u8]) {
        loop {
            let passed = self.skip.min(bytes.len());
            self.skip -= passed;
            bytes = &bytes[passed..];
            let part = (HEAD - self.have).min(bytes.len());
            if part == 0 {
                return;
            }
            self.head[self.have..self.have + part].copy_from_slice(&bytes[..part]);
            self.have += part;
            bytes = &bytes[part..];
            if self.have == HEAD {
                self.have = 0;
                let [a, b, c, kind, flags, ..] = self.head;
                self.skip = u32::from_be_bytes([0, a, b, c]) as usize;
                self.note(kind, flags & ACK != 0);
            }
        }
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
            self.noticed.has_flood.set(true);
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
        // `h2` looks with all that it does, and mostly in vain.
        ready!(this.io.poll_readable(cx))?;
        let before = buffer.filled().len();
        ready!(Pin::new(&mut this.io).poll_read(cx, buffer))?;
        this.watch.look(&buffer.filled()[before..]);
        Poll::Ready(Ok(()))
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
