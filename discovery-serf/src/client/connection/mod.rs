//! One connection: a task that reads and writes, and the handle that sends requests to it.
//!
//! The task never waits for callers. Replies go to the waiting callers, records of streams into bounded
//! queues. The number of requests is limited by permits, which each request holds until it is answered.

mod answer;
mod failure;
mod routes;
mod task;

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite};
use tokio::sync::{Notify, OwnedSemaphorePermit, Semaphore, mpsc, oneshot};

use self::answer::Waiting;
use self::routes::{Pending, Routes};
use self::task::Task;
use super::queue::Queue;
use super::{ClientError, ClientErrorKind, ConnectOptions};
use crate::wire::messages::{DecodeError, Request};

/// Maximum number of requests that wait for their responses. Further ones wait for a permit.
const MAX_PENDING: usize = 64;

/// The most streams at a time.
const MAX_STREAMS: usize = 32;

/// The longest request, in bytes. With [`MAX_PENDING`], it bounds the memory of unsent requests.
const MAX_REQUEST: usize = 1 << 20;

/// A handle that sends requests over a connection. The connection ends when its last handle is dropped.
#[derive(Debug)]
pub(super) struct Handle {
    agent: Arc<str>,
    options: ConnectOptions,
    /// Bounded by `permits`.
    orders: mpsc::UnboundedSender<TaskRequest>,
    permits: Arc<Semaphore>,
    streams: Arc<Semaphore>,
    shared: Arc<Shared>,
}

/// The state shared by handle and task.
#[derive(Debug)]
struct Shared {
    /// The number of the next request. No number is used twice, so that a late record of a stopped stream
    /// is never taken for a reply.
    next_seq: AtomicU64,
    /// Woken when a stream was dropped.
    stream_dropped: Notify,
    /// The reason for the end of the connection.
    end: OnceLock<ClientError>,
}

impl Shared {
    fn next_seq(&self) -> u64 {
        self.next_seq.fetch_add(1, Ordering::Relaxed)
    }
}

/// A request for the task.
struct TaskRequest {
    seq: u64,
    /// Header and body.
    bytes: Vec<u8>,
    pending: Pending,
}

impl Handle {
    /// Starts the task of a connection. Nothing is sent yet.
    pub(super) fn start<Io>(io: Io, options: &ConnectOptions) -> Arc<Self>
    where
        Io: AsyncRead + AsyncWrite + Send + 'static,
    {
        let agent: Arc<str> = options.address.as_str().into();
        let (orders, receiver) = mpsc::unbounded_channel();
        let shared = Arc::new(Shared {
            next_seq: AtomicU64::new(1),
            stream_dropped: Notify::new(),
            end: OnceLock::new(),
        });
        let routes = Routes::new(Arc::clone(&agent), Arc::clone(&shared));
        let task = Task::new(io, options.max_frame, receiver, routes, Arc::clone(&shared));
        tokio::spawn(task.run());
        Arc::new(Self {
            agent,
            options: options.clone(),
            orders,
            permits: Arc::new(Semaphore::new(MAX_PENDING)),
            streams: Arc::new(Semaphore::new(MAX_STREAMS)),
            shared,
        })
    }

    pub(super) fn agent(&self) -> &Arc<str> {
        &self.agent
    }

    pub(super) fn options(&self) -> &ConnectOptions {
        &self.options
    }

    /// Sends a request whose reply has no body, and waits for it.
    ///
    /// # Cancel safety
    ///
    /// May be dropped at any time. A request that was handed to the task is sent, and its reply discarded.
    pub(super) async fn tell(
        &self,
        request: &Request,
        timeout: Duration,
    ) -> Result<(), ClientError> {
        self.send(request, timeout, None, |_| Ok(())).await
    }

    /// Sends a request whose reply has a body. An unreadable body ends the connection: nothing further from
    /// such an agent can be trusted.
    pub(super) async fn ask<T: Send + 'static>(
        &self,
        request: &Request,
        timeout: Duration,
        decode: fn(&[u8]) -> Result<T, DecodeError>,
    ) -> Result<T, ClientError> {
        self.send(request, timeout, None, decode).await
    }

    /// Sends a request for a stream, whose records go to a queue after the reply.
    pub(super) async fn open(
        &self,
        request: &Request,
        timeout: Duration,
        stream: Arc<Queue>,
    ) -> Result<(), ClientError> {
        self.send(request, timeout, Some(stream), |_| Ok(())).await
    }

    async fn send<T: Send + 'static>(
        &self,
        request: &Request,
        timeout: Duration,
        stream: Option<Arc<Queue>>,
        decode: fn(&[u8]) -> Result<T, DecodeError>,
    ) -> Result<T, ClientError> {
        let command = request.command();
        if request.content_len() > MAX_REQUEST {
            let detail = format!("the request is longer than {MAX_REQUEST} bytes");
            let kind = ClientErrorKind::InvalidRequest;
            return Err(ClientError::new(kind, &self.agent, command, detail));
        }
        let permits = Arc::clone(&self.permits);
        // The permit stays with the request until its reply, even if this future is dropped.
        let permit = permits.acquire_owned().await;
        let permit = permit.expect("the semaphore is not closed");
        let seq = self.shared.next_seq();
        let mut bytes = Vec::new();
        request.encode(seq, &mut bytes);
        let (reply, answer) = oneshot::channel();
        let pending = Pending {
            command: command.to_owned(),
            body: request.reply_body(),
            timeout,
            answer: Box::new(Waiting {
                reply: Some(reply),
                decode,
            }),
            stream,
            _permit: Some(permit),
        };
        let order = TaskRequest {
            seq,
            bytes,
            pending,
        };
        if self.orders.send(order).is_err() {
            return Err(self.has_ended(command));
        }
        match answer.await {
            Ok(answer) => answer,
            Err(_) => Err(self.has_ended(command)),
        }
    }

    /// A place for one more stream.
    pub(super) fn stream_permit(&self) -> Result<OwnedSemaphorePermit, ClientError> {
        let streams = Arc::clone(&self.streams);
        streams.try_acquire_owned().map_err(|_| {
            let detail = format!("there are {MAX_STREAMS} streams on the connection already");
            let kind = ClientErrorKind::InvalidRequest;
            ClientError::new(kind, &self.agent, "stream", detail)
        })
    }

    pub(super) fn stream_was_dropped(&self) {
        self.shared.stream_dropped.notify_one();
    }

    pub(super) fn is_closed(&self) -> bool {
        self.orders.is_closed()
    }

    pub(super) async fn closed(&self) {
        self.orders.closed().await;
    }

    /// The reason for the end of the connection. `None` while it is open.
    pub(super) fn end(&self) -> Option<&ClientError> {
        self.shared.end.get()
    }

    /// The error of a request on a connection that has ended.
    fn has_ended(&self, command: &str) -> ClientError {
        let kind = ClientErrorKind::Closed;
        let detail = "the connection has ended";
        let error = ClientError::new(kind, &self.agent, command, detail);
        match self.shared.end.get() {
            Some(end) => error.with_source(end.clone()),
            // The runtime of the task has been shut down.
            None => error,
        }
    }
}
