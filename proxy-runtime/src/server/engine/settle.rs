//! The end of an exchange, well or not.

use std::future::poll_fn;
use std::net::SocketAddr;
use std::pin::pin;
use std::sync::atomic::Ordering::Relaxed;
use std::task::{Poll, ready};

use http::StatusCode;
use tokio::time::Instant;

use super::Forwarded;
use super::answer::write_own;
use super::body::Body;
use super::connect::{Link, Unconnected};
use super::failure::Failure;
use super::filtering::{Answer, Filtering};
use super::flow::Flow;
use super::request::Run;
use super::tally::Tally;
use crate::error::ForwardErrorKind;
use crate::filter::Reply;
use crate::http1::Method;
use crate::server::Outcome;
use crate::server::http1::{Client, Transport, write_text};
use crate::stream::poll_write_all;
use crate::upstream::Http1Connection;

/// How an exchange left the client's connection.
#[derive(Clone, Copy)]
pub(super) struct Ended {
    /// The next request may follow.
    pub(super) keep: bool,
    /// The request was not read to its end.
    pub(super) has_more: bool,
    /// The destination, if the exchange did not come to its end.
    upstream: Option<SocketAddr>,
}

/// What the proxy says itself.
struct Said {
    status: StatusCode,
    /// Bytes of the body.
    sent: u64,
}

/// What there is to say of it.
#[derive(Clone, Copy, Default)]
struct About {
    error: Option<ForwardErrorKind>,
    /// The destination that had answered.
    upstream: Option<SocketAddr>,
}

impl Run<'_> {
    /// Counts what went through, and puts away what the next request can use.
    #[inline]
    pub(super) fn settle<T: Transport>(
        &self,
        client: &mut Client<T>,
        mut link: Link,
        mut flow: Box<Flow>,
        is_complete: bool,
        now: Instant,
    ) -> Ended {
        let is_clean = |connection: &mut Http1Connection| connection.input.is_empty();
        let upstream = match is_complete {
            true => None,
            false => link.lease.raw().map(|connection| connection.peer),
        };
        if is_complete && flow.is_reusable() && link.lease.raw().is_some_and(is_clean) {
            link.lease.give_back(now);
        }
        flow.count(&link.picked.in_flight, client.record.as_mut());
        if let Some(record) = &mut client.record
            && flow.download.is_done()
        {
            record.outcome = Outcome::Complete;
        }
        let has_more = !flow.has_read_request();
        if has_more {
            client.state.unread.store(true, Relaxed);
        }
        let keep = !flow.is_last && !has_more;
        client.served(now);
        flow.give_back();
        Ended {
            keep,
            has_more,
            upstream,
        }
    }

    /// Ends an exchange that did not come to its end.
    #[cold]
    pub(super) async fn fail<T: Transport>(
        &self,
        client: &mut Client<T>,
        mut tally: Tally<'_>,
        filtering: Filtering,
        failure: Failure,
        ended: Ended,
    ) -> Forwarded {
        let kind = match failure {
            Failure::Withheld(status, kind, instead) => {
                tally.answered(status, Instant::now());
                let refusal = (kind, instead);
                let Ended {
                    has_more, upstream, ..
                } = ended;
                return self
                    .refuse_from(client, tally, filtering, refusal, has_more, upstream)
                    .await;
            }
            Failure::Unsent | Failure::Stale => {
                let refusal = (ForwardErrorKind::Request, StatusCode::BAD_GATEWAY);
                let has_more = ended.has_more;
                return self
                    .refuse(client, tally, filtering, refusal, has_more)
                    .await;
            }
            Failure::Unanswered(kind, status) => {
                let refusal = (kind, status);
                let has_more = ended.has_more;
                return self
                    .refuse(client, tally, filtering, refusal, has_more)
                    .await;
            }
            Failure::Cut(kind) => {
                if let Some(record) = &mut client.record {
                    record.outcome = Outcome::Failed;
                    if let Some(draft) = &mut record.draft {
                        draft.failed(Some(kind));
                    }
                }
                kind
            }
            Failure::Gone(kind) => kind,
        };
        client.output.clear();
        tally.end(Some(kind), Instant::now());
        Forwarded::Gone
    }

    /// Ends a request for which there is no connection, be it that a filter has answered it.
    #[cold]
    pub(super) async fn give_up<T: Transport>(
        &self,
        client: &mut Client<T>,
        tally: Tally<'_>,
        filtering: Filtering,
        unconnected: Unconnected,
        has_more: bool,
    ) -> Forwarded {
        match unconnected {
            Unconnected::Gone => {
                tally.end(Some(ForwardErrorKind::RequestCanceled), Instant::now());
                Forwarded::Gone
            }
            Unconnected::Replied(reply) => {
                self.reply(client, tally, filtering, reply, has_more).await
            }
            unconnected => {
                let refusal = unconnected.refusal();
                self.refuse(client, tally, filtering, refusal, has_more)
                    .await
            }
        }
    }

    /// Answers for a destination that did not.
    #[cold]
    pub(super) async fn refuse<T: Transport>(
        &self,
        client: &mut Client<T>,
        tally: Tally<'_>,
        filtering: Filtering,
        refusal: (ForwardErrorKind, StatusCode),
        has_more: bool,
    ) -> Forwarded {
        self.refuse_from(client, tally, filtering, refusal, has_more, None)
            .await
    }

    /// Answers in place of a destination that did answer, and has this address.
    #[cold]
    async fn refuse_from<T: Transport>(
        &self,
        client: &mut Client<T>,
        tally: Tally<'_>,
        mut filtering: Filtering,
        (kind, status): (ForwardErrorKind, StatusCode),
        has_more: bool,
        upstream: Option<SocketAddr>,
    ) -> Forwarded {
        let is_last = has_more || !self.request.is_persistent() || client.is_closing();
        let said = if filtering.is_interested() {
            let answer = Answer::Status(status);
            self.write_answer(client, &mut filtering, answer, is_last)
        } else {
            let is_head = self.request.method() == Method::Head;
            let sent = write_own(status, is_head, is_last, self.plan, &mut client.output);
            Said { status, sent }
        };
        let about = About {
            error: Some(kind),
            upstream,
        };
        self.say(client, tally, said, about, (has_more, is_last))
            .await
    }

    /// Answers as a filter says.
    #[cold]
    pub(super) async fn reply<T: Transport>(
        &self,
        client: &mut Client<T>,
        tally: Tally<'_>,
        mut filtering: Filtering,
        reply: Box<Reply>,
        has_more: bool,
    ) -> Forwarded {
        let is_last = has_more || !self.request.is_persistent() || client.is_closing();
        let said = self.write_answer(client, &mut filtering, Answer::Reply(reply), is_last);
        let about = About::default();
        self.say(client, tally, said, about, (has_more, is_last))
            .await
    }

    /// Writes what the proxy says itself, after the filters that are to be shown it, to the client's output.
    #[cold]
    fn write_answer<T: Transport>(
        &self,
        client: &mut Client<T>,
        filtering: &mut Filtering,
        answer: Answer,
        is_last: bool,
    ) -> Said {
        let (head, text) = filtering.answer(self, client.state.info, answer);
        client.output.clear();
        let sent = write_text(&head, &text, self.request, is_last, &mut client.output);
        Said {
            status: head.status,
            sent,
        }
    }

    /// Sends what is in the client's output, which ends the request.
    #[cold]
    async fn say<T: Transport>(
        &self,
        client: &mut Client<T>,
        mut tally: Tally<'_>,
        Said { status, sent }: Said,
        About {
            error: kind,
            upstream,
        }: About,
        (has_more, is_last): (bool, bool),
    ) -> Forwarded {
        client.state.unread.store(has_more, Relaxed);
        tally.refused(status);
        if let Some(record) = &mut client.record
            && record.draft.is_some()
        {
            let mut info = self.info(&tally, upstream);
            info.error = kind;
            record.answered(status, Some(info));
        }
        if let (Some(record), Some(ForwardErrorKind::RequestBodyClient)) =
            (&mut client.record, kind)
        {
            let allowed = self.allowed(client.state.worker.limits.body_bytes);
            record.body_refused(status, allowed);
        }
        let mut uptake = self.uptake(client.state.worker.limits.data_rate);
        let (mut written, mut before) = (0, 0);
        let wrote = poll_fn(|cx| {
            let slices = [&*client.output, &[]];
            if let Poll::Ready(result) = poll_write_all(&mut client.io, cx, slices, &mut written) {
                return Poll::Ready(result.is_ok());
            }
            let Some(uptake) = &mut uptake else {
                let slow = client.clock.poll_slow_reader(cx, &client.state);
                return slow.map(|()| false);
            };
            if std::mem::replace(&mut before, written) != written {
                uptake.moved();
            }
            ready!(client.clock.poll_due(cx, uptake.due()));
            // It is not to take what it has for the whole.
            client.state.abort.store(true, Relaxed);
            Poll::Ready(false)
        });
        let wrote = pin!(wrote).await;
        client.output.clear();
        tally.end(kind, Instant::now());
        if !wrote {
            return Forwarded::Gone;
        }
        if let Some(record) = &mut client.record {
            record.sent = sent;
            record.outcome = Outcome::Complete;
        }
        Forwarded::Served { keep: !is_last }
    }

    /// Consumes a request that is not sent, as far as it has come. Returns whether there is more of it.
    #[cold]
    pub(super) fn skip_request<T: Transport>(&self, client: &mut Client<T>) -> bool {
        client.input.consume(self.request.head_length());
        let mut body = Body::new(self.request.framing());
        let limits = client.state.worker.limits.head();
        let followed = body.follow(client.input.filled(), &limits, &mut client.table);
        match followed {
            Ok(part) if body.has_ended() => {
                client.input.consume(part.bytes + part.trailers);
                false
            }
            Ok(_) | Err(_) => true,
        }
    }

    #[inline]
    pub(super) fn log<T: Transport>(
        &self,
        client: &mut Client<T>,
        status: StatusCode,
        tally: &Tally<'_>,
        peer: SocketAddr,
    ) {
        if let Some(record) = &mut client.record
            && record.draft.is_some()
        {
            let info = self.info(tally, Some(peer));
            record.answered(status, Some(info));
        }
    }
}
