//! The exchange of one request with a service over `http` types, created by the loop of the
//! connection and dropped with the response.

use std::future::poll_fn;
use std::io;
use std::pin::Pin;
use std::sync::atomic::Ordering::Relaxed;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use bytes::Bytes;
use http::response;
use http_body::Body;
use tokio::io::AsyncWrite;
use tokio::time::Instant;

use super::batch::Batch;
use super::body_channel::BodySender;
use super::client::Client;
use super::response::{ResponseContext, Writing, WrittenHead, write_head};
use crate::BoxError;
use crate::error::Cause;
use crate::forward::recycled::{self, Kind};
use crate::http1::HeadLimits;
use crate::observe::targets;
use crate::progress::ClientReadTimeout;
use crate::progress::alarm::Alarm;
use crate::response::ExchangeInfo;
use crate::server::connection::{ResponseBody, ServiceCall, Transport, after};
use crate::server::handler::Handler;

/// The step after a response.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum NextStep {
    /// Read the next request.
    Request,
    /// Close the connection gracefully.
    Close,
    /// Drop the connection: the client has disconnected, is too slow, or must see that the response
    /// is incomplete.
    Drop,
    /// Continue as a tunnel.
    Tunnel,
}

/// A request in progress.
pub(super) struct Dispatch {
    /// The channel for the rest of the request body.
    pub(super) sender: Option<BodySender>,
    pub(super) response_context: ResponseContext,
    pub(super) limits: HeadLimits,
    /// The watch over a client whose body is not read.
    pub(super) watch: UnreadWatch,
}

/// The watch over a client whose request body is not read.
#[derive(Default)]
pub(super) struct UnreadWatch {
    /// The time of the next look.
    look: Option<Instant>,
    /// The time at which a client that has left is given up.
    leaves: Option<Instant>,
}

/// Time for which the end of the client's data is left to a reader that is about to read the body, since the reader
/// can tell the client the reason.
const GRACE: Duration = Duration::from_secs(1);

impl UnreadWatch {
    /// Ready when the client has left.
    fn poll<T: Transport>(&mut self, cx: &mut Context<'_>, client: &mut Client<T>) -> Poll<()> {
        if self.leaves.is_none() {
            ready!(client.poll_left(cx, &mut self.look));
        }
        let leaves = self
            .leaves
            .get_or_insert_with(|| after(Instant::now(), GRACE));
        client.clock.poll_due(cx, *leaves)
    }
}

impl Dispatch {
    /// Waits for the response, and puts its body into `body`. Returns its head, and the length of its body if that is
    /// known; `None` if the client has disconnected.
    pub(super) async fn wait<T, H>(
        &mut self,
        client: &mut Client<T>,
        mut call: Pin<&mut ServiceCall<H>>,
        mut body: Pin<&mut Option<ResponseBody<H::Body>>>,
    ) -> Option<(response::Parts, Option<u64>)>
    where
        T: Transport,
        H: Handler,
    {
        let mut alarm = Alarm::default();
        poll_fn(|cx| {
            loop {
                if client.clock.is_retired() {
                    client.state.retire();
                }
                let mut length = None;
                let place = |made: ResponseBody<H::Body>| {
                    length = made.size_hint().exact();
                    body.set(Some(made));
                };
                if let Poll::Ready(head) = alarm.watch(cx, |cx| call.as_mut().poll(cx, place)) {
                    return Poll::Ready(Some((head, length)));
                }
                if let Some(due) = alarm.due()
                    && client.clock.poll_due(cx, due).is_ready()
                {
                    alarm.rang();
                    continue;
                }
                match self.poll_meanwhile(cx, client, true, 0) {
                    Meanwhile::Again => {}
                    Meanwhile::Wait => return Poll::Pending,
                    Meanwhile::Stop(cause) => {
                        call.as_mut().give_up(cause);
                        return Poll::Ready(None);
                    }
                }
            }
        })
        .await
    }

    /// Writes the output buffer and then the body, which is dropped afterwards.
    pub(super) async fn write<T, B>(
        &mut self,
        client: &mut Client<T>,
        begun: WrittenHead,
        mut body: Pin<&mut Option<ResponseBody<B>>>,
    ) -> NextStep
    where
        T: Transport,
        B: Body<Data = Bytes>,
        B::Error: Into<BoxError>,
    {
        // A graceful close would make a truncated body look complete.
        let ends_with_connection = begun.writing == Writing::UntilClose;
        if ends_with_connection {
            client.state.abort.store(true, Relaxed);
        }
        let written = match body.as_mut().as_pin_mut() {
            Some(body) => self.write_body(client, begun, body).await,
            None => Ok(true),
        };
        if let (Err(Unwritten::Stopped(cause)), Some(body)) = (&written, body.as_mut().as_pin_mut())
        {
            body.give_up(*cause);
        }
        body.set(None);
        match written {
            Ok(true) => {}
            Ok(false) | Err(Unwritten::Stopped(_)) => return NextStep::Drop,
            Err(Unwritten::Failed(error)) => {
                tracing::debug!(target: targets::SERVER, %error, "the response could not be written");
                return NextStep::Drop;
            }
        }
        // The body is complete, so a graceful close is correct again.
        if ends_with_connection {
            client.state.abort.store(false, Relaxed);
        }
        if begun.is_switch {
            return NextStep::Tunnel;
        }
        let is_read = match &mut self.sender {
            // The client waits for the end of the connection.
            Some(sender) if ends_with_connection => sender.has_ended(),
            // Boxed, since most requests have no body, or it was received already.
            Some(sender) => Box::pin(sender.finish(client, &self.limits, begun.keep)).await,
            None => true,
        };
        if !is_read {
            client.state.unread.store(true, Relaxed);
        }
        if begun.keep && is_read {
            NextStep::Request
        } else {
            NextStep::Close
        }
    }

    /// Handles the connection while the service or the client is waited for. `unacknowledged`: number of
    /// bytes that the client has not received yet.
    fn poll_meanwhile<T: Transport>(
        &mut self,
        cx: &mut Context<'_>,
        client: &mut Client<T>,
        may_continue: bool,
        unacknowledged: u64,
    ) -> Meanwhile {
        // First, so that the timer is armed in every case.
        if client.clock.poll_slow_reader(cx, &client.state).is_ready() {
            return Meanwhile::Stop(Cause::ClientTooSlow);
        }
        // Pipelined bytes count as held memory too.
        let unsent = match client.input.is_empty() {
            true => 0,
            false => client.input.memory(),
        };
        if client.state.hold(unacknowledged + unsent, cx.waker()) {
            return Meanwhile::Stop(Cause::ClientMemory);
        }
        match &mut self.sender {
            Some(sender) if !sender.has_ended() => {
                match sender.poll_pump(cx, client, &self.limits, may_continue) {
                    Poll::Ready(()) => Meanwhile::Again,
                    // A service that waits for something else than the body must not wait for a client that has left.
                    // Later the client may have closed its side because of what it reads.
                    Poll::Pending if may_continue && sender.is_unread() => {
                        match self.watch.poll(cx, client) {
                            Poll::Ready(()) => Meanwhile::Stop(Cause::ClientGone),
                            Poll::Pending => Meanwhile::Wait,
                        }
                    }
                    Poll::Pending => Meanwhile::Wait,
                }
            }
            _ => match client.poll_gone(cx) {
                Poll::Ready(()) => Meanwhile::Stop(Cause::ClientGone),
                Poll::Pending => Meanwhile::Wait,
            },
        }
    }

    /// Writes the head to the output buffer. `length`: the length of the service's body, if known.
    pub(super) fn begin<T: Transport>(
        &self,
        client: &mut Client<T>,
        head: response::Parts,
        length: Option<u64>,
    ) -> WrittenHead {
        client.acquire_output();
        let can_keep = !client.is_closing()
            && self.sender.as_ref().is_none_or(|sender| {
                // A proxy rejects a request without its whole body as it does on the byte path: what
                // follows is not read.
                !sender.is_lost() && (sender.has_ended() || !is_rejected(&head))
            });
        let begun = write_head(
            &head,
            length,
            self.response_context,
            can_keep,
            &mut client.output,
        );
        recycled::release(Kind::Response, head.headers, head.extensions);
        begun
    }

    /// Writes the output buffer and the body. Returns true if the body is complete.
    async fn write_body<T, B>(
        &mut self,
        client: &mut Client<T>,
        begun: WrittenHead,
        mut body: Pin<&mut ResponseBody<B>>,
    ) -> Result<bool, Unwritten>
    where
        T: Transport,
        B: Body<Data = Bytes>,
        B::Error: Into<BoxError>,
    {
        // gRPC does not exist over HTTP/1.1.
        let mut read_timeout = body.read_timeout(false);
        let (behind, until) = (body.behind(), body.until());
        let mut before = 0;
        let mut writing = begun.writing;
        let mut batch = Batch::new(client.state.worker.limits.effective_buffer());
        // `Some` once the body is not polled any more; true if it is complete.
        let mut end = (writing.is_complete() || body.is_end_stream())
            .then(|| writing.end(None, &mut client.output));
        poll_fn(|cx| {
            loop {
                let mut is_waiting = false;
                // Collects frames up to the size of a batch, to write them with one call.
                while end.is_none() && !batch.is_full(&client.output) {
                    let Poll::Ready(frame) = body.as_mut().poll_frame(cx) else {
                        is_waiting = true;
                        break;
                    };
                    let out = &mut client.output;
                    end = match frame.map(|frame| frame.map(http_body::Frame::into_data)) {
                        None => Some(writing.end(None, out)),
                        Some(Ok(Ok(data))) => {
                            let fits = writing.put(data, &mut batch, out);
                            if !fits {
                                Some(false)
                            // Ends without another poll, so that the last bytes and the end are
                            // written together.
                            } else if writing.is_complete() || body.is_end_stream() {
                                Some(writing.end(None, out))
                            } else {
                                None
                            }
                        }
                        Some(Ok(Err(frame))) => {
                            let trailers = frame.into_trailers().ok();
                            Some(writing.end(trailers.as_ref(), out))
                        }
                        Some(Err(error)) => {
                            tracing::debug!(target: targets::SERVER, %error, "a response's body broke off");
                            Some(false)
                        }
                    };
                }
                let written = poll_flushed(cx, &mut batch, client);
                let left = batch.unwritten(&client.output);
                body.as_mut()
                    .written(left as u64, matches!(written, Poll::Ready(Ok(()))));
                let unacknowledged = match written.is_pending() {
                    true => {
                        let batch = batch.memory(&client.output) as u64;
                        batch + behind + client.state.behind_socket()
                    }
                    false => 0,
                };
                if let Some(read_timeout) = &mut read_timeout {
                    let sent = client.state.written.load(Relaxed);
                    // Progress of the socket restarts the client's time.
                    if written.is_ready() || std::mem::replace(&mut before, sent) != sent {
                        read_timeout.moved();
                    }
                }
                let waits = read_timeout.as_mut().map(ClientReadTimeout::due);
                let due = waits.into_iter().chain(until).min();
                if written.is_pending()
                    && due.is_some_and(|due| client.clock.poll_due(cx, due).is_ready())
                {
                    // The client must not take a truncated response for a complete one.
                    client.state.abort.store(true, Relaxed);
                    return Poll::Ready(Err(Unwritten::Stopped(Cause::ClientTooSlow)));
                }
                if let Poll::Ready(result) = written {
                    result.map_err(Unwritten::Failed)?;
                    if let Some(is_whole) = end {
                        return Poll::Ready(Ok(is_whole));
                    }
                    // The body may have more frames ready.
                    if !is_waiting {
                        continue;
                    }
                }
                match self.poll_meanwhile(cx, client, false, unacknowledged) {
                    // The service got data, so its response body may go on.
                    Meanwhile::Again if is_waiting => {}
                    Meanwhile::Again | Meanwhile::Wait => return Poll::Pending,
                    Meanwhile::Stop(cause) => return Poll::Ready(Err(Unwritten::Stopped(cause))),
                }
            }
        })
        .await
    }
}

/// The result of handling the connection.
enum Meanwhile {
    /// A part of the request body was passed to the service.
    Again,
    Wait,
    /// The client has disconnected, or is to be disconnected, for this cause.
    Stop(Cause),
}

/// The reason why a response was not written.
enum Unwritten {
    Failed(io::Error),
    /// The client has disconnected, or is to be disconnected, for this cause.
    Stopped(Cause),
}

fn poll_flushed<T: Transport>(
    cx: &mut Context<'_>,
    batch: &mut Batch,
    client: &mut Client<T>,
) -> Poll<io::Result<()>> {
    ready!(batch.poll_write(cx, &mut client.io, &mut client.output))?;
    Pin::new(&mut client.io).poll_flush(cx)
}

/// Returns true if a proxy responds with an error of its own.
fn is_rejected(head: &response::Parts) -> bool {
    let exchange = head.extensions.get::<ExchangeInfo>();
    exchange.is_some_and(|exchange| exchange.error.is_some())
}
