//! From a stream's head to the end of its response: the raw lane's loop for HTTP/2.

use std::future::poll_fn;

use h2::Reason;
use http::StatusCode;
use http::request::Parts;
use tokio::time::Instant;

use super::answer::{Asker, send_own};
use super::relay::{StreamFlow, StreamRelay};
use super::request::{Run, allowed, start};
use super::upload::StreamUpload;
use crate::error::ForwardErrorKind;
use crate::http1::ClassSet;
use crate::retry::Attempts;
use crate::server::Outcome;
use crate::server::connection::is_grpc_call;
use crate::server::engine::Engine;
use crate::server::engine::connect::{Link, Unconnected};
use crate::server::engine::failure::Failure;
use crate::server::engine::progress::Progress;
use crate::server::engine::tally::Tally;
use crate::server::http2::{Client, Untaken};
use crate::stream::spare as buffers;
use crate::transform::Invalid;
use crate::upstream::{Http1Connection, Rest};

/// Forwards a request that was admitted, and has fields of these classes, as HTTP/1.1. Returns whether it was; if not, nothing
/// was read or written, and it is one for the typed lane.
///
/// Cancel-safe: dropped, the request is cancelled at the destination.
pub(crate) async fn forward(
    head: &Parts,
    classes: ClassSet,
    client: &mut Client,
    engine: &Engine,
) -> bool {
    let generation = engine.current();
    let Some((run, mut tally, connecting)) = start(head, classes, client, engine, &generation)
    else {
        return false;
    };
    #[cfg(test)]
    crate::server::engine::tests::lane::is_raw();
    let link = match connecting {
        Ok(link) => Ok((link, tally.started())),
        // Boxed, since it is seldom needed.
        Err(unconnected) => {
            let connecting = run.connect(unconnected, client, &mut tally);
            let connected = Box::pin(connecting).await;
            connected.map(|link| (link, Instant::now()))
        }
    };
    match link {
        Ok((link, since)) => run.relay(client, link, since, tally).await,
        Err(Unconnected::Gone) => gone(client, tally),
        Err(unconnected) => {
            Box::pin(run.refuse(client, tally, unconnected.refusal())).await;
        }
    }
    true
}

impl<'a> Run<'a> {
    async fn relay(
        &self,
        client: &mut Client,
        mut link: Link,
        since: Instant,
        mut tally: Tally<'a>,
    ) {
        let head = std::mem::replace(&mut link.head, Err(Invalid));
        let Ok(head) = head else {
            // Nothing was sent over it.
            link.lease.give_back(Instant::now());
            let refusal = (ForwardErrorKind::RequestCreation, StatusCode::BAD_GATEWAY);
            return Box::pin(self.refuse(client, tally, refusal)).await;
        };
        let mut flow = self.begin(client, head, since, &tally);
        let mut attempts = Attempts::first();
        let failure = loop {
            let Some(connection) = link.lease.raw() else {
                // It speaks HTTP/2, though its cluster does not.
                break Some(Failure::UNSPOKEN);
            };
            if connection.keep(self.asked().method).if_sent {
                flow.upload.keep();
            }
            let peer = connection.peer;
            let mut relay = StreamRelay {
                client: &mut *client,
                flow: &mut flow,
                plan: self.plan,
                flight: &link.picked.in_flight,
                connection,
            };
            match poll_fn(|cx| relay.poll_head(cx)).await {
                Ok(status) => {
                    tally.answered(status, Instant::now());
                    if relay.client.record.draft.is_some() {
                        let info = self.info(&tally, Some(peer));
                        relay.client.record.answered(status, Some(info));
                    }
                    match poll_fn(|cx| relay.poll_body(cx)).await {
                        Ok(true) => {}
                        Ok(false) => {
                            relay.answered_early();
                            tally.end_early(Instant::now());
                            poll_fn(|cx| relay.poll_rest(cx)).await;
                        }
                        Err(failure) => break Some(failure),
                    }
                    break None;
                }
                Err(failed) => {
                    let is_kept = flow.upload.outbound.is_kept();
                    let failure = (&failed, is_kept);
                    let next = self.next(&mut link, failure, &mut attempts, &mut tally);
                    let Some(next) = next else {
                        break Some(failed);
                    };
                    flow.count(&link.picked.in_flight, &mut client.record);
                    let connection = (link, flow.progress.since);
                    let reconnecting =
                        self.reconnect(next, connection, client, &mut attempts, &mut tally);
                    let has_moved;
                    (link, has_moved) = match Box::pin(reconnecting).await {
                        Ok(connected) => connected,
                        Err(Unconnected::Gone) => return gone(client, tally),
                        Err(unconnected) => {
                            let refusal = unconnected.refusal();
                            return Box::pin(self.refuse(client, tally, refusal)).await;
                        }
                    };
                    if has_moved {
                        let head = std::mem::replace(&mut link.head, Err(Invalid));
                        let Ok(head) = head else {
                            let kind = ForwardErrorKind::RequestCreation;
                            break Some(Failure::Unanswered(kind, StatusCode::BAD_GATEWAY));
                        };
                        flow.upload.outbound.readdress(head);
                    }
                    flow.again();
                }
            }
        };
        let now = Instant::now();
        self.settle(client, link, &mut flow, failure.is_none(), now);
        match failure {
            None => tally.end(None, now),
            Some(failure) => Box::pin(self.fail(client, tally, failure, flow)).await,
        }
    }

    fn begin(
        &self,
        client: &Client,
        head: Vec<u8>,
        since: Instant,
        tally: &Tally<'_>,
    ) -> StreamFlow {
        let deadlines = self.deadlines(self.head_due(tally));
        let has_body = client.body.is_some();
        let mut upload =
            StreamUpload::new(head, self.framing, has_body, allowed(self.resolved, client));
        if has_body
            && let Some(rate) = client.record.connection.worker.limits.data_rate
            && !is_grpc_call(self.head.method_value(), self.head.headers())
        {
            upload.outbound.pace(rate);
        }
        StreamFlow::new(upload, self.asked(), Progress::new(deadlines, since))
    }

    /// Counts what went through, and puts away what the next request can use.
    fn settle(
        &self,
        client: &mut Client,
        mut link: Link,
        flow: &mut StreamFlow,
        is_complete: bool,
        now: Instant,
    ) {
        flow.count(&link.picked.in_flight, &mut client.record);
        if flow.is_sent() {
            client.record.outcome = Outcome::Complete;
        }
        flow.upload.outbound.rest();
        let is_clean = |connection: &mut Http1Connection| connection.input.is_empty();
        if is_complete
            && flow.progress.has_sent_all(flow.upload.outbound.stage())
            && let Some(download) = flow.download.take()
            && matches!(download.body.into_rest(), Rest::Nothing)
            && link.lease.raw().is_some_and(is_clean)
        {
            link.lease.give_back(now);
        }
        buffers::give_back(link.head.unwrap_or_default());
    }

    /// Ends an exchange that did not come to its end.
    #[cold]
    async fn fail(
        &self,
        client: &mut Client,
        mut tally: Tally<'_>,
        failure: Failure,
        flow: StreamFlow,
    ) {
        let kind = match failure {
            Failure::Unsent | Failure::Stale => {
                let refusal = (ForwardErrorKind::Request, StatusCode::BAD_GATEWAY);
                return self.refuse(client, tally, refusal).await;
            }
            Failure::Withheld(status, kind, instead) => {
                tally.answered(status, Instant::now());
                return self.refuse(client, tally, (kind, instead)).await;
            }
            Failure::Unanswered(kind, status) => {
                return self.refuse(client, tally, (kind, status)).await;
            }
            Failure::Cut(kind) => {
                client.record.outcome = Outcome::Failed;
                if let Some(draft) = &mut client.record.draft {
                    draft.failed(Some(kind));
                }
                if let Some(mut download) = flow.download {
                    download.cut(Reason::INTERNAL_ERROR);
                }
                kind
            }
            Failure::Gone(kind) => kind,
        };
        tally.end(Some(kind), Instant::now());
    }

    /// Answers for a destination that did not.
    #[cold]
    async fn refuse(
        &self,
        client: &mut Client,
        mut tally: Tally<'_>,
        (kind, status): (ForwardErrorKind, StatusCode),
    ) {
        tally.refused(status);
        if client.record.draft.is_some() {
            let mut info = self.info(&tally, None);
            info.error = Some(kind);
            client.record.answered(status, Some(info));
        }
        if kind == ForwardErrorKind::RequestBodyClient {
            let allowed = allowed(self.resolved, client).content;
            client.record.body_refused(status, allowed);
        }
        let asker = match (self.is_head(), self.head.method_value()) {
            (true, _) => Asker::Head,
            (false, method) if is_grpc_call(method, self.head.headers()) => Asker::Grpc,
            (false, _) => Asker::Other,
        };
        match send_own(client, status, asker, &self.resolved).await {
            Ok(sent) => {
                client.record.sent = sent;
                client.record.outcome = Outcome::Complete;
            }
            Err(Untaken::Gone) => client.has_reset = true,
            Err(Untaken::TooSlow) => {}
        }
        tally.end(Some(kind), Instant::now());
    }
}

/// The client has reset the stream before there was anything to send its request over.
#[cold]
fn gone(client: &mut Client, tally: Tally<'_>) {
    client.has_reset = true;
    tally.end(Some(ForwardErrorKind::RequestCanceled), Instant::now());
}
