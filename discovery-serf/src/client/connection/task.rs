//! The task of a connection.

use std::sync::Arc;
use std::time::Duration;

use bytes::{Buf, BytesMut};
use futures_util::FutureExt;
use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt, ReadHalf, WriteHalf};
use tokio::sync::mpsc;
use tokio::time::{Instant, sleep_until};

use super::answer::NoCaller;
use super::failure::Failure;
use super::routes::{Pending, Routes};
use super::{ClientErrorKind, Shared, TaskRequest};
use crate::wire::frames::{FrameError, FrameReader};
use crate::wire::messages::{ReplyBody, Request};

/// The rate in bytes per second at which a message must arrive to count as not stalled.
const SLOWEST: usize = 1 << 20;

/// The time limit for stopping a stream, which only removes it in the agent.
const STOP_TIMEOUT: Duration = Duration::from_secs(5);

/// Reads and writes one connection, and ends it when its last handle is dropped.
pub(super) struct Task<Io> {
    reader: FrameReader<ReadHalf<Io>>,
    writer: Writer<WriteHalf<Io>>,
    orders: mpsc::UnboundedReceiver<TaskRequest>,
    routes: Routes,
    shared: Arc<Shared>,
}

/// The end of a connection.
enum End {
    /// All handles were dropped.
    Dropped,
    Failed(Failure),
}

impl From<Failure> for End {
    fn from(failure: Failure) -> Self {
        Self::Failed(failure)
    }
}

impl<Io: AsyncRead + AsyncWrite + Send> Task<Io> {
    pub(super) fn new(
        io: Io,
        max_frame: usize,
        orders: mpsc::UnboundedReceiver<TaskRequest>,
        routes: Routes,
        shared: Arc<Shared>,
    ) -> Self {
        let (reader, writer) = tokio::io::split(io);
        Self {
            reader: FrameReader::new(reader, max_frame),
            writer: Writer {
                io: writer,
                outgoing: BytesMut::new(),
                must_flush: false,
            },
            orders,
            routes,
            shared,
        }
    }

    pub(super) async fn run(mut self) {
        let end = loop {
            if let Err(end) = self.step().await {
                break end;
            }
        };
        let failure = match end {
            End::Dropped => return,
            End::Failed(failure) => failure,
        };
        let error = failure.error(self.routes.agent());
        tracing::debug!(target: "discovery::serf", %error, "the connection has ended");
        // Set before the end can be noticed.
        let _ = self.shared.end.set(error);
        self.orders.close();
        self.routes.end(&failure);
    }

    /// Handles one event. Each of them waits only for the agent, and none delays another.
    async fn step(&mut self) -> Result<(), End> {
        let deadline = self.deadline();
        tokio::select! {
            message = self.reader.next() => {
                let message = message.map_err(read_failure)?.ok_or_else(closed)?;
                self.routes.take(&message, Instant::now())?;
            }
            written = self.writer.write(), if self.writer.has_work() => {
                if let Err(error) = written {
                    return Err(self.write_failure(error).into());
                }
            }
            order = self.orders.recv() => match order {
                None => return Err(End::Dropped),
                Some(TaskRequest { seq, bytes, pending }) => self.ask(seq, &bytes, pending),
            },
            () = self.shared.stream_dropped.notified() => {
                // It may have been the last handle, and then closing the connection suffices.
                if self.orders.is_closed() {
                    return Err(End::Dropped);
                }
                self.stop_abandoned();
            }
            () = sleep_until(deadline.unwrap_or_else(Instant::now)), if deadline.is_some() => {
                // More of a long message may have come meanwhile.
                if self.deadline().is_some_and(|deadline| deadline <= Instant::now()) {
                    return Err(self.routes.timed_out().into());
                }
            }
        }
        Ok(())
    }

    fn ask(&mut self, seq: u64, bytes: &[u8], pending: Pending) {
        self.writer.outgoing.extend_from_slice(bytes);
        self.routes.asked(seq, pending, Instant::now());
    }

    fn stop_abandoned(&mut self) {
        for stream in self.routes.stop_abandoned() {
            let seq = self.shared.next_seq();
            let request = Request::Stop { seq: stream };
            let mut bytes = Vec::new();
            request.encode(seq, &mut bytes);
            let pending = Pending {
                command: request.command().to_owned(),
                body: ReplyBody::Never,
                timeout: STOP_TIMEOUT,
                answer: Box::new(NoCaller),
                stream: None,
                _permit: None,
            };
            self.ask(seq, &bytes, pending);
        }
    }

    /// The time by which the agent must have answered. A long message may take longer while it arrives.
    fn deadline(&self) -> Option<Instant> {
        let here = Duration::from_secs_f64(self.reader.buffered() as f64 / SLOWEST as f64);
        self.routes.deadline()?.checked_add(here)
    }

    /// Returns the failure of a write. An agent that closes the connection may have sent the reason before.
    fn write_failure(&mut self, error: std::io::Error) -> Failure {
        while let Some(Ok(Some(message))) = self.reader.next().now_or_never() {
            if let Err(failure) = self.routes.take(&message, Instant::now()) {
                return failure;
            }
        }
        broken(error)
    }
}

fn closed() -> Failure {
    let detail = "the agent has closed the connection";
    Failure::new(ClientErrorKind::Closed, detail)
}

fn broken(error: std::io::Error) -> Failure {
    let detail = "the connection has broken";
    Failure::new(ClientErrorKind::Closed, detail).with_source(error)
}

fn read_failure(error: FrameError) -> Failure {
    match error {
        FrameError::Violation(violation) => {
            let detail = "the other end is no Serf agent";
            Failure::new(ClientErrorKind::Protocol, detail).with_source(violation)
        }
        FrameError::Truncated => Failure::new(ClientErrorKind::Closed, error.to_string()),
        FrameError::Io(error) => broken(error),
    }
}

/// Writes pending requests as fast as the agent reads them.
struct Writer<Io> {
    io: Io,
    /// The unsent bytes, limited by the permits of the requests.
    outgoing: BytesMut,
    must_flush: bool,
}

impl<Io: AsyncWrite + Unpin> Writer<Io> {
    fn has_work(&self) -> bool {
        !self.outgoing.is_empty() || self.must_flush
    }

    /// Writes some of it. May be dropped at any time.
    async fn write(&mut self) -> std::io::Result<()> {
        if self.outgoing.is_empty() {
            self.io.flush().await?;
            self.must_flush = false;
            return Ok(());
        }
        let written = self.io.write(&self.outgoing).await?;
        if written == 0 {
            return Err(std::io::ErrorKind::WriteZero.into());
        }
        self.outgoing.advance(written);
        self.must_flush = true;
        if self.outgoing.is_empty() {
            // A long request leaves no long buffer behind.
            self.outgoing = BytesMut::new();
        }
        Ok(())
    }
}
