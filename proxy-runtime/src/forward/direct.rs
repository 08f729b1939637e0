//! Requests to destinations of HTTP/1.1, written straight from their `http` types.
//!
//! What [`Sending`] does for any request and any destination takes a map of fields of its own, a request made of it, and
//! blocks for what both directions share. Most requests need none of that: their heads are written out of the client's map
//! into the buffer that is sent, and a short response that has come whole needs its connection no longer than it takes to
//! look at it.

use std::future::poll_fn;
use std::ops::Deref;
use std::pin::pin;
use std::sync::Arc;
use std::task::Poll;

use bytes::Bytes;
use http::{Method, Response, StatusCode};
use http_body::Body;
use hyper::ext::ReasonPhrase;
use proxy_model::compiled::Destination;
use tokio::time::Instant;

use super::account::Account;
use super::body::ProxyBody;
use super::download::Download;
use super::error::{ForwardError, ForwardErrorKind};
use super::exchange::Exchange;
use super::request::Framing as TypedFraming;
use super::response::TrailerRules;
use super::send::{Prepared, Sending, broken, too_late, within};
use super::spare;
use super::timeout::{Expired, Patience, after};
use super::upload::RequestBody;
use crate::BoxError;
use crate::engine::HeadPlan;
use crate::engine::typed::{self, TypedRequest, response_head};
use crate::http1::{Asked, FieldValue, Framing, Method as RawMethod, RawResponse};
use crate::server::AddressText;
use crate::state::{DestinationState, InFlight};
use crate::upstream::{ExchangeError, Http1Error, IncomingBody, Lease, Output, Protocols, Written};

/// Bytes of a response that is passed on as a whole: what is copied out of the connection's buffer.
const WHOLE: usize = 8 * 1024 - 1;

/// Fields that a response gets on its way to the client without its map having to grow: what a layer or two add.
const ADDED: usize = 3;

/// A request that is written straight from its `http` types.
#[derive(Clone, Copy)]
pub(super) struct Direct<'a> {
    sending: Sending<'a>,
    plan: &'a HeadPlan,
    framing: Framing,
}

/// What both directions of a request share, if both of them are there.
enum Shared {
    Not(Exchange),
    Between(Arc<Exchange>),
}

/// A request that was not answered.
struct Unanswered {
    error: ForwardError,
    /// Its head and its body, if no byte of it was sent.
    unsent: Option<(Output, RequestBody)>,
}

impl<'a> Direct<'a> {
    /// `None` if it is a request for [`Sending`]. What is to be sent has no edits of filters and no wish to switch.
    pub(super) fn of(sending: Sending<'a>, plan: Option<&'a HeadPlan>) -> Option<Self> {
        let plan = plan?;
        (sending.state.speaks_http1() && typed::can_be_written(&sending.head)).then(|| Self {
            framing: typed::framing(sending.head.headers(), sending.framing),
            sending,
            plan,
        })
    }

    /// Sends the request, and waits for the head of the response.
    ///
    /// Cancel-safe: dropped, the request is cancelled at the destination.
    pub(super) async fn run<B>(
        &self,
        body: B,
        account: &mut Account,
    ) -> Result<Response<ProxyBody>, ForwardError>
    where
        B: Body<Data = Bytes> + Send + 'static,
        B::Error: Into<BoxError>,
    {
        let sending = &self.sending;
        let deadline = sending
            .route
            .timeout()
            .map(|wait| after(sending.started, wait));
        let make = |destination: &Destination| self.write(destination);
        let (prepared, mut lease) = sending.connect(account, deadline, &make).await?;
        let Prepared {
            picked,
            picked_at,
            connected_at,
            head,
            ..
        } = prepared;
        let destination = sending.state.destination(picked.index);
        let shared = Shared::Not(Exchange::new(
            InFlight::new(Arc::clone(destination), picked.in_flight),
            sending.cluster.upstream().activity_timeout(),
            connected_at,
        ));
        let (shared, body) = match sending.framing {
            TypedFraming::Empty => (shared, RequestBody::empty()),
            _ => {
                let shared = shared.into_arc();
                let body = sending.body(body, &shared, None);
                (Shared::Between(shared), body)
            }
        };
        let mut written = self.written(&mut lease, head, body)?;
        let waited = self.wait(&mut lease, &mut written, &shared, deadline).await;
        let response = match waited {
            Ok(response) => response,
            Err(error) => {
                let unanswered = unanswered(error, written, &shared);
                let again = self.again(unanswered, lease, destination, &shared, deadline);
                // Boxed, since it is seldom needed.
                let response;
                (response, written, lease) = Box::pin(again).await?;
                response
            }
        };
        let now = Instant::now();
        shared.activity.touch_at(now);
        let status = StatusCode::from_u16(response.status()).map_err(|_| bad_gateway())?;
        account.answered(
            status,
            now.saturating_duration_since(picked_at),
            lease.peer(),
        );
        self.pass_on(&response, written, lease, shared, now).await
    }

    /// The head, for a destination.
    fn write(&self, destination: &Destination) -> Result<Output, ForwardError> {
        let head = &self.sending.head;
        let remote = head.connection().remote;
        let remote = remote.map(|remote| AddressText::new(remote.ip()));
        let request = TypedRequest {
            head,
            route: self.sending.route,
            plan: self.plan,
            framing: self.framing,
            remote: remote
                .as_ref()
                .and_then(|remote| FieldValue::new(remote.as_bytes())),
        };
        let mut out = Output::lend();
        let written = request.write(destination, &mut out);
        written.map_err(|_| {
            ForwardError::new(ForwardErrorKind::RequestCreation, StatusCode::BAD_GATEWAY)
        })?;
        Ok(out)
    }

    fn written(
        &self,
        lease: &mut Lease,
        head: Output,
        body: RequestBody,
    ) -> Result<Written, ForwardError> {
        // A cluster of which all destinations are spoken to in HTTP/1.1 has no other connections.
        let connection = lease.raw().ok_or_else(bad_gateway)?;
        let asked = Asked {
            method: match *self.sending.head.method_value() {
                Method::HEAD => RawMethod::Head,
                _ => RawMethod::Other,
            },
            upgrade: false,
        };
        Ok(Written::new(connection, head, self.framing, body, asked))
    }

    /// Waits for the head of the response, for no longer than the exchange may be idle, nor beyond `deadline`.
    async fn wait(
        &self,
        lease: &mut Lease,
        written: &mut Written,
        exchange: &Exchange,
        deadline: Option<Instant>,
    ) -> Result<RawResponse, Failed> {
        let mut patience = pin!(Patience::new(&exchange.activity, deadline));
        poll_fn(|cx| {
            let Some(connection) = lease.raw() else {
                return Poll::Ready(Err(Failed::Sent(Http1Error::NoResponse)));
            };
            match written.poll_head(connection, cx) {
                Poll::Ready(answered) => Poll::Ready(answered.map_err(Failed::Sent)),
                Poll::Pending => patience
                    .as_mut()
                    .poll_expired(cx)
                    .map(|expired| Err(Failed::Expired(expired))),
            }
        })
        .await
    }

    /// Sends the request over another connection to the same destination, if no byte of it was sent over the first one.
    async fn again(
        &self,
        unanswered: Unanswered,
        lease: Lease,
        destination: &Arc<DestinationState>,
        shared: &Shared,
        deadline: Option<Instant>,
    ) -> Result<(RawResponse, Written, Lease), ForwardError> {
        let Some((head, body)) = unanswered.unsent else {
            return Err(unanswered.error);
        };
        // The new connection may need its place.
        drop(lease);
        let acquired = self.sending.acquire(destination, Protocols::Http1, true);
        let mut lease = within(deadline, acquired).await?;
        let mut written = self.written(&mut lease, head, body)?;
        match self.wait(&mut lease, &mut written, shared, deadline).await {
            Ok(response) => Ok((response, written, lease)),
            Err(failed) => Err(failed.into_error(shared)),
        }
    }

    /// Makes the client's response of the destination's.
    async fn pass_on(
        &self,
        raw: &RawResponse,
        written: Written,
        mut lease: Lease,
        shared: Shared,
        now: Instant,
    ) -> Result<Response<ProxyBody>, ForwardError> {
        let head_length = raw.head_length();
        let input = &mut lease.raw().ok_or_else(bad_gateway)?.input;
        let whole = match raw.framing() {
            // Nobody asked for it, so nobody knows what follows.
            Framing::Tunnel => return Err(bad_gateway()),
            Framing::None => Some(head_length),
            Framing::Length(length) => usize::try_from(length)
                .ok()
                .and_then(|length| length.checked_add(head_length))
                .filter(|whole| *whole <= WHOLE && *whole <= input.filled().len()),
            Framing::Chunked | Framing::UntilClose => None,
        };
        let whole = whole.filter(|_| written.is_sent());
        // Head and body in one block, where that is all.
        let text = input.take_head(whole.unwrap_or(head_length));
        let table = written.table().ok_or_else(bad_gateway)?;
        let head = response_head(raw, &text, table, self.plan, ADDED);
        let (status, fields) = head.ok_or_else(bad_gateway)?;
        let reason = raw.reason().get(&text);
        let reason = match status.canonical_reason().map(str::as_bytes) == Some(reason) {
            true => None,
            false => Some(ReasonPhrase::try_from(reason).map_err(|_| bad_gateway())?),
        };
        let body = match whole {
            Some(_) => {
                if raw.is_persistent() {
                    lease.give_back(now);
                }
                let content = text.slice(head_length..);
                if !content.is_empty() {
                    shared.in_flight().metrics().received(content.len() as u64);
                }
                ProxyBody::text(content)
            }
            None => {
                let promised = match raw.framing() {
                    Framing::Length(length) => Some(length),
                    _ => None,
                };
                let incoming = IncomingBody::Http1(written.into_body(raw));
                let exchange = shared.into_arc();
                let trailers = TrailerRules::default();
                let mut download = Download::new(incoming, exchange, lease, promised, trailers);
                download.begin().await?;
                ProxyBody::download(download)
            }
        };
        let mut response = Response::new(body);
        *response.status_mut() = status;
        *response.headers_mut() = fields;
        *response.extensions_mut() = spare::extensions();
        if let Some(reason) = reason {
            response.extensions_mut().insert(reason);
        }
        Ok(response)
    }
}

/// Why waiting for a response ended without one.
enum Failed {
    Expired(Expired),
    Sent(Http1Error),
}

impl Failed {
    fn into_error(self, exchange: &Exchange) -> ForwardError {
        match self {
            Self::Expired(Expired::Idle) => exchange.upload.timed_out(),
            Self::Expired(Expired::Deadline) => too_late(),
            Self::Sent(error) => broken(ExchangeError::Http1(error), exchange),
        }
    }
}

fn unanswered(failed: Failed, written: Written, exchange: &Exchange) -> Unanswered {
    if let Some(error) = exchange.upload.failure() {
        let unsent = None;
        return Unanswered { error, unsent };
    }
    let unsent = match &failed {
        Failed::Sent(error) => written.into_unsent(error),
        Failed::Expired(_) => None,
    };
    Unanswered {
        error: failed.into_error(exchange),
        unsent,
    }
}

fn bad_gateway() -> ForwardError {
    ForwardError::new(ForwardErrorKind::Request, StatusCode::BAD_GATEWAY)
}

impl Shared {
    fn into_arc(self) -> Arc<Exchange> {
        match self {
            Self::Not(exchange) => Arc::new(exchange),
            Self::Between(exchange) => exchange,
        }
    }
}

impl Deref for Shared {
    type Target = Exchange;

    fn deref(&self) -> &Exchange {
        match self {
            Self::Not(exchange) => exchange,
            Self::Between(exchange) => exchange,
        }
    }
}
