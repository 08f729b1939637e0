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

const SETTINGS: u8 = 4;
const PING: u8 = 6;
const ACK: u8 = 1;

/// What answers a PING, and a frame's head: more than that is sent to a client that asks about data that it gets.
const PONG_AND_HEAD: u64 = 17 + 9;

const SECOND: Duration = Duration::from_secs(1);

/// What was noticed.
#[derive(Debug, Default)]
pub(super) struct Noticed {
    /// The client sends more PING or SETTINGS than it may.
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
            _ => return,
        };
        let written = self.state.written.load(Relaxed);
        if rate.is_exceeded(written) {
            self.noticed.has_flood.set(true);
        }
    }
}

/// How often a client sends what costs an answer.
#[derive(Debug)]
struct Rate {
    per_second: u32,
    /// Whoever is sent so much for each may send more of them.
    least: u64,
    count: u32,
    /// When the count began, and how much had been written by then.
    began: (Instant, u64),
}

impl Rate {
    fn new(per_second: u32, least: u64) -> Self {
        Self {
            per_second,
            least,
            count: 0,
            began: (Instant::now(), 0),
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
        now < since + SECOND && written - before < self.least.saturating_mul(count)
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
