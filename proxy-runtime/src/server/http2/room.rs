//! Send windows, and the minimum data rate of streams that wait for them.

use std::future::poll_fn;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use h2::{Reason, SendStream};
use tokio::time::Instant;

use super::deadlines::Deadline;
use crate::progress::{ClientReadTimeout, Pace};
use crate::server::connection::ConnectionState;
use crate::server::connection::Held;
use crate::server::metrics::WorkerMetrics;
use crate::stream::recycled::SMALL;

/// Maximum of the connection's window that a stream reserves: other streams could not use it
/// meanwhile.
const AT_ONCE: usize = 256 * 1024;

/// Waits until data can be sent on a stream. Returns how many of the `wanted` bytes must be sent at
/// once; `None` if the client accepts no more.
///
/// Data beyond that would be held in memory until the client opens its window, or until the socket
/// has accepted the backlog.
pub(crate) fn poll_room(
    stream: &mut SendStream<Bytes>,
    wanted: usize,
    connection: &ConnectionState,
    cx: &mut Context<'_>,
) -> Poll<Option<usize>> {
    let backlog = &connection.backlog;
    let is_shared = connection.is_shared_by_responses();
    let most = ready!(backlog.poll_room(is_shared, cx)).min(wanted);
    stream.reserve_capacity(wanted.min(AT_ONCE));
    loop {
        match stream.capacity() {
            0 => {}
            room => {
                let room = room.min(most);
                // Counted until the socket has taken it.
                backlog.add(room, is_shared);
                return Poll::Ready(Some(room));
            }
        }
        match ready!(stream.poll_capacity(cx)) {
            Some(Ok(_)) => {}
            Some(Err(_)) | None => return Poll::Ready(None),
        }
    }
}

/// Returns data that may wait for a full socket in memory of their own if they are a small part of a read buffer,
/// which they would hold as a whole.
#[inline]
pub(crate) fn compact(data: Bytes, connection: &ConnectionState) -> Bytes {
    match connection.write_blocked.load(Relaxed) && data.len() < SMALL / 2 {
        true => Bytes::copy_from_slice(&data),
        false => data,
    }
}

/// The data rate of a stream's client.
///
/// It is measured per stream: progress of other streams, or data that the client sends, does not
/// open this window.
#[derive(Debug, Default)]
pub(crate) struct Room(Option<Box<Lack>>);

/// The state of a stream that had to wait.
#[derive(Debug)]
struct Lack {
    connection: Arc<ConnectionState>,
    pace: Pace,
    is_waiting: bool,
    /// The start of the measured window, and the bytes written by the connection until then.
    began: (Instant, u64),
}

impl Room {
    /// Records that the stream waits, unless no minimum rate applies.
    pub(crate) fn lacks(&mut self, connection: &Arc<ConnectionState>) {
        let lack = match &mut self.0 {
            Some(lack) => lack,
            none => {
                let Some(rate) = connection.worker.limits.data_rate else {
                    return;
                };
                // Most streams never wait, and need none.
                none.insert(Box::new(Lack {
                    connection: Arc::clone(connection),
                    pace: Pace::new(rate),
                    is_waiting: false,
                    began: (Instant::now(), connection.written.load(Relaxed)),
                }))
            }
        };
        // Counted once per wait.
        if !std::mem::replace(&mut lack.is_waiting, true) {
            connection.without_room.fetch_add(1, Relaxed);
        }
    }

    /// Records progress: `bytes` can be sent.
    #[inline]
    pub(crate) fn is_found(&mut self, bytes: usize) {
        if let Some(lack) = &mut self.0 {
            lack.pace.moved(bytes as u64);
            lack.stop();
        }
    }

    /// The time at which a client without progress [is too slow](Self::is_too_slow). `None` if the
    /// stream does not wait, or no minimum rate applies.
    pub(crate) fn due(&mut self) -> Option<Instant> {
        let lack = self.0.as_mut().filter(|lack| lack.is_waiting)?;
        lack.pace.due()
    }

    /// Ends a window. Returns true if the client was too slow in it.
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

    /// Poll it when the stream only waits. Ready when the client is too slow, or at the time `until`. True: it was too
    /// slow for the data rate.
    pub(crate) fn poll_too_slow(
        &mut self,
        deadline: &Deadline,
        until: Option<Instant>,
    ) -> Poll<bool> {
        loop {
            let window = self.due();
            let Some(due) = window.into_iter().chain(until).min() else {
                return Poll::Pending;
            };
            ready!(deadline.poll_due(due));
            if until == Some(due) {
                return Poll::Ready(false);
            }
            if self.is_too_slow() {
                return Poll::Ready(true);
            }
        }
    }
}

impl Lack {
    /// Returns true if the socket is full but progresses fast enough for all waiting streams
    /// together: the client does not decide which of them has its turn.
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

/// The reason why data were not sent.
#[derive(Debug)]
pub(crate) enum Unsent {
    /// The client accepts no more.
    Disconnected,
    /// The client was too slow. The stream was reset.
    TooSlow,
}

/// The state of a stream that sends data.
#[derive(Debug)]
pub(crate) struct StreamSend<'a> {
    pub(crate) connection: &'a Arc<ConnectionState>,
    pub(crate) deadline: &'a Deadline,
    pub(crate) room: Room,
    pub(crate) held: Held,
    /// Bytes in memory that follow the data being sent.
    pub(crate) behind: u64,
    /// True for gRPC and the like: a slow reader is legitimate.
    pub(crate) is_exempt: bool,
    /// The timeout in place of a minimum rate, if none applies or the stream is exempt.
    pub(crate) read_timeout: Option<ClientReadTimeout>,
    /// The time by which the client must have received everything.
    pub(crate) until: Option<Instant>,
}

impl StreamSend<'_> {
    /// Ready when the connection can take more. Until then nothing should be read, so that the streams of a client that
    /// does not read hold no data each.
    pub(super) fn poll_taken(
        &mut self,
        stream: &mut SendStream<Bytes>,
        cx: &mut Context<'_>,
    ) -> Poll<Result<(), Unsent>> {
        self.poll(stream, 0, cx).map_ok(drop)
    }

    /// Sends data as the window allows, and calls `left` with the number of bytes still to send.
    pub(crate) async fn send(
        &mut self,
        stream: &mut SendStream<Bytes>,
        mut data: Bytes,
        is_end: bool,
        mut left: impl FnMut(usize),
    ) -> Result<(), Unsent> {
        loop {
            left(data.len());
            let room = match data.len() {
                0 => 0,
                wanted => poll_fn(|cx| self.poll(stream, wanted, cx)).await?,
            };
            let part = compact(data.split_to(room), self.connection);
            let is_last = data.is_empty();
            let sent = stream.send_data(part, is_last && is_end);
            sent.map_err(|_| Unsent::Disconnected)?;
            if is_last {
                left(0);
                return Ok(());
            }
        }
    }

    /// Ready with the number of the `wanted` bytes that can be sent, or with 0 as soon as the connection can take more.
    fn poll(
        &mut self,
        stream: &mut SendStream<Bytes>,
        wanted: usize,
        cx: &mut Context<'_>,
    ) -> Poll<Result<usize, Unsent>> {
        let connection = self.connection;
        let polled = match wanted {
            0 => {
                let is_shared = connection.is_shared_by_responses();
                let polled = connection.backlog.poll_read(is_shared, cx);
                polled.map(|()| Some(0))
            }
            _ => poll_room(stream, wanted, connection, cx),
        };
        match polled {
            Poll::Ready(Some(room)) => {
                self.room.is_found(room);
                self.held.set(0, self.connection);
                if let Some(read_timeout) = &mut self.read_timeout {
                    read_timeout.moved();
                }
                Poll::Ready(Ok(room))
            }
            Poll::Ready(None) => Poll::Ready(Err(Unsent::Disconnected)),
            Poll::Pending => {
                // A full socket hides what becomes of the stream.
                if stream.poll_reset(cx).is_ready() {
                    return Poll::Ready(Err(Unsent::Disconnected));
                }
                self.held.set(wanted as u64 + self.behind, self.connection);
                if let Some(read_timeout) = &mut self.read_timeout {
                    let due = read_timeout.due();
                    let due = self.until.map_or(due, |until| until.min(due));
                    ready!(self.deadline.poll_due(due));
                } else {
                    if !self.is_exempt {
                        self.room.lacks(self.connection);
                    }
                    if ready!(self.room.poll_too_slow(self.deadline, self.until)) {
                        WorkerMetrics::add(&self.connection.metrics().slow_clients);
                    }
                }
                stream.send_reset(Reason::CANCEL);
                Poll::Ready(Err(Unsent::TooSlow))
            }
        }
    }
}
