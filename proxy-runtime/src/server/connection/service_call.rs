//! Calls of the service for requests of a connection: contains panics, and completes the responses.

use std::convert::Infallible;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
#[cfg(feature = "http2")]
use http::Method;
#[cfg(feature = "http2")]
use http::header::TE;
use http::header::{ALLOW, CONNECTION, CONTENT_TYPE, HeaderMap, HeaderValue};
#[cfg(feature = "http2")]
use http::request::Parts;
use http::{Request, Response, StatusCode, response};
use http_body::Body;
use log_sink::Seldom;
use pin_project_lite::pin_project;
use proxy_model::compiled::RouteIndex;

use super::record::{BODY_REJECTED, RequestRecord};
use super::request_body::{BodyMeter, RequestBody};
use super::response_body::{Expected, ResponseBody};
use super::state::ConnectionState;
use crate::BoxError;
use crate::error::{Cause, Dropping, ForwardErrorKind};
#[cfg(feature = "http2")]
use crate::head::LocalReplyMark;
use crate::head::put_in_place;
use crate::http1::{Method as RawMethod, RawRequest};
use crate::observe::{LOG_PAUSE, targets};
use crate::progress::ClientReadLimit;
use crate::response::ExchangeInfo;
use crate::server::handler::Handler;
use crate::server::http1::declared_length;
use crate::server::metrics::WorkerMetrics;
use crate::server::mode::Mode;
use crate::server::validation::{self, RequestRejection};

/// The properties of the request that affect its response.
#[derive(Clone, Copy)]
pub(crate) struct ResponseRules {
    is_head: bool,
    /// The connection may become a tunnel.
    can_switch: bool,
}

impl ResponseRules {
    /// Returns the rules for a request of HTTP/2.
    #[cfg(feature = "http2")]
    pub(crate) fn of(request: &Parts) -> Self {
        Self {
            is_head: request.method == Method::HEAD,
            can_switch: false,
        }
    }

    pub(crate) fn of_raw(request: &RawRequest, can_switch: bool) -> Self {
        Self {
            can_switch,
            is_head: request.method() == RawMethod::Head,
        }
    }
}

pin_project! {
    /// The call of a handler for one request, and its response.
    pub(crate) struct ServiceCall<H>
    where
        H: Handler,
    {
        #[pin]
        step: Step<H::Call>,
        rules: ResponseRules,
        // Taken with the response.
        record: Option<RequestRecord>,
    }
}

pin_project! {
    #[project = StepProjection]
    enum Step<F> {
        Reject { rejection: RequestRejection },
        Called { #[pin] future: F },
        // What is held for the request is free, while its response is still to be written.
        Done,
    }
}

impl<H: Handler> ServiceCall<H> {
    /// To be answered by `handler`, with the route that was found. The request is taken.
    // By reference: what a function or a closure takes and returns is moved, also on the way through `catch_unwind`.
    pub(crate) fn of(
        handler: &H,
        (request, found): (&mut Option<Request<RequestBody>>, Option<RouteIndex>),
        rules: ResponseRules,
        mut record: RequestRecord,
    ) -> Self {
        if let Some(request) = request {
            // The meter outlives the body, which the service takes.
            record.meter = request.body().meter().cloned();
            put_in_place(request.extensions_mut(), *record.info());
        }
        let record = Some(record);
        let mut called = None;
        let unwound = unwinding(&record, || {
            called = request.take().map(|request| handler.call(request, found));
            Poll::Ready(Ok::<_, Infallible>(()))
        });
        let rejection = match unwound {
            Poll::Ready(Err(rejection)) => rejection,
            Poll::Ready(Ok(())) | Poll::Pending => FAILED,
        };
        Self {
            step: match called {
                Some(future) => Step::Called { future },
                None => Step::Reject { rejection },
            },
            rules,
            record,
        }
    }

    /// Creates a call that the server answers itself, without the handler.
    pub(crate) fn rejected(
        rejection: RequestRejection,
        rules: ResponseRules,
        record: RequestRecord,
    ) -> Self {
        Self {
            step: Step::Reject { rejection },
            rules,
            record: Some(record),
        }
    }
}

impl<H: Handler> ServiceCall<H> {
    /// Ends the request, whose client does not get a response for this cause.
    pub(crate) fn give_up(self: Pin<&mut Self>, cause: Cause) {
        let mut this = self.project();
        let _dropping = Dropping::because(cause);
        this.step.set(Step::Done);
        drop(this.record.take());
    }

    /// Ready with the head of the response, whose body is given to `place`. After that it stays pending.
    // Not a future: a response is large, and would be moved more often than the rest of the call costs.
    pub(crate) fn poll(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        place: impl FnOnce(ResponseBody<H::Body>),
    ) -> Poll<response::Parts> {
        let this = self.as_mut().project();
        let mut response = None;
        let answer = match this.step.project() {
            StepProjection::Reject { rejection } => Err(*rejection),
            StepProjection::Called { future } => ready!(unwinding(this.record, || {
                let answered = future.poll(cx);
                answered.map_ok(|answer| response = Some(answer))
            })),
            StepProjection::Done => return Poll::Pending,
        };
        let mut this = self.project();
        this.step.set(Step::Done);
        let record = this
            .record
            .take()
            .expect("a finished response is not polled");
        Poll::Ready(match answer {
            Ok(()) => pass_on(response, *this.rules, record, place),
            Err(rejection) => reject(rejection, record, place),
        })
    }
}

/// The response if the service failed; the reason is logged and not sent.
const FAILED: RequestRejection = RequestRejection::new(
    StatusCode::INTERNAL_SERVER_ERROR,
    "the request could not be processed",
);

/// Polls the service, and turns its errors and panics into a response: one request's bug is not another's.
fn unwinding<T, E: Into<BoxError>>(
    record: &Option<RequestRecord>,
    poll: impl FnOnce() -> Poll<Result<T, E>>,
) -> Poll<Result<T, RequestRejection>> {
    // The service is not called again after a panic: the response ends its future, and each request has its own clone.
    match catch_unwind(AssertUnwindSafe(poll)) {
        Ok(Poll::Pending) => Poll::Pending,
        Ok(Poll::Ready(Ok(value))) => Poll::Ready(Ok(value)),
        Ok(Poll::Ready(Err(error))) => {
            let error: BoxError = error.into();
            static SELDOM: Seldom = Seldom::new(LOG_PAUSE);
            if let Some(left_out) = SELDOM.pass() {
                tracing::error!(target: targets::SERVER, %error, left_out, "the service failed");
            }
            Poll::Ready(Err(FAILED))
        }
        Err(_) => {
            if let Some(record) = record {
                WorkerMetrics::add(&record.connection.metrics().panics);
            }
            static SELDOM: Seldom = Seldom::new(LOG_PAUSE);
            if let Some(left_out) = SELDOM.pass() {
                tracing::error!(target: targets::SERVER, left_out, "the service panicked");
            }
            Poll::Ready(Err(FAILED))
        }
    }
}

/// Returns the service's response with the fields of the connection.
fn pass_on<B: Body<Data = Bytes>>(
    response: Option<Response<B>>,
    rules: ResponseRules,
    mut record: RequestRecord,
    place: impl FnOnce(ResponseBody<B>),
) -> response::Parts {
    let Some(mut response) = response else {
        return reject(FAILED, record, place);
    };
    if let Some(draft) = &mut record.draft {
        draft.responded(&response);
    }
    let info = response.extensions().get::<ExchangeInfo>();
    let is_forwarded = info.is_some();
    let is_cut_short =
        info.and_then(|info| info.error) == Some(ForwardErrorKind::RequestBodyClient);
    match body_rejection(record.meter.as_ref(), response.status()) {
        // A proxy knows why its reading ended, and has answered for its route.
        Some(_) if is_forwarded => {
            record.rejected(RequestRejection::new(response.status(), BODY_REJECTED));
        }
        Some(status) => {
            return reject(RequestRejection::new(status, BODY_REJECTED), record, place);
        }
        None => {}
    }
    if is_cut_short && record.connection.is_http1() {
        // As wherever a request is rejected: what follows may mean something else.
        record.connection.retire();
    }
    let is_switch = response.status() == StatusCode::SWITCHING_PROTOCOLS;
    if response.status().is_informational() && !(is_switch && rules.can_switch) {
        static SELDOM: Seldom = Seldom::new(LOG_PAUSE);
        if let Some(left_out) = SELDOM.pass() {
            tracing::error!(
                target: targets::SERVER,
                status = response.status().as_u16(),
                left_out,
                "the service's response is not one that ends the request"
            );
        }
        return reject(FAILED, record, place);
    }
    if is_switch {
        // The line of the log follows when the tunnel ends.
        record.hand_to_tunnel();
    } else {
        // A 101 keeps its own `Connection: upgrade`.
        announce_close(response.headers_mut(), &record.connection);
    }
    let status = response.status();
    let length = content_length(response.headers(), response.body());
    let expected = Expected {
        // RFC 9110 section 6.4.1.
        is_bodiless: rules.is_head
            || status.is_informational()
            || matches!(status, StatusCode::NO_CONTENT | StatusCode::NOT_MODIFIED),
        length,
        // gRPC does not exist over HTTP/1.1.
        is_exempt: !record.connection.is_http1() && is_grpc(response.headers()),
    };
    let limit = client_read_limit(&response);
    let (head, body) = response.into_parts();
    place(ResponseBody::service(body, record, expected, limit));
    head
}

/// Returns the service's time limit for a client that does not read the response, if there is one.
fn client_read_limit<B>(response: &Response<B>) -> Option<ClientReadLimit> {
    let info = response.extensions().get::<ExchangeInfo>();
    info.and_then(|info| info.read_timeout)
}

/// Returns the status of the server's rejection of the request's body, if the service failed because of it. A
/// service that is no proxy cannot know why reading failed, and responds with 400 or 5xx.
fn body_rejection(meter: Option<&Arc<BodyMeter>>, status: StatusCode) -> Option<StatusCode> {
    let rejection = meter?.rejection()?;
    let is_failure =
        status == rejection || status == StatusCode::BAD_REQUEST || status.is_server_error();
    is_failure.then_some(rejection)
}

/// A local reply: a fixed text, and the end of the connection on HTTP/1, since the sender of such a request may mean
/// something else by the bytes that follow it.
#[cold]
fn reject<B: Body<Data = Bytes>>(
    rejection: RequestRejection,
    mut record: RequestRecord,
    place: impl FnOnce(ResponseBody<B>),
) -> response::Parts {
    record.rejected(rejection);
    record.connection.count_rejection(rejection.status);
    let mut response = Response::new(());
    *response.status_mut() = rejection.status;
    #[cfg(feature = "http2")]
    LocalReplyMark::mark(&mut response);
    let headers = response.headers_mut();
    headers.insert(
        CONTENT_TYPE,
        HeaderValue::from_static("text/plain; charset=utf-8"),
    );
    // RFC 9110 section 15.5.6 requires the field.
    if rejection.status == StatusCode::METHOD_NOT_ALLOWED {
        headers.insert(ALLOW, HeaderValue::from_static(validation::ALLOWED_METHODS));
    }
    if record.connection.is_http1() {
        record.connection.retire();
        headers.insert(CONNECTION, HeaderValue::from_static("close"));
    }
    let text = Bytes::from_static(rejection.reason.as_bytes());
    place(ResponseBody::text(text, record));
    response.into_parts().0
}

/// Announces that no further request will be read, so that the client sends none (RFC 9112 section 9.6).
fn announce_close(headers: &mut HeaderMap, connection: &ConnectionState) {
    let is_closing = connection.is_retiring() || connection.worker.mode() != Mode::Serving;
    if is_closing && connection.is_http1() {
        connection.retire();
        headers.insert(CONNECTION, HeaderValue::from_static("close"));
    }
}

fn content_length(headers: &HeaderMap, body: &impl Body) -> Option<u64> {
    let length = body.size_hint().exact();
    length.or_else(|| declared_length(headers))
}

/// The prefix of the content types of gRPC.
pub(crate) const GRPC: &[u8] = b"application/grpc";

/// Returns true for a response of gRPC, whose streams may be silent without limit.
pub(crate) fn is_grpc(headers: &HeaderMap) -> bool {
    headers
        .get(CONTENT_TYPE)
        .is_some_and(|value| value.as_bytes().starts_with(GRPC))
}

/// Returns true if a request of HTTP/2 is a gRPC call, whose stream may be silent without limit.
///
/// The content type alone is not enough: gRPC clients always send `TE: trailers`, to detect proxies that drop
/// trailers ("gRPC over HTTP2", Requests). Requests of browsers are no gRPC calls: `application/grpc-web` sends one
/// message at a time.
#[cfg(feature = "http2")]
pub(crate) fn is_grpc_call(method: &Method, headers: &HeaderMap) -> bool {
    if *method != Method::POST {
        return false;
    }
    let kind = headers.get(CONTENT_TYPE).map(HeaderValue::as_bytes);
    let rest = kind.and_then(|kind| kind.strip_prefix(GRPC));
    let is_grpc = matches!(rest, Some([] | [b'+' | b';', ..]));
    is_grpc && headers.get(TE).is_some_and(|te| te == "trailers")
}
