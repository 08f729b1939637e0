//! Requests over HTTP/2 that are served over `http` types.

use std::future::poll_fn;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use h2::server::SendResponse;
use h2::{Reason, RecvStream, SendStream};
use http::header::{CONTENT_LENGTH, EXPECT, HeaderMap};
use http::request::Parts;
use http::{Method, Request, Response, StatusCode, response};
use http_body::{Body, Frame};
use proxy_model::compiled::RouteIndex;

use super::body::{Expectation, StreamReader};
use super::client::StreamClient;
use super::fields::{StreamResponseContext, prepare_fields, prepare_head};
use super::room::{Room, StreamSend, Unsent};
use super::streams::Ending;
use super::tunnel::StreamTunnel;
use crate::BoxError;
use crate::error::Cause;
use crate::head::headers::has_token;
use crate::server::access_log::Draft;
use crate::server::connection::Held;
use crate::server::connection::{
    ConnectionState, RequestBody, ResponseBody, ResponseRules, ServiceCall, is_grpc, is_grpc_call,
};
use crate::server::handler::Handler;
use crate::server::http1::declared_length;
use crate::server::validation::RequestRejection;
use crate::stream::recycled::while_taking;
use crate::stream::{OnUpgrade, Switch};

/// Serves one request with `handler`.
///
/// Cancel safe: dropping the future cancels the request.
// A client may have many streams that wait, so the future holds nothing twice, as an async fn does with its arguments
// and each move does that is followed by a wait.
pub(super) fn serve<H: Handler>(
    mut head: Parts,
    client: StreamClient,
    admission: Result<(), RequestRejection>,
    (handler, found): (&H, Option<RouteIndex>),
) -> impl Future<Output = Ending> {
    let StreamClient {
        mut respond,
        body,
        record,
        deadline,
        ..
    } = client;
    async move {
        let connection = record.connection.clone();
        let rules = ResponseRules::of(&head);
        let response_context = StreamResponseContext {
            is_head: head.method == Method::HEAD,
            is_call: is_grpc_call(&head.method, &head.headers),
        };
        let mut tunnel = None;
        let mut rejected = None;
        let has_body = body.is_some();
        let mut expectation = expectation(&head.headers);
        let mut response = pin!(None::<ResponseBody<H::Body>>);
        let answered = {
            let mut call = pin!(match admission {
                Ok(()) if head.method == Method::CONNECT => {
                    // The data of a tunnel follow the response, so the request has no body.
                    tunnel = body.map(|body| (body, offer(&mut head)));
                    let request = Request::from_parts(head, RequestBody::empty());
                    ServiceCall::of(handler, (&mut Some(request), found), rules, record)
                }
                Ok(()) => {
                    let body = match body {
                        Some(body) => {
                            let mut reader =
                                StreamReader::new(body, declared_length(&head.headers));
                            if let Some(expectation) = &expectation {
                                reader.expect_continue(Arc::clone(expectation));
                            }
                            RequestBody::incoming(reader, &connection, response_context.is_call)
                        }
                        None => RequestBody::empty(),
                    };
                    let request = Request::from_parts(head, body);
                    ServiceCall::of(handler, (&mut Some(request), found), rules, record)
                }
                Err(rejection) => {
                    // Until the client has its response, the rest of its body is harmless.
                    rejected = body;
                    ServiceCall::rejected(rejection, rules, record)
                }
            });
            poll_fn(|cx| {
                // The reset is checked first: the service would see it as well, as a body that ended early.
                if has_body && respond.poll_reset(cx).is_ready() {
                    return Poll::Ready(None);
                }
                let place = |made| response.set(Some(made));
                if let Poll::Ready(head) =
                    while_taking(connection.taking(), || call.as_mut().poll(cx, place))
                {
                    return Poll::Ready(Some(head));
                }
                let awaited = expectation.as_ref().map(|body| body.poll_awaited(cx));
                if awaited == Some(Poll::Ready(())) {
                    expectation = None;
                    // A stream that is gone is noticed with the response.
                    let _ = respond.send_informational(continues());
                }
                match has_body {
                    // The reset was polled above.
                    true => Poll::Pending,
                    false => respond.poll_reset(cx).map(|_| None),
                }
            })
            .await
        };
        let (Some(head), Some(mut body)) = (answered, response.as_mut().as_pin_mut()) else {
            return Ending::Reset;
        };
        let ending = match tunnel {
            // Any 2xx accepts the tunnel (RFC 9110 section 9.3.6).
            Some((receive, switch)) if head.status.is_success() => {
                let ends = (respond, receive, switch);
                begin_tunnel(head, ends, &connection, body.take_draft());
                Ending::Settled
            }
            _ => {
                let mut waiting = StreamSend {
                    connection: &connection,
                    deadline: &deadline,
                    room: Room::default(),
                    held: Held::default(),
                    behind: body.behind(),
                    is_exempt: is_grpc(&head.headers),
                    read_timeout: body.read_timeout(true),
                    until: body.until(),
                };
                match send_head(head, &body, &mut respond, response_context) {
                    HeadResult::Begins(stream) => {
                        send_body(stream, body, has_body, &mut waiting).await
                    }
                    HeadResult::IsAll { has_status_only } => {
                        // The text, which is in memory, is not for such clients.
                        while has_status_only
                            && let Some(Ok(_)) = poll_fn(|cx| body.as_mut().poll_frame(cx)).await
                        {
                            body.as_mut().written(0, true);
                        }
                        Ending::Settled
                    }
                    HeadResult::Reset => Ending::Reset,
                }
            }
        };
        // The client may still send the body of a rejected request, so the close must linger.
        if rejected.is_some_and(|body| !body.is_end_stream()) {
            connection.unread.store(true, Relaxed);
        }
        ending
    }
}

/// Returns the expectation of a client that may wait for `100 Continue`.
fn expectation(fields: &HeaderMap) -> Option<Arc<Expectation>> {
    let expects = fields.contains_key(EXPECT) && has_token(fields, &EXPECT, "100-continue");
    expects.then(Arc::default)
}

fn continues() -> Response<()> {
    let mut response = Response::new(());
    *response.status_mut() = StatusCode::CONTINUE;
    response
}

/// Offers the stream to the service as a tunnel.
fn offer(head: &mut Parts) -> Switch {
    let (on_upgrade, switch) = OnUpgrade::new();
    head.extensions.insert(on_upgrade);
    // The type of `hyper`, which services know. It can represent no other protocol.
    let protocol = head.extensions.get::<h2::ext::Protocol>();
    if protocol.is_some_and(|protocol| protocol.as_str() == "websocket") {
        let websocket = hyper::ext::Protocol::from_static("websocket");
        head.extensions.insert(websocket);
    }
    switch
}

/// Begins a tunnel: the response to CONNECT has no end, since the tunnel follows it (RFC 8441
/// section 5).
fn begin_tunnel(
    mut head: response::Parts,
    (mut respond, receive, switch): (SendResponse<Bytes>, RecvStream, Switch),
    connection: &Arc<ConnectionState>,
    draft: Option<Box<Draft>>,
) {
    prepare_fields(&mut head.headers);
    // RFC 9110 section 9.3.6 forbids a length in a successful response to CONNECT.
    head.headers.remove(CONTENT_LENGTH);
    match respond.send_response(Response::from_parts(head, ()), false) {
        Ok(send) => {
            let tunnel = StreamTunnel::new(receive, send, connection.enter_stream(), draft);
            switch.complete_stream(Box::new(tunnel));
        }
        Err(_) => {
            // The client is gone, so no end of a tunnel writes the line.
            if let (Some(draft), Some(log)) = (draft, &connection.worker.access_log) {
                draft.finish_tunnel(log.as_ref(), None);
            }
        }
    }
}

/// The result of sending the head of a response.
enum HeadResult {
    /// The body follows.
    Begins(SendStream<Bytes>),
    /// The head was the whole response.
    IsAll {
        has_status_only: bool,
    },
    Reset,
}

/// Sends the head of a response with this body.
fn send_head<B>(
    mut head: response::Parts,
    body: &ResponseBody<B>,
    respond: &mut SendResponse<Bytes>,
    response_context: StreamResponseContext,
) -> HeadResult
where
    B: Body<Data = Bytes>,
    B::Error: Into<BoxError>,
{
    let has_status_only = response_context.gets_status_only(&head);
    let length = body.size_hint().exact();
    let is_end = prepare_head(&mut head, response_context, length, body.is_end_stream());
    match respond.send_response(Response::from_parts(head, ()), is_end) {
        Ok(stream) if !is_end => HeadResult::Begins(stream),
        Ok(_) => HeadResult::IsAll { has_status_only },
        Err(_) => HeadResult::Reset,
    }
}

/// Sends a response body. An error of the body resets the stream. `has_body`: the request body may still be read.
async fn send_body<B>(
    mut stream: SendStream<Bytes>,
    mut body: Pin<&mut ResponseBody<B>>,
    has_body: bool,
    waiting: &mut StreamSend<'_>,
) -> Ending
where
    B: Body<Data = Bytes>,
    B::Error: Into<BoxError>,
{
    loop {
        let next = poll_fn(|cx| {
            // The reset is checked first: the body would see it as well, as a request that ended
            // early.
            if has_body && stream.poll_reset(cx).is_ready() {
                return Poll::Ready(NextPart::Disconnected);
            }
            match ready!(waiting.poll_taken(&mut stream, cx)) {
                Ok(()) => while_taking(waiting.connection.taking(), || {
                    poll_next(&mut stream, body.as_mut(), cx)
                }),
                Err(unsent) => Poll::Ready(NextPart::Unsent(unsent)),
            }
        });
        let frame = match next.await {
            NextPart::Frame(frame) => frame,
            NextPart::End => return ending(&stream.send_data(Bytes::new(), true)),
            NextPart::Failed => {
                stream.send_reset(Reason::INTERNAL_ERROR);
                return Ending::Settled;
            }
            NextPart::Disconnected => return Ending::Reset,
            NextPart::Unsent(unsent) => return give_up(body, &unsent),
        };
        let data = match frame.into_data() {
            Ok(data) => data,
            Err(frame) => {
                let trailers = frame.into_trailers().unwrap_or_default();
                return ending(&stream.send_trailers(trailers));
            }
        };
        let is_end = body.is_end_stream();
        // An empty DATA frame would be work for the client without content.
        if data.is_empty() && !is_end {
            continue;
        }
        let note = |left| body.as_mut().written(left as u64, left == 0);
        match waiting.send(&mut stream, data, is_end, note).await {
            Ok(()) if is_end => return Ending::Settled,
            Ok(()) => {}
            Err(unsent) => return give_up(body, &unsent),
        }
    }
}

/// Ends a body that the client does not take.
fn give_up<B>(body: Pin<&mut ResponseBody<B>>, unsent: &Unsent) -> Ending
where
    B: Body<Data = Bytes>,
    B::Error: Into<BoxError>,
{
    match unsent {
        Unsent::TooSlow => {
            body.give_up(Cause::ClientTooSlow);
            Ending::Settled
        }
        Unsent::Disconnected => Ending::Reset,
    }
}

/// The result of ending a stream, which fails if the client accepts no more.
fn ending(said: &Result<(), h2::Error>) -> Ending {
    match said {
        Ok(()) => Ending::Settled,
        Err(_) => Ending::Reset,
    }
}

enum NextPart {
    Frame(Frame<Bytes>),
    End,
    /// The body has failed.
    Failed,
    /// The client accepts no more.
    Disconnected,
    /// The client does not take what was sent.
    Unsent(Unsent),
}

/// The next part of the body.
fn poll_next<B>(
    stream: &mut SendStream<Bytes>,
    body: Pin<&mut ResponseBody<B>>,
    cx: &mut Context<'_>,
) -> Poll<NextPart>
where
    B: Body<Data = Bytes>,
    B::Error: Into<BoxError>,
{
    match body.poll_frame(cx) {
        Poll::Ready(Some(Ok(frame))) => Poll::Ready(NextPart::Frame(frame)),
        Poll::Ready(Some(Err(_))) => Poll::Ready(NextPart::Failed),
        Poll::Ready(None) => Poll::Ready(NextPart::End),
        // While the body has nothing, only the stream shows that the client has left.
        Poll::Pending => stream.poll_reset(cx).map(|_| NextPart::Disconnected),
    }
}
