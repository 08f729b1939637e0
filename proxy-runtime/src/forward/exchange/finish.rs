//! The end of an exchange: recording, reuse of the connection, and local replies.

use std::net::SocketAddr;

use http::StatusCode;
use http::response::Parts;
use tokio::time::Instant;

use super::Forwarded;
use super::connect::{Link, Unconnected};
use super::downstream::{Download, Downstream, ExchangeStateOf, Record, Upload};
use super::failure::Failure;
use super::filtering::{Filtering, LocalReply};
use super::recorder::Recorder;
use super::resolved_route::ResolvedRoute;
use crate::error::{Cause, ForwardErrorKind};
use crate::live::DestinationState;
use crate::local_pool::Recycle;
use crate::response::CauseHeader;
use crate::upstream::{Http1Connection, SendError};

/// The state of the client's connection after an exchange.
#[derive(Clone, Copy)]
pub(crate) struct Ended {
    /// True if the next request may follow.
    pub(crate) keep: bool,
    /// True if the request was not read to its end.
    has_more: bool,
    /// The destination's address, if the exchange failed.
    upstream: Option<SocketAddr>,
    /// The cause of the failure of a stream of HTTP/2.
    cause: Option<Cause>,
}

/// The reason for a local reply.
#[derive(Clone, Copy, Default)]
struct About {
    error: Option<ForwardErrorKind>,
    /// The cause of a filter's reply.
    reply: Option<Cause>,
    /// The destination whose response is not forwarded.
    upstream: Option<SocketAddr>,
}

impl ResolvedRoute<'_> {
    /// Updates the counters, returns the connection to its pool if it can be reused, and recycles
    /// the state.
    #[inline]
    pub(crate) fn finish<D: Downstream>(
        &self,
        down: &mut D,
        mut link: Link,
        mut flow: Box<ExchangeStateOf<D>>,
        failure: Option<&Failure>,
        now: Instant,
    ) -> Ended {
        let is_clean = |connection: &mut Http1Connection| connection.input.is_empty();
        let (upstream, cause) = match failure {
            None => (None, None),
            Some(failure) => {
                if let Failure::Truncated(_) = failure {
                    // A truncated response must not look complete to the client or to a cache.
                    down.cut(&mut flow.download);
                }
                let connection = link.lease.raw();
                let cause = connection
                    .as_ref()
                    .and_then(|connection| connection.failed());
                let cause = cause.and_then(SendError::cause);
                (connection.map(|connection| connection.peer), cause)
            }
        };
        // Unread bytes would be taken for the response of the next request.
        if failure.is_none() && flow.is_reusable() && link.lease.raw().is_some_and(is_clean) {
            link.lease.release(now);
        }
        // Before the record is completed, which reports the bytes.
        flow.count(&link.picked.in_flight, down.record());
        if let Some(record) = down.record()
            && flow.download.is_done()
        {
            record.completed();
        }
        let has_more = !flow.has_read_request();
        let keep = down.served(&flow.download, has_more, now);
        flow.outbound.rest();
        flow.upload.rest();
        flow.download.rest();
        D::flows().keep(flow);
        Ended {
            keep,
            has_more,
            upstream,
            cause,
        }
    }

    /// Carries the tunnel that a response has begun, until it is over.
    #[cold]
    pub(crate) async fn carry<D: Downstream>(
        &self,
        down: &mut D,
        mut link: Link,
        flow: Box<ExchangeStateOf<D>>,
        recorder: Recorder<'_>,
    ) -> Forwarded {
        // A tunnel may live for hours, and needs none of the exchange's buffers.
        drop(flow);
        let timeout = self.cluster.upstream().activity_timeout();
        let ended = match (down.take_tunnel(), link.lease.raw()) {
            (Some(client), Some(connection)) => {
                client
                    .carry(connection, &link.picked.in_flight, timeout)
                    .await
            }
            _ => Err(ForwardErrorKind::UpgradeRequestDestination),
        };
        if let Err(kind) = ended {
            let destination = recorder.destination().map(DestinationState::id);
            tracing::debug!(
                target: crate::observe::targets::REQUEST,
                destination = destination.map(tracing::field::display),
                error = kind.as_str(),
                "the tunnel broke",
            );
        }
        drop(link);
        let error = ended.err();
        recorder.end(error, Instant::now());
        if let Some(record) = down.record() {
            record.tunnel_ended(error);
        }
        // The client's connection was the tunnel, so that no request can follow.
        Forwarded::Disconnected
    }

    /// Ends a failed exchange.
    #[cold]
    pub(crate) async fn fail<D: Downstream>(
        &self,
        down: &mut D,
        mut recorder: Recorder<'_>,
        filtering: Filtering,
        failure: Failure,
        ended: Ended,
    ) -> Forwarded {
        let mut about = About::default();
        let (kind, status) = match failure {
            Failure::Suppressed(status, kind, instead) => {
                // The destination did respond: its status counts for it, although the client gets another one.
                recorder.answered(status, Instant::now());
                about.upstream = ended.upstream;
                (kind, instead)
            }
            Failure::Unsent | Failure::Stale => {
                let kind = ForwardErrorKind::Request;
                let kind = ended.cause.map_or(kind, |cause| kind.because(cause));
                (kind, StatusCode::BAD_GATEWAY)
            }
            Failure::Untrusted => (
                ForwardErrorKind::Request.because(Cause::TlsFailed),
                StatusCode::BAD_GATEWAY,
            ),
            Failure::Unanswered(kind, status) => (kind, status),
            Failure::Truncated(kind) => {
                if let Some(record) = down.record() {
                    record.failed(kind);
                }
                recorder.end(Some(kind), Instant::now());
                // The head was sent already, so no error response is possible.
                return Forwarded::Disconnected;
            }
            Failure::Disconnected(kind) => {
                self.log_left(down, &recorder, ended.upstream);
                if let Some(record) = down.record() {
                    record.disconnected(kind.cause());
                }
                recorder.end(Some(kind), Instant::now());
                return Forwarded::Disconnected;
            }
        };
        about.error = Some(kind);
        let reply = LocalReply::Status(status);
        self.reply_locally(down, recorder, filtering, reply, about, ended.has_more)
            .await
    }

    /// Passes to the access log where the request of a client went that has left.
    #[cold]
    fn log_left<D: Downstream>(
        &self,
        down: &mut D,
        recorder: &Recorder<'_>,
        upstream: Option<SocketAddr>,
    ) {
        if let Some(record) = down.record()
            && record.wants_info()
        {
            record.left(self.info(recorder, upstream));
        }
    }

    /// Ends a request without a connection; a filter may have replied.
    #[cold]
    pub(crate) async fn give_up<D: Downstream>(
        &self,
        down: &mut D,
        mut recorder: Recorder<'_>,
        filtering: Filtering,
        unconnected: Unconnected,
        has_more: bool,
    ) -> Forwarded {
        match unconnected {
            Unconnected::Disconnected => {
                self.log_left(down, &recorder, None);
                down.disconnected();
                recorder.end(Some(ForwardErrorKind::RequestCanceled), Instant::now());
                Forwarded::Disconnected
            }
            Unconnected::Replied(reply) => {
                let about = About {
                    reply: reply.cause(),
                    ..About::default()
                };
                about
                    .reply
                    .into_iter()
                    .for_each(|cause| recorder.replied(cause));
                let reply = LocalReply::Filter(reply);
                self.reply_locally(down, recorder, filtering, reply, about, has_more)
                    .await
            }
            unconnected => {
                let rejection = unconnected.rejection();
                self.reject(down, recorder, filtering, rejection, has_more)
                    .await
            }
        }
    }

    /// Sends an error response for a request without a response.
    #[cold]
    pub(crate) async fn reject<D: Downstream>(
        &self,
        down: &mut D,
        recorder: Recorder<'_>,
        filtering: Filtering,
        (kind, status): (ForwardErrorKind, StatusCode),
        has_more: bool,
    ) -> Forwarded {
        let about = About {
            error: Some(kind),
            ..About::default()
        };
        let reply = LocalReply::Status(status);
        self.reply_locally(down, recorder, filtering, reply, about, has_more)
            .await
    }

    /// Sends a local reply after response filters and transforms, and ends the request.
    #[cold]
    async fn reply_locally<D: Downstream>(
        &self,
        down: &mut D,
        mut recorder: Recorder<'_>,
        mut filtering: Filtering,
        reply: LocalReply,
        mut about: About,
        has_more: bool,
    ) -> Forwarded {
        // The rest of a body is not read any more.
        let limits = (self.head_due(down, &recorder), !has_more);
        let replied = filtering.local_reply(self, down, limits, reply).await;
        let Some((mut head, text, failed)) = replied else {
            self.log_left(down, &recorder, about.upstream);
            down.disconnected();
            let error = about.error.unwrap_or(ForwardErrorKind::RequestCanceled);
            recorder.end(Some(error), Instant::now());
            return Forwarded::Disconnected;
        };
        about.error = about.error.or(failed);
        // Causes reveal the inside of the network, so only the configured networks get them.
        if let Some(header) = self.service.shared().cause_header()
            && let Some(cause) = about.error.map(ForwardErrorKind::cause).or(about.reply)
            && header.is_for(down.connection())
        {
            CauseHeader::write(cause, &mut head.headers);
        }
        self.record_reply(down, &mut recorder, &head, about);
        let read_timeout = self.read_timeout(down.data_rate());
        let sent = down.send_reply(head, text, has_more, read_timeout).await;
        recorder.end(about.error, Instant::now());
        let sent = match sent {
            Ok(sent) => sent,
            Err(cause) => {
                if let Some(record) = down.record() {
                    record.disconnected(cause);
                }
                return Forwarded::Disconnected;
            }
        };
        if let Some(record) = down.record() {
            record.replied(sent.sent);
        }
        Forwarded::Served { keep: sent.keep }
    }

    /// Records a local reply.
    fn record_reply<D: Downstream>(
        &self,
        down: &mut D,
        recorder: &mut Recorder<'_>,
        head: &Parts,
        about: About,
    ) {
        let status = head.status;
        recorder.rejected(status);
        let allowed = self.allowed(down.body_limit());
        let Some(record) = down.record() else { return };
        if record.wants_info() {
            let mut info = self.info(recorder, about.upstream);
            info.error = about.error;
            info.reply = about.reply;
            // Only a destination that did respond has taken a time to its head.
            info.time_to_head = about.upstream.map(|_| recorder.picked().elapsed());
            record.answered(status, info);
        }
        if about.error == Some(ForwardErrorKind::RequestBodyClient) {
            record.body_rejected(status, allowed);
        }
    }
}
