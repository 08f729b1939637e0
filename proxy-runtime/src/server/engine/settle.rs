//! The end of an exchange, well or not, and responses of the proxy's own.

use std::net::SocketAddr;

use http::StatusCode;
use http::response::Parts;
use tokio::time::Instant;

use super::Forwarded;
use super::connect::{Link, Unconnected};
use super::downstream::{Download, Downstream, FlowOf};
use super::failure::Failure;
use super::filtering::{Answer, Filtering};
use super::resolved_route::ResolvedRoute;
use super::tally::Tally;
use crate::error::ForwardErrorKind;
use crate::server::Outcome;
use crate::spare::Lend;
use crate::upstream::Http1Connection;

/// How an exchange left the client's connection.
#[derive(Clone, Copy)]
pub(super) struct Ended {
    /// The next request may follow.
    pub(super) keep: bool,
    /// The request was not read to its end.
    has_more: bool,
    /// The destination, if the exchange did not come to its end.
    upstream: Option<SocketAddr>,
}

/// The reason for a response of the proxy's own.
#[derive(Clone, Copy, Default)]
struct About {
    error: Option<ForwardErrorKind>,
    /// The destination that had answered.
    upstream: Option<SocketAddr>,
}

impl ResolvedRoute<'_> {
    /// Counts what went through, and puts away what the next request can use.
    #[inline]
    pub(super) fn settle<D: Downstream>(
        &self,
        down: &mut D,
        mut link: Link,
        mut flow: Box<FlowOf<D>>,
        failure: Option<&Failure>,
        now: Instant,
    ) -> Ended {
        let is_clean = |connection: &mut Http1Connection| connection.input.is_empty();
        let upstream = match failure {
            None => None,
            Some(failure) => {
                if let Failure::Cut(_) = failure {
                    down.cut(&mut flow.download);
                }
                link.lease.raw().map(|connection| connection.peer)
            }
        };
        if failure.is_none() && flow.is_reusable() && link.lease.raw().is_some_and(is_clean) {
            link.lease.give_back(now);
        }
        flow.count(&link.picked.in_flight, down.record());
        if let Some(record) = down.record()
            && flow.download.is_done()
        {
            record.outcome = Outcome::Complete;
        }
        let has_more = !flow.has_read_request();
        let keep = down.served(has_more, now);
        flow.outbound.rest();
        flow.download.rest();
        D::flows().keep(flow);
        Ended {
            keep,
            has_more,
            upstream,
        }
    }

    /// Ends an exchange that did not come to its end.
    #[cold]
    pub(super) async fn fail<D: Downstream>(
        &self,
        down: &mut D,
        mut tally: Tally<'_>,
        filtering: Filtering,
        failure: Failure,
        ended: Ended,
    ) -> Forwarded {
        let mut about = About::default();
        let (kind, status) = match failure {
            Failure::Withheld(status, kind, instead) => {
                tally.answered(status, Instant::now());
                about.upstream = ended.upstream;
                (kind, instead)
            }
            Failure::Unsent | Failure::Stale => {
                (ForwardErrorKind::Request, StatusCode::BAD_GATEWAY)
            }
            Failure::Unanswered(kind, status) => (kind, status),
            Failure::Cut(kind) => {
                if let Some(record) = down.record() {
                    record.outcome = Outcome::Failed;
                    if let Some(draft) = &mut record.draft {
                        draft.failed(Some(kind));
                    }
                }
                tally.end(Some(kind), Instant::now());
                return Forwarded::Gone;
            }
            Failure::Gone(kind) => {
                tally.end(Some(kind), Instant::now());
                return Forwarded::Gone;
            }
        };
        about.error = Some(kind);
        let answer = Answer::Status(status);
        self.answer(down, tally, filtering, answer, about, ended.has_more)
            .await
    }

    /// Ends a request for which there is no connection, be it that a filter has answered it.
    #[cold]
    pub(super) async fn give_up<D: Downstream>(
        &self,
        down: &mut D,
        tally: Tally<'_>,
        filtering: Filtering,
        unconnected: Unconnected,
        has_more: bool,
    ) -> Forwarded {
        match unconnected {
            Unconnected::Gone => {
                down.gone();
                tally.end(Some(ForwardErrorKind::RequestCanceled), Instant::now());
                Forwarded::Gone
            }
            Unconnected::Replied(reply) => {
                let (answer, about) = (Answer::Reply(reply), About::default());
                self.answer(down, tally, filtering, answer, about, has_more)
                    .await
            }
            unconnected => {
                let refusal = unconnected.refusal();
                self.refuse(down, tally, filtering, refusal, has_more).await
            }
        }
    }

    /// Answers for a destination that did not.
    #[cold]
    pub(super) async fn refuse<D: Downstream>(
        &self,
        down: &mut D,
        tally: Tally<'_>,
        filtering: Filtering,
        (kind, status): (ForwardErrorKind, StatusCode),
        has_more: bool,
    ) -> Forwarded {
        let about = About {
            error: Some(kind),
            upstream: None,
        };
        let answer = Answer::Status(status);
        self.answer(down, tally, filtering, answer, about, has_more)
            .await
    }

    /// Sends what the proxy says itself, after the filters that are to be shown it. That ends the request.
    #[cold]
    async fn answer<D: Downstream>(
        &self,
        down: &mut D,
        mut tally: Tally<'_>,
        mut filtering: Filtering,
        answer: Answer,
        about: About,
        has_more: bool,
    ) -> Forwarded {
        let (head, text) = filtering.answer(self, down.state().info, answer);
        self.told(down, &mut tally, &head, about);
        let uptake = self.uptake(down.state().worker.limits.data_rate);
        let said = down.say(head, text, has_more, uptake).await;
        tally.end(about.error, Instant::now());
        let Some(said) = said else {
            return Forwarded::Gone;
        };
        if let Some(record) = down.record() {
            record.sent = said.sent;
            record.outcome = Outcome::Complete;
        }
        Forwarded::Served { keep: said.keep }
    }

    /// Notes what the client is told.
    fn told<D: Downstream>(&self, down: &mut D, tally: &mut Tally<'_>, head: &Parts, about: About) {
        let status = head.status;
        tally.refused(status);
        let allowed = self.allowed(down.state().worker.limits.body_bytes);
        let Some(record) = down.record() else { return };
        if record.draft.is_some() {
            let mut info = self.info(tally, about.upstream);
            info.error = about.error;
            record.answered(status, Some(info));
        }
        if about.error == Some(ForwardErrorKind::RequestBodyClient) {
            record.body_refused(status, allowed);
        }
    }
}
