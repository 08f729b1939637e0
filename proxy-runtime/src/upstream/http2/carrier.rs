//! The task that reads and writes a connection of HTTP/2, and asks a silent destination for a sign of life.

use std::future::poll_fn;
use std::io;
use std::net::SocketAddr;
use std::pin::{Pin, pin};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Weak};
use std::task::{Context, Poll, ready};
use std::time::Duration;

use bytes::Bytes;
use futures_util::task::AtomicWaker;
use h2::client::{Connection, SendRequest};
use h2::{Ping, PingPong};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::sync::{Notify, watch};
use tokio::time::{Instant, Sleep, sleep};
use tracing::debug;

use super::Settings;
use crate::observe::targets;
use crate::upstream::io::UpstreamIo;

/// The time of silence after which a destination is asked for a sign of life while requests wait for it.
const PING_INTERVAL: Duration = Duration::from_secs(20);
/// The time within which it has to give that sign.
const PING_TIMEOUT: Duration = Duration::from_secs(20);

/// State that a connection's task and its requests share.
#[derive(Debug, Default)]
pub(super) struct Signs {
    /// Requests that are on the connection.
    pub(super) streams: AtomicUsize,
    /// Set when something is read, cleared when it is asked.
    has_read: AtomicBool,
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
    pub(super) fn is_lost(&self) -> bool {
        self.is_lost.load(Ordering::Relaxed)
    }

    pub(super) fn has_ended(&self) -> bool {
        self.has_ended.load(Ordering::Relaxed)
    }

    /// Has the task read what the destination may have said meanwhile, such as that it takes no further request.
    pub(super) async fn look(&self) {
        let mut looked = pin!(self.has_looked.notified());
        looked.as_mut().enable();
        self.is_asked.store(true, Ordering::Release);
        self.task.wake();
        if !self.has_ended() {
            looked.await;
        }
    }

    /// Tells those who wait for it that everything was read.
    fn looked(&self) {
        if self.is_asked.swap(false, Ordering::Acquire) {
            self.has_looked.notify_waiters();
        }
    }
}

/// Reads and writes until the connection has ended, and tells of what the destination says of it.
///
/// Dropped, it closes the connection.
pub(super) async fn carry(
    mut connection: Connection<Heard, Bytes>,
    send: Weak<SendRequest<Bytes>>,
    seen: watch::Sender<Settings>,
    signs: Arc<Signs>,
    peer: SocketAddr,
) {
    let _ended = Ended(Arc::clone(&signs));
    let mut keep_alive = KeepAlive {
        pings: connection.ping_pong(),
        timer: None,
        is_asked: false,
    };
    let mut connection = pin!(connection);
    poll_fn(|cx| {
        signs.task.register(cx.waker());
        let polled = connection.as_mut().poll(cx);
        signs.looked();
        let now = Settings {
            max_streams: connection.max_concurrent_send_streams(),
            connect: send
                .upgrade()
                .is_some_and(|send| send.is_extended_connect_protocol_enabled()),
        };
        seen.send_if_modified(|settings| {
            let has_changed = *settings != now;
            *settings = now;
            has_changed
        });
        if let Poll::Ready(ended) = polled {
            if let Err(error) = ended {
                debug!(target: targets::UPSTREAM, %peer, %error, "connection failed");
            }
            return Poll::Ready(());
        }
        ready!(keep_alive.poll_lost(&signs, cx));
        signs.is_lost.store(true, Ordering::Relaxed);
        debug!(target: targets::UPSTREAM, %peer, "the destination gives no sign of life");
        Poll::Ready(())
    })
    .await;
}

/// Tells that the task has ended, however it does.
struct Ended(Arc<Signs>);

impl Drop for Ended {
    fn drop(&mut self) {
        self.0.has_ended.store(true, Ordering::Relaxed);
        self.0.has_looked.notify_waiters();
    }
}

/// Asks for signs of life.
struct KeepAlive {
    pings: Option<PingPong>,
    /// Runs while there are requests.
    timer: Option<Pin<Box<Sleep>>>,
    /// A ping waits for its answer.
    is_asked: bool,
}

impl KeepAlive {
    /// Ready when the destination has given no sign of life in time.
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

/// A socket of which is known whether something came.
#[derive(Debug)]
pub(super) struct Heard {
    io: UpstreamIo,
    signs: Arc<Signs>,
}

impl Heard {
    pub(super) fn new(io: UpstreamIo, signs: Arc<Signs>) -> Self {
        Self { io, signs }
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
            self.signs.has_read.store(true, Ordering::Relaxed);
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
        Pin::new(&mut self.io).poll_write(cx, buf)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bufs: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.io).poll_write_vectored(cx, bufs)
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
