//! The loop of a connection over its requests, and the end of the connection.

use std::future::poll_fn;
use std::io;
use std::pin::pin;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::task::Poll;

use bytes::Bytes;
use http::{Request, StatusCode};
use proxy_model::compiled::RouteIndex;
use tokio::io::AsyncWriteExt;
use tokio::task::coop::consume_budget;
use tokio::time::Instant;

use super::body_channel::BodySender;
use super::client::{CLOSING, Client, HeadRead};
use super::date::write_date;
use super::dispatch::{Dispatch, NextStep, UnreadWatch};
use super::fields::{ChosenFields, read_request, read_valid};
use super::response::ResponseContext;
use crate::connection::ConnectionInfo;
use crate::forward::RouteContext;
use crate::forward::exchange::downstream::Record;
use crate::forward::recycled::{self, Kind};
use crate::http1::{Framing, RawRequest, Rejection};
use crate::observe::targets;
use crate::server::access_log::Draft;
use crate::server::connection::{
    ConnectionState, RequestBody, RequestRecord, ResponseRules, ServiceCall, Transport, after,
};
use crate::server::engine::{Forwarded, Http1Downstream};
use crate::server::handler::{Handler, Served};
use crate::server::metrics::WorkerMetrics;
use crate::server::mode::Mode;
use crate::server::outcome::Outcome;
use crate::server::validation::{self, ValidRequest};
use crate::stream::write_all;
use crate::stream::{OnUpgrade, Switch};

/// The response to a head that timed out (RFC 9110 section 15.5.9).
const TIMEOUT: &[u8] =
    b"HTTP/1.1 408 Request Timeout\r\nconnection: close\r\ncontent-length: 0\r\n\r\n";

/// The end of a connection.
enum ConnectionEnd {
    /// Write the output buffer and close.
    Close,
    /// Close after a response.
    Answered {
        /// True if the client requested the close.
        is_asked: bool,
    },
    /// Drop the connection.
    Drop,
    Tunnel(Switch),
    #[cfg(feature = "http2")]
    Http2,
}

/// Serves a connection until it ends.
///
/// Cancel safe: dropping the future closes the connection.
#[expect(
    clippy::manual_async_fn,
    reason = "an async fn holds its arguments twice, and this is most of what an idle connection costs"
)]
pub(crate) fn serve<T, H>(mut client: Client<T>, service: Rc<Served<H>>) -> impl Future<Output = ()>
where
    T: Transport,
    H: Handler,
{
    async move {
        match serve_requests(&mut client, &service).await {
            ConnectionEnd::Drop => {}
            ConnectionEnd::Close => close(&mut client).await,
            ConnectionEnd::Answered { is_asked } => {
                // A client that did not ask for the close may have sent another request. Closing
                // with unread data resets the connection, and the reset discards the response (RFC
                // 9112 section 9.6).
                if !is_asked || poll_fn(|cx| Poll::Ready(client.has_unread(cx))).await {
                    client.state.unread.store(true, Relaxed);
                }
                close(&mut client).await;
            }
            ConnectionEnd::Tunnel(switch) => {
                client.state.begin_tunnel(client.input.filled().len());
                client.state.hold_nothing();
                switch.complete(client.io, client.input);
            }
            #[cfg(feature = "http2")]
            ConnectionEnd::Http2 => Box::pin(serve_http2(client, service)).await,
        }
    }
}

#[cfg(feature = "http2")]
async fn serve_http2<T, H>(client: Client<T>, service: Rc<Served<H>>)
where
    T: Transport,
    H: Handler,
{
    let (mut io, mut input, state) = client.into_parts();
    state.hold_nothing();
    let read = input.filled().len();
    // The preface has already been read: the HTTP/2 code reads it again.
    io.read_again(input.take(read));
    drop(input);
    crate::server::http2::serve(io, service, state).await;
}

/// Serves requests until the connection ends.
async fn serve_requests<T, H>(client: &mut Client<T>, served: &Served<H>) -> ConnectionEnd
where
    T: Transport,
    H: Handler,
{
    loop {
        if !client.input.is_empty() {
            // Pipelined requests that need no other event would otherwise be served without ever
            // yielding.
            consume_budget().await;
        }
        let mut request = RawRequest::unread();
        match poll_fn(|cx| client.poll_head(cx, &mut request)).await {
            HeadRead::Request => {}
            HeadRead::Rejected(rejection) => {
                reject(client, rejection);
                return ConnectionEnd::Close;
            }
            HeadRead::TimedOut(since) => {
                time_out(client, since);
                return ConnectionEnd::Close;
            }
            HeadRead::Ended => return ConnectionEnd::Close,
            HeadRead::Evicted => return ConnectionEnd::Drop,
            #[cfg(feature = "http2")]
            HeadRead::Http2 => return ConnectionEnd::Http2,
        }
        // First, so that neither the log nor a service sees fields that clients must not set.
        let head = client.input.filled();
        let reported = validation::resolve_client(head, &mut client.table, &client.state.info);
        begin(client, &request, reported);
        let mut found = None;
        // Requests that need no `http` types take the byte path.
        if let Some(engine) = served.handler.engine()
            && validate(client, &request) == Ok(ValidRequest::AsSent)
            && Http1Downstream::<T>::can_forward(&request)
        {
            let down = Http1Downstream::new(client, &request);
            match down.forward(engine).await {
                Forwarded::Typed(route) => {
                    found = route;
                    note_route(client, served, route);
                }
                Forwarded::Served { keep } => {
                    // Dropped here, so that its line is logged before the next request is read.
                    client.record = None;
                    if keep {
                        continue;
                    }
                    return answered(&request);
                }
                Forwarded::Disconnected => return ConnectionEnd::Drop,
            }
        }
        // Boxed, so that idle connections have no memory for it.
        match Box::pin(serve_typed(client, served, &request, found)).await {
            (NextStep::Request, _) => {}
            (NextStep::Close, _) => return answered(&request),
            (NextStep::Drop, _) => return ConnectionEnd::Drop,
            (NextStep::Tunnel, switch) => {
                return switch.map_or(ConnectionEnd::Drop, ConnectionEnd::Tunnel);
            }
        }
    }
}

/// Notes the route of a request that is served over `http` types, for the log of a client that leaves.
fn note_route<T, H>(client: &mut Client<T>, served: &Served<H>, route: Option<RouteIndex>)
where
    T: Transport,
    H: Handler,
{
    // Asked again: a future that keeps what it was asked before is larger.
    if let (Some(index), Some(record)) = (route, &mut client.record)
        && record.wants_info()
        && let Some(engine) = served.handler.engine()
    {
        record.left(engine.info(index));
    }
}

/// The end after the response to the last request.
fn answered(request: &RawRequest) -> ConnectionEnd {
    let is_asked = !request.is_persistent();
    ConnectionEnd::Answered { is_asked }
}

/// Validates a request.
#[inline]
fn validate<T: Transport>(
    client: &Client<T>,
    request: &RawRequest,
) -> Result<ValidRequest, validation::RequestRejection> {
    let state = &client.state;
    let (limits, rules) = (&state.worker.limits, state.info.rules);
    let head = client.input.filled();
    state.validate(request.authority().get(head))?;
    validation::validate_http1(head, request, limits, rules)
}

/// Begins the record of a request.
#[inline]
fn begin<T: Transport>(
    client: &mut Client<T>,
    request: &RawRequest,
    reported: Option<Box<ConnectionInfo>>,
) {
    let state = &client.state;
    // The last allowed request: its response announces the close.
    if state.begin_request() >= state.worker.limits.requests_per_connection {
        state.retire();
    }
    client.clock.begin_exchange();
    let record = client
        .record
        .insert(RequestRecord::new(Arc::clone(&client.state)));
    if reported.is_some() {
        record.report_client(reported);
    }
    if client.state.worker.access_log.is_some() {
        begin_line(client, request);
    }
}

/// Begins the line of a request for the access log.
// Apart, for servers without one.
#[inline(never)]
fn begin_line<T: Transport>(client: &mut Client<T>, request: &RawRequest) {
    let Some(record) = &mut client.record else {
        return;
    };
    // Parsed for the log only: the byte path needs no `http` types.
    let head = Bytes::copy_from_slice(&client.input.filled()[..request.head_length()]);
    let mut read = Request::new(());
    let logged = ChosenFields::Logged;
    if read_request(&head, request, &client.table, logged, &mut read).is_ok() {
        let (parts, ()) = read.into_parts();
        record.draft = Some(Box::new(Draft::new(&parts, *record.info())));
        recycled::release(Kind::Logged, parts.headers, parts.extensions);
    }
}

/// Serves a request over `http` types.
async fn serve_typed<T, H>(
    client: &mut Client<T>,
    served: &Served<H>,
    request: &RawRequest,
    found: Option<RouteIndex>,
) -> (NextStep, Option<Switch>)
where
    T: Transport,
    H: Handler,
{
    let Some(record) = client.record.take() else {
        return (NextStep::Drop, None);
    };
    let mut dispatch = Dispatch {
        sender: None,
        response_context: ResponseContext::of(request),
        limits: client.state.worker.limits.head(),
        watch: UnreadWatch::default(),
    };
    let mut switch = None;
    let mut body = pin!(None);
    // The call ends with this block, and frees what it holds.
    let answered = {
        let call = pin!(ask(
            client,
            (&served.handler, found),
            request,
            record,
            &mut dispatch.sender,
            &mut switch,
        ));
        dispatch.wait(client, call, body.as_mut()).await
    };
    let Some((head, length)) = answered else {
        return (NextStep::Drop, None);
    };
    let begun = dispatch.begin(client, head, length);
    (dispatch.write(client, begun, body).await, switch)
}

/// Converts a request to `http` types and calls the service. Sets `sender` to the channel for the
/// rest of the body, and `switch` if the protocol may be switched.
fn ask<T: Transport, H: Handler>(
    client: &mut Client<T>,
    (handler, found): (&H, Option<RouteIndex>),
    request: &RawRequest,
    record: RequestRecord,
    sender: &mut Option<BodySender>,
    switch: &mut Option<Switch>,
) -> ServiceCall<H> {
    let valid = validate(client, request);
    let head = client.input.take_head(request.head_length());
    // Filled in place: moving a request is expensive.
    let mut asked = None;
    let made = asked.insert(Request::new(RequestBody::empty()));
    let read = valid.and_then(|valid| read_valid(&head, request, &client.table, valid, made));
    let (rest, body) = receive(client, request);
    *sender = rest;
    client.input.rest();
    // A body would precede the tunnel; such a request is served without the upgrade.
    let can_switch = request.upgrade().is_some() && request.framing().is_empty();
    let rules = ResponseRules::of_raw(request, can_switch);
    if let Err(rejection) = read {
        return ServiceCall::rejected(rejection, rules, record);
    }
    if can_switch {
        let (on_upgrade, offered) = OnUpgrade::new();
        made.extensions_mut().insert(on_upgrade);
        *switch = Some(offered);
    }
    *made.body_mut() = body;
    if handler.engine().is_none() {
        // Only a proxy reads the context; other services should not see it.
        made.extensions_mut().remove::<RouteContext>();
    }
    ServiceCall::of(handler, (&mut asked, found), rules, record)
}

/// The body of a request, and the channel for it unless all of it was received.
fn receive<T: Transport>(
    client: &mut Client<T>,
    request: &RawRequest,
) -> (Option<BodySender>, RequestBody) {
    match request.framing() {
        // The whole body has arrived: no channel is needed.
        Framing::Length(length @ 1..) if client.input.filled().len() as u64 >= length => {
            let whole = client.input.take(length as usize);
            (None, RequestBody::whole(whole, &client.state))
        }
        framing if framing.is_empty() => (None, RequestBody::empty()),
        _ => {
            let (sender, reader) = BodySender::new(request);
            let body = RequestBody::streamed(reader, &client.state);
            (Some(sender), body)
        }
    }
}

/// Writes the response to an invalid request.
fn reject<T: Transport>(client: &mut Client<T>, rejection: Rejection) {
    let state = &client.state;
    WorkerMetrics::add(&state.metrics().malformed);
    tracing::debug!(
        target: targets::SERVER,
        remote = ?state.info.remote,
        reason = %rejection,
        "a request cannot be read"
    );
    let text = rejection.to_string();
    let status = rejection.status();
    log_rejected_head(
        state,
        Instant::now(),
        (status, rejection.reason()),
        text.len(),
    );
    let out = &mut client.output;
    let reason = status.canonical_reason().unwrap_or_default();
    out.extend_from_slice(format!("HTTP/1.1 {} {reason}\r\n", status.as_str()).as_bytes());
    if status == StatusCode::METHOD_NOT_ALLOWED {
        out.extend_from_slice(format!("allow: {}\r\n", validation::ALLOWED_METHODS).as_bytes());
    }
    out.extend_from_slice(
        b"content-type: text/plain; charset=utf-8\r\nconnection: close\r\ndate: ",
    );
    write_date(out);
    out.extend_from_slice(format!("\r\ncontent-length: {}\r\n\r\n{text}", text.len()).as_bytes());
    // More bytes of the client may follow, so the close must linger.
    state.unread.store(true, Relaxed);
}

/// Writes the response to a head that began at `since` and timed out.
fn time_out<T: Transport>(client: &mut Client<T>, since: Instant) {
    let state = &client.state;
    let why = (
        StatusCode::REQUEST_TIMEOUT,
        "the request's head took too long",
    );
    log_rejected_head(state, since, why, 0);
    client.output.extend_from_slice(TIMEOUT);
    match state.worker.mode() {
        // The rest of the head is not waited for.
        Mode::Draining => client.input.consume(client.input.filled().len()),
        // It may still arrive, so the close must linger.
        Mode::Serving | Mode::Full => state.unread.store(true, Relaxed),
    }
}

/// Logs an invalid request. `sent`: length of the response body.
fn log_rejected_head(
    state: &ConnectionState,
    since: Instant,
    (status, reason): (StatusCode, &'static str),
    sent: usize,
) {
    state.count_rejection(status);
    if let Some(log) = &state.worker.access_log {
        let draft = Draft::malformed(state.info, since, status, reason);
        draft.finish(log.as_ref(), 0, sent as u64, Outcome::Complete);
    }
}

/// Writes the output buffer, and closes the connection so that the client can still read it
/// (lingering close).
async fn close<T: Transport>(client: &mut Client<T>) {
    // A close with unread input would become a reset, which discards the response.
    if !client.input.is_empty() {
        client.state.unread.store(true, Relaxed);
    }
    let Client {
        io, output, clock, ..
    } = client;
    if output.is_empty() && !io.lingers_on_close() {
        return;
    }
    let deadline = after(Instant::now(), CLOSING);
    let closing = async {
        write_all(io, output, &[]).await?;
        if io.lingers_on_close() {
            io.shutdown().await?;
        }
        Ok::<_, io::Error>(())
    };
    let mut closing = Box::pin(closing);
    // An error means that the client has disconnected.
    poll_fn(|cx| match closing.as_mut().poll(cx) {
        Poll::Ready(_) => Poll::Ready(()),
        Poll::Pending => clock.poll_due(cx, deadline),
    })
    .await;
}
