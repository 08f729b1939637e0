//! The response to a client, made of what a destination answers.

use std::future::poll_fn;
use std::task::Poll;

use bytes::Bytes;
use http::{HeaderMap, Response, StatusCode, response};
use http_body::Body;
use hyper::ext::ReasonPhrase;
use tokio::time::Instant;

use super::filtering::AppliedFilters;
use super::pipeline::Routed;
use super::recycled::{self, Kind};
use super::response as answer;
use super::send::{Attempt, Sending, broken};
use super::typed::response_head;
use super::upgrade::{Agreed, Upgrade};
use super::writer::Writer;
use crate::BoxError;
use crate::error::{ForwardError, ForwardErrorKind};
use crate::http1::{Framing, RawResponse};
#[cfg(feature = "server")]
use crate::progress::ClientReadLimit;
use crate::progress::{End, SharedProgress, Stage};
use crate::response::ExchangeRecorder;
use crate::response::ProxyBody;
use crate::response::ResponseDownload;
use crate::response::TrailerRules;
use crate::upstream::{Answer, ExchangeError, IncomingBody, RoundTrip};

/// Bytes of a response that is passed on as a whole: what is copied out of the connection's buffer.
const WHOLE: usize = 8 * 1024 - 1;

/// Fields that a response gets on its way to the client without its map having to grow: what a layer or two add.
const ADDED: usize = 3;

/// A response that is about to be the client's.
struct Coming {
    /// The head as the destination said it. None if it is in the client's response already, with all changes of the
    /// route.
    head: Option<Box<response::Parts>>,
    body: ComingBody,
}

enum ComingBody {
    /// All of the body, which is in the client's response already.
    Whole,
    Download(Box<ResponseDownload>),
    Tunnel(Box<Agreed>),
}

impl<'a> Routed<'a> {
    /// Sends a request, and puts the client's response into an empty one: moves would be much of the cost.
    /// Returns the two sides of a tunnel, if the response begins one.
    ///
    /// Cancel-safe: dropped, the request is cancelled at the destination.
    pub(super) async fn exchange<B>(
        &self,
        sending: &Sending<'_>,
        (body, upgrade): (B, Option<Box<Upgrade>>),
        recorder: &mut ExchangeRecorder,
        filtering: &mut AppliedFilters<'a>,
        response: &mut Response<ProxyBody>,
    ) -> Result<Option<Box<Agreed>>, ForwardError>
    where
        B: Body<Data = Bytes> + Send + 'static,
        B::Error: Into<BoxError>,
    {
        let place = sending.place();
        let mut coming = {
            let mut attempt = match sending.connect_now(&place, recorder)? {
                (prepared, Some(lease)) => sending.attempt(prepared, lease, body)?,
                (prepared, None) => {
                    // Boxed like what follows a failure: most requests need none of it, and would carry its room about.
                    let connecting = Box::pin(sending.connect(prepared, &place, recorder));
                    let (prepared, lease) = connecting.await?;
                    sending.attempt(prepared, lease, body)?
                }
            };
            match attempt.answered(place.due).await {
                Ok(answer) => {
                    self.receive(sending, (answer, attempt), upgrade, recorder, response)?
                }
                Err(failed) => {
                    let repeating = sending.repeat(failed, attempt, &place, recorder);
                    let answered = Box::pin(repeating).await?;
                    self.receive(sending, answered, upgrade, recorder, response)?
                }
            }
        };
        if let ComingBody::Download(download) = &mut coming.body {
            poll_fn(|cx| Poll::Ready(download.begin(cx))).await?;
        }
        if let Some(mut head) = coming.head {
            let edits = filtering.show(&head)?;
            answer::pass_on(&mut head, &edits, self.route().transforms());
            if let ComingBody::Tunnel(_) = coming.body {
                sending.handshake.announce(&mut head);
            }
            let body = std::mem::take(response.body_mut());
            *response = Response::from_parts(*head, body);
        }
        match coming.body {
            ComingBody::Whole => {}
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
        upgrade: Option<Box<Upgrade>>,
        recorder: &mut ExchangeRecorder,
        response: &mut Response<ProxyBody>,
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
            return Err(bad_gateway(ForwardErrorKind::Request));
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
                let may_be_whole = round_trip.was_sent() && !is_agreed && !trailers.may_add();
                let whole = whole(&raw, input.filled().len()).filter(|_| may_be_whole);
                // Head and body in one block, where that is all.
                let text = input.take_head(whole.unwrap_or_else(|| raw.head_length()));
                let head = match &sending.writer {
                    Writer::Bytes(writer) => {
                        let table = round_trip.table();
                        let head = response_head(&raw, &text, table, writer.plan, ADDED);
                        put_head(&raw, &text, head, response)?;
                        None
                    }
                    Writer::Fields => {
                        let made = round_trip.response(&raw, &text);
                        let made =
                            made.map_err(|error| broken(ExchangeError::Http1(error), &shared))?;
                        Some(Box::new(made.into_parts().0))
                    }
                };
                if whole.is_some() {
                    if raw.is_persistent() {
                        lease.release(now);
                    }
                    let content = text.slice(raw.head_length()..);
                    put_content(content, sending, &shared, recorder, response);
                    let body = ComingBody::Whole;
                    return Ok(Coming { head, body });
                }
                let promised = match raw.framing() {
                    Framing::Length(length) => Some(length),
                    _ => None,
                };
                let body = IncomingBody::Http1(round_trip.into_body(&raw));
                (head, body, promised)
            }
            #[cfg(feature = "http2")]
            (Answer::Http2(answer), _) => {
                let (head, body) = answer.into_parts();
                let promised = answer::promised_length(self.head.method_value(), &head);
                (Some(Box::new(head)), body, promised)
            }
            #[cfg(feature = "http2")]
            (Answer::Http1(_), RoundTrip::Http2(_)) => return Err(no_response()),
        };
        let progress = shared.into_arc();
        #[cfg(feature = "server")]
        recorder.limit_client_read(ClientReadLimit::of(
            sending.cluster.upstream().activity_timeout(),
            &progress,
            body.behind(),
        ));
        let body = match &mut head {
            Some(head) if is_agreed => {
                let destination = lease.switch(body);
                ComingBody::Tunnel(Box::new(Agreed {
                    client: sending.handshake.agree(upgrade, &mut head.headers)?,
                    destination: destination.ok_or_else(no_response)?,
                    lease,
                    progress,
                }))
            }
            Some(head) if !answer::is_understood(&head.headers) => {
                return Err(End::Unrepresentable.error(Stage::Done));
            }
            _ => {
                let download = ResponseDownload::new(body, progress, lease, promised, trailers);
                ComingBody::Download(Box::new(download))
            }
        };
        Ok(Coming { head, body })
    }
}

/// Returns the length of head and body, if the response is short and within the `filled` bytes of input.
fn whole(raw: &RawResponse, filled: usize) -> Option<usize> {
    match raw.framing() {
        Framing::None => Some(raw.head_length()),
        Framing::Length(length) => usize::try_from(length)
            .ok()
            .and_then(|length| length.checked_add(raw.head_length()))
            .filter(|whole| *whole <= WHOLE && *whole <= filled),
        Framing::Chunked | Framing::UntilClose | Framing::Tunnel => None,
    }
}

/// Puts the head into the client's response. `text` begins with it as it came.
fn put_head(
    raw: &RawResponse,
    text: &Bytes,
    head: Option<(StatusCode, HeaderMap)>,
    response: &mut Response<ProxyBody>,
) -> Result<(), ForwardError> {
    let (status, fields) = head.ok_or_else(no_response)?;
    let reason = raw.reason().get(text);
    let reason = match status.canonical_reason().map(str::as_bytes) == Some(reason) {
        true => None,
        false => Some(ReasonPhrase::try_from(reason).map_err(|_| no_response())?),
    };
    *response.status_mut() = status;
    *response.headers_mut() = fields;
    *response.extensions_mut() = recycled::extensions(Kind::Response);
    if let Some(reason) = reason {
        response.extensions_mut().insert(reason);
    }
    Ok(())
}

/// Puts all of the body into the client's response.
fn put_content(
    content: Bytes,
    #[cfg_attr(
        not(feature = "server"),
        expect(unused_variables, reason = "as with a server")
    )]
    sending: &Sending<'_>,
    progress: &SharedProgress,
    #[cfg_attr(
        not(feature = "server"),
        expect(unused_variables, reason = "as with a server")
    )]
    recorder: &mut ExchangeRecorder,
    response: &mut Response<ProxyBody>,
) {
    if !content.is_empty() {
        progress
            .in_flight()
            .metrics()
            .received(content.len() as u64);
    }
    #[cfg(feature = "server")]
    recorder.limit_client_read(ClientReadLimit::new(
        sending.cluster.upstream().activity_timeout(),
    ));
    *response.body_mut() = ProxyBody::text(content);
}

#[cold]
fn no_response() -> ForwardError {
    bad_gateway(ForwardErrorKind::Request)
}

fn bad_gateway(kind: ForwardErrorKind) -> ForwardError {
    ForwardError::new(kind, StatusCode::BAD_GATEWAY)
}
