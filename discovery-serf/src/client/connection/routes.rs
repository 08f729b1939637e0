//! The receivers of an agent's messages.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::OwnedSemaphorePermit;
use tokio::time::Instant;

use super::super::queue::Queue;
use super::answer::PendingReply;
use super::failure::Failure;
use super::{ClientError, ClientErrorKind, Shared};
use crate::wire::messages::{
    AUTHENTICATION_REQUIRED, HANDSHAKE_REQUIRED, ReplyBody, ResponseHeader, UNSUPPORTED_COMMAND,
};

/// Maximum number of stopped streams that are remembered. An agent may still have 512 records for each of
/// them in its queue when it answers the `stop`, and sends them afterwards.
const STOPPED: usize = 1_024;

/// A request that waits for its reply.
pub(super) struct Pending {
    pub(super) command: String,
    /// The presence of a body in the reply.
    pub(super) body: ReplyBody,
    /// The time limit of the agent, from the end of the previous request.
    pub(super) timeout: Duration,
    pub(super) answer: Box<dyn PendingReply>,
    /// The queue for the records, if the agent accepts a stream.
    pub(super) stream: Option<Arc<Queue>>,
    pub(super) _permit: Option<OwnedSemaphorePermit>,
}

/// The receiver of the next message.
enum NextMessage {
    /// The message is a header.
    Header,
    /// The message is the body of a reply, with this error.
    Reply {
        seq: u64,
        pending: Pending,
        error: String,
    },
    /// The message is a record.
    Record(Arc<Queue>),
    /// The message is a record of a stopped stream.
    Stopped,
}

/// The pending requests and streams. Contains no waits and no clock.
pub(super) struct Routes {
    agent: Arc<str>,
    shared: Arc<Shared>,
    pending: BTreeMap<u64, Pending>,
    /// The requests in the order in which the agent does them, which is one after the other.
    order: VecDeque<u64>,
    /// The time since which the first request of `order` is the next one for the agent.
    since: Instant,
    streams: BTreeMap<u64, Arc<Queue>>,
    stopped: VecDeque<u64>,
    next: NextMessage,
}

impl Routes {
    pub(super) fn new(agent: Arc<str>, shared: Arc<Shared>) -> Self {
        Self {
            agent,
            shared,
            pending: BTreeMap::new(),
            order: VecDeque::new(),
            // Without meaning before the first request.
            since: Instant::now(),
            streams: BTreeMap::new(),
            stopped: VecDeque::new(),
            next: NextMessage::Header,
        }
    }

    pub(super) fn agent(&self) -> &Arc<str> {
        &self.agent
    }

    /// Records a request that is about to be sent.
    pub(super) fn asked(&mut self, seq: u64, pending: Pending, now: Instant) {
        if self.order.is_empty() {
            self.since = now;
        }
        self.order.push_back(seq);
        self.pending.insert(seq, pending);
    }

    /// The time by which the agent must have answered the current request. `None` if there is no request,
    /// or no time limit.
    pub(super) fn deadline(&self) -> Option<Instant> {
        let first = self.first()?;
        self.since.checked_add(first.timeout)
    }

    /// The failure for a deadline that has passed.
    pub(super) fn timed_out(&self) -> Failure {
        let timeout = self.first().map_or(Duration::ZERO, |first| first.timeout);
        Failure::timed_out(self.first_seq(), timeout)
    }

    /// Takes a message.
    ///
    /// # Errors
    ///
    /// Returns an error if the connection cannot continue.
    pub(super) fn take(&mut self, message: &[u8], now: Instant) -> Result<(), Failure> {
        match std::mem::replace(&mut self.next, NextMessage::Header) {
            NextMessage::Header => self.take_header(ResponseHeader::decode(message)?, now),
            NextMessage::Reply {
                seq,
                pending,
                error,
            } => {
                let rejection = self.rejection(&pending, &error);
                self.answer(seq, pending, rejection, message, now)
            }
            NextMessage::Record(queue) => {
                queue.push(message);
                Ok(())
            }
            NextMessage::Stopped => Ok(()),
        }
    }

    fn take_header(&mut self, header: ResponseHeader, now: Instant) -> Result<(), Failure> {
        let ResponseHeader { seq, error } = header;
        if let Some(pending) = self.pending.remove(&seq) {
            return self.take_reply(seq, pending, error, now);
        }
        let next = match self.streams.get(&seq) {
            Some(queue) => NextMessage::Record(Arc::clone(queue)),
            None if self.stopped.contains(&seq) => NextMessage::Stopped,
            // The presence of a body depends on the request.
            None => {
                let detail = format!("the agent answers a request that was not made ({seq})");
                return Err(Failure::protocol(detail));
            }
        };
        if !error.is_empty() {
            let rejection = ClientError::rejection(&self.agent, "stream", &error);
            return Err(
                Failure::protocol("a record of a stream has an error").with_source(rejection)
            );
        }
        self.next = next;
        Ok(())
    }

    /// Takes the header of a reply.
    fn take_reply(
        &mut self,
        seq: u64,
        pending: Pending,
        error: String,
        now: Instant,
    ) -> Result<(), Failure> {
        if pending.body.follows(&error) {
            self.next = NextMessage::Reply {
                seq,
                pending,
                error,
            };
            return Ok(());
        }
        let rejection = self.rejection(&pending, &error);
        let ends = match &*error {
            // The agent has not read the body of the request, and takes it for the next request.
            AUTHENTICATION_REQUIRED => Some(ClientErrorKind::Denied),
            // The agent closes the connection.
            HANDSHAKE_REQUIRED | UNSUPPORTED_COMMAND => Some(ClientErrorKind::Closed),
            _ => None,
        };
        if let Some(kind) = ends {
            // One of three texts, so it needs no cleaning.
            let detail = format!("the agent does not continue: {error}");
            self.next = NextMessage::Reply {
                seq,
                pending,
                error,
            };
            return Err(Failure::new(kind, detail).about(seq, rejection));
        }
        if rejection.is_none()
            && let Some(queue) = &pending.stream
        {
            self.streams.insert(seq, Arc::clone(queue));
            // The caller may have been dropped before there was anything to stop.
            if queue.is_abandoned() {
                self.shared.stream_dropped.notify_one();
            }
        }
        self.answer(seq, pending, rejection, &[], now)
    }

    fn rejection(&self, pending: &Pending, error: &str) -> Option<ClientError> {
        let rejected = !error.is_empty();
        rejected.then(|| ClientError::rejection(&self.agent, &pending.command, error))
    }

    /// Passes the reply to its caller. The agent continues with the next request.
    fn answer(
        &mut self,
        seq: u64,
        mut pending: Pending,
        rejection: Option<ClientError>,
        body: &[u8],
        now: Instant,
    ) -> Result<(), Failure> {
        if self.first_seq() == Some(seq) {
            self.since = now;
        }
        self.order.retain(|other| *other != seq);
        match rejection {
            Some(rejection) => pending.answer.fail(rejection),
            None => {
                if let Err(error) = pending.answer.succeed(body) {
                    // Answered by the end of the connection.
                    self.pending.insert(seq, pending);
                    return Err(error.into());
                }
            }
        }
        Ok(())
    }

    /// Returns the numbers of the abandoned streams for which no stop was sent to the agent yet. From then on they
    /// count as stopped.
    pub(super) fn stop_abandoned(&mut self) -> Vec<u64> {
        let mut abandoned = Vec::new();
        self.streams.retain(|seq, queue| {
            let is_abandoned = queue.is_abandoned();
            if is_abandoned {
                abandoned.push(*seq);
            }
            !is_abandoned
        });
        self.stopped.extend(&abandoned);
        let too_many = self.stopped.len().saturating_sub(STOPPED);
        self.stopped.drain(..too_many);
        abandoned
    }

    /// Ends all requests and streams, since the connection has ended.
    pub(super) fn end(self, failure: &Failure) {
        let without_body = match self.next {
            NextMessage::Reply { seq, pending, .. } => Some((seq, pending)),
            NextMessage::Header | NextMessage::Record(_) | NextMessage::Stopped => None,
        };
        for (seq, mut pending) in without_body.into_iter().chain(self.pending) {
            // An agent that leaves the cluster ends, and it may end before its reply is sent.
            let has_left = pending.command == "leave" && failure.kind == ClientErrorKind::Closed;
            if has_left && pending.answer.succeed(&[]).is_ok() {
                continue;
            }
            let error = failure.error_of(seq, &pending.command, &self.agent);
            pending.answer.fail(error);
        }
        for queue in self.streams.values() {
            queue.end();
        }
    }

    fn first_seq(&self) -> Option<u64> {
        self.order.front().copied()
    }

    fn first(&self) -> Option<&Pending> {
        let first = self.first_seq()?;
        match &self.next {
            NextMessage::Reply { seq, pending, .. } if *seq == first => Some(pending),
            _ => self.pending.get(&first),
        }
    }
}
