//! The response to a client, made of what a destination answers.

use std::future::poll_fn;
use std::sync::Arc;
use std::task::Poll;

use http::{Response, StatusCode, response};
use tokio::time::Instant;

use super::filtering::AppliedFilters;
use super::pipeline::Routed;
use super::response as answer;
use super::send::{Attempt, Sending, broken};
use super::upgrade::{Agreed, Upgrade};
use crate::error::{Cause, ForwardError, ForwardErrorKind};
use crate::http1::Framing;
use crate::progress::ClientReadLimit;
use crate::progress::{End, Stage};
use crate::response::ExchangeRecorder;
use crate::response::ProxyBody;
use crate::response::ResponseDownload;
use crate::response::TrailerRules;
use crate::upstream::{Answer, ExchangeError, IncomingBody, RoundTrip};

/// A response that is about to be the client's.
struct Coming {
    /// The head as the destination said it.
    head: Box<response::Parts>,
    body: ComingBody,
}

enum ComingBody {
    Download(Box<ResponseDownload>),
    Tunnel(Box<Agreed>),
}

impl<'a> Routed<'a> {
    /// Sends a request, and puts the client's response into an empty one: moves would be much of the cost.
    /// Returns the two sides of a tunnel, if the response begins one.
    ///
    /// Cancel-safe: dropped, the request is cancelled at the destination.
    pub(super) async fn exchange(
        &self,
        sending: &Sending<'_>,
        upgrade: Box<Upgrade>,
        recorder: &mut ExchangeRecorder,
        filtering: &mut AppliedFilters<'a>,
        response: &mut Response<ProxyBody>,
    ) -> Result<Option<Box<Agreed>>, ForwardError> {
        let place = sending.place();
        let (mut coming, key) = {
            let mut attempt = match sending.connect_now(&place, recorder)? {
                (prepared, Some(lease)) => sending.attempt(prepared, lease)?,
                (prepared, None) => {
                    // Boxed like what follows a failure: most requests need none of it, and would carry its room about.
                    let connecting = Box::pin(sending.connect(prepared, &place, recorder));
                    let (prepared, lease) = connecting.await?;
                    sending.attempt(prepared, lease)?
                }
            };
            match attempt.answered(place.due).await {
                Ok(answer) => {
                    let key = sending.new_key(&attempt);
                    let answered = (answer, attempt);
                    (self.receive(sending, answered, *upgrade, recorder)?, key)
                }
                Err(failed) => {
                    let repeating = sending.repeat(failed, attempt, &place, recorder);
                    let answered = Box::pin(repeating).await?;
                    let key = sending.new_key(&answered.1);
                    (self.receive(sending, answered, *upgrade, recorder)?, key)
                }
            }
        };
        if let ComingBody::Download(download) = &mut coming.body {
            poll_fn(|cx| Poll::Ready(download.begin(cx))).await?;
        }
        let mut head = coming.head;
        let edits = filtering.show(&head)?;
        answer::pass_on(&mut head, &edits, self.route().transforms());
        if let ComingBody::Tunnel(_) = coming.body {
            sending.handshake.announce(&mut head);
        }
        // Behind what the route says, which cannot take it away.
        if let Some(key) = key {
            key.apply_to(&mut head.headers);
        }
        *response = Response::from_parts(*head, ProxyBody::empty());
        match coming.body {
            ComingBody::Download(download) => *response.body_mut() = ProxyBody::download(download),
            ComingBody::Tunnel(agreed) => return Ok(Some(agreed)),
        }
        Ok(None)
    }

    /// The head of a response is there, and maybe its body.
    fn receive(
        &self,
        sending: &Sending<'_>,
        (answer, attempt): (Answer, Attempt),
        upgrade: Upgrade,
        recorder: &mut ExchangeRecorder,
    ) -> Result<Coming, ForwardError> {
        let now = Instant::now();
        attempt.shared.activity.touch_at(now);
        let status = match &answer {
            Answer::Http1(raw) => StatusCode::from_u16(raw.status())
                .map_err(|_| bad_gateway(ForwardErrorKind::Request))?,
            #[cfg(feature = "http2")]
            Answer::Http2(answer) => answer.status(),
        };
        recorder.answered(status, now, attempt.lease.peer());
        let is_agreed = sending.handshake.is_agreed(status);
        if status == StatusCode::SWITCHING_PROTOCOLS && !is_agreed {
            // The proxy did not ask for it, so what follows is not known.
            return Err(bad_gateway(ForwardErrorKind::Request).because(Cause::MalformedResponse));
        }
        #[cfg(feature = "http2")]
        if sending.handshake.is_mistakable(status) {
            return Err(bad_gateway(ForwardErrorKind::ResponseHeaders));
        }
        let trailers = TrailerRules::new(self.state().trailers(), status);
        let Attempt {
            round_trip,
            mut lease,
            shared,
            ..
        } = attempt;
        let (mut head, body, promised) = match (answer, round_trip) {
            (Answer::Http1(raw), RoundTrip::Http1(round_trip)) => {
                let input = &mut lease.raw().ok_or_else(no_response)?.input;
                let text = input.take_head(raw.head_length());
                let made = round_trip.response(&raw, &text);
                let made = made.map_err(|error| broken(ExchangeError::Http1(error)))?;
                let head = Box::new(made.into_parts().0);
                let promised = match raw.framing() {
                    Framing::Length(length) => Some(length),
                    _ => None,
                };
                let connection = lease.raw().ok_or_else(no_response)?;
                let body = round_trip.into_body(&raw, connection);
                (
                    head,
                    IncomingBody::Http1(body, raw.is_persistent()),
                    promised,
                )
            }
            #[cfg(feature = "http2")]
            (Answer::Http2(answer), _) => {
                let (head, body) = answer.into_parts();
                let promised = answer::promised_length(self.head.method_value(), &head);
                (Box::new(head), body, promised)
            }
            #[cfg(feature = "http2")]
            (Answer::Http1(_), RoundTrip::Http2(_)) => return Err(no_response()),
        };
        let progress = Arc::new(shared);
        recorder.limit_client_read(ClientReadLimit::of(
            sending.cluster.upstream().activity_timeout(),
            &progress,
            body.behind(),
        ));
        let body = match is_agreed {
            true => {
                let destination = lease.switch(body);
                ComingBody::Tunnel(Box::new(Agreed {
                    client: sending.handshake.agree(upgrade, &mut head.headers)?,
                    destination: destination.ok_or_else(no_response)?,
                    lease,
                    progress,
                }))
            }
            false if !answer::is_understood(&head.headers) => {
                return Err(End::Unrepresentable.error(Stage::Done));
            }
            false => {
                let download = ResponseDownload::new(body, progress, lease, promised, trailers);
                ComingBody::Download(Box::new(download))
            }
        };
        Ok(Coming { head, body })
    }
}

#[cold]
fn no_response() -> ForwardError {
    bad_gateway(ForwardErrorKind::Request)
}

fn bad_gateway(kind: ForwardErrorKind) -> ForwardError {
    ForwardError::new(kind, StatusCode::BAD_GATEWAY)
}
