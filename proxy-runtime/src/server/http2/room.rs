//! Room for data in the client's windows, and how long a stream waits for it.

use std::future::poll_fn;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use h2::{Reason, SendStream};
use tokio::time::Instant;

use super::backlog::Backlog;
use super::deadlines::Deadline;
use crate::server::connection::Held;
use crate::server::connection::{ConnectionState, Pace, Uptake};
use crate::server::metrics::WorkerMetrics;

/// The most that a stream reserves of the connection's window before it sends: others could not have it meanwhile.
const AT_ONCE: usize = 256 * 1024;

/// Waits until data can be sent on a stream, and returns how much of `wanted` bytes, which is sent at once then; `None` when the
/// client wants no more.
///
/// More than that would be held until the client opens its window, or the socket takes what others have handed over.
pub(crate) fn poll_room(
    stream: &mut SendStream<Bytes>,
    wanted: usize,
    backlog: &Backlog,
    cx: &mut Context<'_>,
) -> Poll<Option<usize>> {
    let most = ready!(backlog.poll_room(cx)).min(wanted);
    stream.reserve_capacity(wanted.min(AT_ONCE));
    loop {
        match stream.capacity() {
            0 => {}
            room => {
                let room = room.min(most);
                backlog.add(room);
                return Poll::Ready(Some(room));
            }
        }
        match ready!(stream.poll_capacity(cx)) {
            Some(Ok(_)) => {}
            Some(Err(_)) | None => return Poll::Ready(None),
        }
    }
}

/// Whether the client takes what a stream has for it.
///
/// A pace of the stream's own: that others are read, or that the client sends something, does not open its window.
#[derive(Debug, Default)]
pub(crate) struct Room(Option<Box<Lack>>);

/// A stream that has had to wait for room.
#[derive(Debug)]
struct Lack {
    connection: Arc<ConnectionState>,
    pace: Pace,
    is_waiting: bool,
    /// When the pace's window began, and what the connection had written by then.
    began: (Instant, u64),
}

impl Room {
    /// The stream waits, unless clients may be as slow as they like.
    pub(crate) fn lacks(&mut self, connection: &Arc<ConnectionState>) {
        let lack = match &mut self.0 {
            Some(lack) => lack,
            none => {
                let Some(rate) = connection.worker.limits.data_rate else {
                    return;
                };
                none.insert(Box::new(Lack {
                    connection: Arc::clone(connection),
                    pace: Pace::new(rate),
                    is_waiting: false,
                    began: (Instant::now(), connection.written.load(Relaxed)),
                }))
            }
        };
        if !std::mem::replace(&mut lack.is_waiting, true) {
            connection.without_room.fetch_add(1, Relaxed);
        }
    }

    /// There was room for so many bytes.
    #[inline]
    pub(crate) fn is_found(&mut self, bytes: usize) {
        if let Some(lack) = &mut self.0 {
            lack.pace.moved(bytes as u64);
            lack.stop();
        }
    }

    /// When a client that is waited for [may take too little](Self::is_too_slow), if it takes nothing until then. `None` if it may
    /// be as slow as it likes, or is not waited for.
    pub(crate) fn due(&mut self) -> Option<Instant> {
        let lack = self.0.as_mut().filter(|lack| lack.is_waiting)?;
        lack.pace.due()
    }

    /// Whether the client had a whole window, which is over now, and did not use it. Else another one begins.
    pub(crate) fn is_too_slow(&mut self) -> bool {
        let Some(lack) = &mut self.0 else {
            return false;
        };
        let now = Instant::now();
        let is_too_slow = lack.pace.is_too_slow() && !lack.has_a_share(now);
        lack.pace.renew(now);
        lack.began = (now, lack.connection.written.load(Relaxed));
        is_too_slow
    }

    /// To be polled when there is nothing to do but wait: ready when it is for a client that takes too little.
    pub(crate) fn poll_too_slow(&mut self, deadline: &Deadline) -> Poll<()> {
        while let Some(due) = self.due() {
            ready!(deadline.poll_due(due));
            if self.is_too_slow() {
                return Poll::Ready(());
            }
        }
        Poll::Pending
    }
}

impl Lack {
    /// Whether it is the socket that is full, and takes as much as is asked of all the streams together that wait: whose
    /// turn it is among them is not the client's to decide.
    fn has_a_share(&self, now: Instant) -> bool {
        let (since, before) = self.began;
        let waiting = u64::from(self.connection.without_room.load(Relaxed));
        let least = self.pace.rate().least(now - since).saturating_mul(waiting);
        let written = self.connection.written.load(Relaxed) - before;
        self.connection.write_blocked.load(Relaxed) && written >= least
    }

    fn stop(&mut self) {
        if std::mem::take(&mut self.is_waiting) {
            self.connection.without_room.fetch_sub(1, Relaxed);
        }
    }
}

impl Drop for Lack {
    fn drop(&mut self) {
        self.stop();
    }
}

/// Why data were not sent.
#[derive(Debug)]
pub(crate) enum Untaken {
    /// The client wants no more.
    Gone,
    /// The client did not take them in time. The stream was reset.
    TooSlow,
}

/// Who waits for room.
#[derive(Debug)]
pub(crate) struct Waiting<'a> {
    pub(crate) connection: &'a Arc<ConnectionState>,
    pub(crate) deadline: &'a Deadline,
    pub(crate) room: Room,
    pub(crate) held: Held,
    /// Bytes that may wait behind what is to be sent.
    pub(crate) behind: u64,
    /// gRPC and the like: a slow reader is no attacker.
    pub(crate) is_exempt: bool,
    /// Where no rate is asked of the client, or it is exempt: the clock that it is held to instead, if there is one.
    pub(crate) uptake: Option<Uptake>,
}

impl Waiting<'_> {
    /// Sends data as there is room for them, and tells `left` how much is still to be sent.
    pub(crate) async fn send(
        &mut self,
        stream: &mut SendStream<Bytes>,
        mut data: Bytes,
        is_end: bool,
        mut left: impl FnMut(usize),
    ) -> Result<(), Untaken> {
        loop {
            left(data.len());
            let room = match data.len() {
                0 => 0,
                wanted => poll_fn(|cx| self.poll(stream, wanted, cx)).await?,
            };
            let part = data.split_to(room);
            let is_last = data.is_empty();
            let sent = stream.send_data(part, is_last && is_end);
            sent.map_err(|_| Untaken::Gone)?;
            if is_last {
                left(0);
                return Ok(());
            }
        }
    }

    fn poll(
        &mut self,
        stream: &mut SendStream<Bytes>,
        wanted: usize,
        cx: &mut Context<'_>,
    ) -> Poll<Result<usize, Untaken>> {
        match poll_room(stream, wanted, &self.connection.backlog, cx) {
            Poll::Ready(Some(room)) => {
                self.room.is_found(room);
                self.held.set(0, self.connection);
                if let Some(uptake) = &mut self.uptake {
                    uptake.moved();
                }
                Poll::Ready(Ok(room))
            }
            Poll::Ready(None) => Poll::Ready(Err(Untaken::Gone)),
            Poll::Pending => {
                self.held.set(wanted as u64 + self.behind, self.connection);
                if let Some(uptake) = &mut self.uptake {
                    ready!(self.deadline.poll_due(uptake.due()));
                } else {
                    if !self.is_exempt {
                        self.room.lacks(self.connection);
                    }
                    ready!(self.room.poll_too_slow(self.deadline));
                    WorkerMetrics::add(&self.connection.metrics().slow_clients);
                }
                stream.send_reset(Reason::CANCEL);
                Poll::Ready(Err(Untaken::TooSlow))
            }
        }
    }
}
