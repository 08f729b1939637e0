//! The messages to a client: the body of a response, which shares its bytes with other streams.

use std::convert::Infallible;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use axum::body::Body;
use bytes::Bytes;
use futures_util::Stream;
use http::{HeaderMap, HeaderValue, Response, header};
use hyper::body::Frame;
use tonic::Status;

use crate::server::wire::Framed;

type Messages = Pin<Box<dyn Stream<Item = Result<Framed, Status>> + Send>>;

/// Returns the response to a call: a stream of messages, or an error status.
pub(super) fn respond<M>(answer: Result<M, Status>) -> Response<Body>
where
    M: Stream<Item = Result<Framed, Status>> + Send + 'static,
{
    match answer {
        Ok(messages) => {
            let mut response = Response::new(Body::new(Responses::new(Box::pin(messages))));
            let grpc = HeaderValue::from_static("application/grpc");
            response.headers_mut().insert(header::CONTENT_TYPE, grpc);
            response
        }
        Err(status) => status.into_http(),
    }
}

/// Messages one after the other, followed by trailers with the status of the call.
///
/// The next message is made when HTTP/2 has taken the one before. It refers to shared bytes, so a slow
/// client holds no bytes of its own, except those of a response that no other client gets.
struct Responses {
    /// The messages. Dropped, with everything behind them, once the trailers have been returned.
    messages: Option<Messages>,
    pieces: std::vec::IntoIter<Bytes>,
}

impl Responses {
    fn new(messages: Messages) -> Self {
        Self {
            messages: Some(messages),
            pieces: Vec::new().into_iter(),
        }
    }
}

impl hyper::body::Body for Responses {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        let this = self.get_mut();
        loop {
            if let Some(piece) = this.pieces.next() {
                return Poll::Ready(Some(Ok(Frame::data(piece))));
            }
            let Some(messages) = &mut this.messages else {
                return Poll::Ready(None);
            };
            let status = match ready!(messages.as_mut().poll_next(context)) {
                Some(Ok(framed)) => {
                    this.pieces = framed.into_pieces();
                    continue;
                }
                Some(Err(status)) => status,
                None => Status::ok(""),
            };
            this.messages = None;
            return Poll::Ready(Some(Ok(Frame::trailers(trailers(&status)))));
        }
    }

    fn is_end_stream(&self) -> bool {
        self.messages.is_none()
    }
}

fn trailers(status: &Status) -> HeaderMap {
    let mut trailers = HeaderMap::new();
    // Of what cannot be written as a header field, there is at least the code.
    if status.add_header(&mut trailers).is_err() {
        let code = HeaderValue::from(i32::from(status.code()));
        trailers.insert(Status::GRPC_STATUS, code);
    }
    trailers
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicUsize, Ordering};

    use futures_util::{StreamExt, stream};
    use http_body_util::BodyExt;

    use super::*;
    use crate::server::fixtures::resource;
    use crate::server::protocol::{Reply, StreamProtocol};
    use crate::server::wire::{Blocks, Response as Discovered};
    use crate::snapshot::{ResourceType, Subscription, Version};

    fn discovered(resources: usize, blocks: &Blocks) -> Framed {
        let body = "x".repeat(100);
        let resources = (0..resources).map(|n| resource(&n.to_string(), &body));
        let response = Discovered {
            reply: Reply {
                resource_type: ResourceType::Endpoint,
                version: Version::default(),
                nonce: 1,
                resources: resources.collect(),
                removed: Vec::new(),
            },
            protocol: StreamProtocol::Delta,
            subscription: Subscription::Aggregated,
            identifier: Arc::from(""),
        };
        response.framed(blocks).unwrap()
    }

    #[tokio::test]
    async fn messages_come_before_the_trailers_and_nothing_after_them() {
        let blocks = Blocks::default();
        for (end, code, message) in [
            (None, "0", None),
            (Some(Status::unavailable("a b")), "14", Some("a%20b")),
        ] {
            let messages = [discovered(1_000, &blocks), discovered(1, &blocks)];
            let sent: usize = messages.iter().map(|framed| framed.message_len() + 5).sum();
            let never =
                stream::once(async { unreachable!("after a failure nothing is asked for") });
            let messages = stream::iter(messages.map(Ok).into_iter().chain(end.map(Err)));
            let response = match code {
                "0" => respond(Ok(messages)),
                _ => respond(Ok(messages.chain(never))),
            };
            assert_eq!(response.headers()["content-type"], "application/grpc");
            let mut body = response.into_body();
            let mut read = 0;
            let mut frames = 0;
            let trailers = loop {
                let frame = body.frame().await.unwrap().unwrap();
                match frame.into_data() {
                    Ok(data) => {
                        assert!(!data.is_empty());
                        read += data.len();
                        frames += 1;
                    }
                    Err(frame) => break frame.into_trailers().unwrap(),
                }
            };
            assert_eq!((read, frames), (sent, 4), "{code}");
            assert_eq!(trailers["grpc-status"], code);
            let said = trailers.get("grpc-message");
            assert_eq!(said.map(|said| said.to_str().unwrap()), message);
            assert!(body.frame().await.is_none());
        }
    }

    #[test]
    fn a_call_that_is_rejected_says_so_in_its_headers() {
        type Nothing = stream::Empty<Result<Framed, Status>>;
        let rejected = respond(Err::<Nothing, _>(Status::resource_exhausted("full")));
        assert_eq!(rejected.status(), http::StatusCode::OK);
        assert_eq!(rejected.headers()["grpc-status"], "8");
        assert_eq!(rejected.headers()["content-type"], "application/grpc");
        assert!(hyper::body::Body::is_end_stream(rejected.body()));
    }

    #[tokio::test]
    async fn a_message_is_made_when_the_one_before_has_been_taken() {
        let blocks = Blocks::default();
        let made = AtomicUsize::new(0);
        let messages = [discovered(1_000, &blocks), discovered(1_000, &blocks)];
        let made = Arc::new(made);
        let counted = Arc::clone(&made);
        let messages = stream::iter(messages).map(move |framed| {
            counted.fetch_add(1, Ordering::Relaxed);
            Ok(framed)
        });
        let mut body = respond(Ok(messages)).into_body();
        for expected in [1, 1, 1, 2, 2, 2] {
            assert!(body.frame().await.unwrap().unwrap().is_data());
            assert_eq!(made.load(Ordering::Relaxed), expected);
        }
    }

    /// A stream that has ended releases its subscription and its place.
    #[tokio::test]
    async fn what_is_behind_a_body_is_gone_with_the_trailers() {
        let state = Arc::new(());
        let held = Arc::clone(&state);
        let messages = stream::unfold(held, |_held| async { None::<(Result<Framed, Status>, _)> });
        let mut body = respond(Ok(messages)).into_body();
        assert_eq!(Arc::strong_count(&state), 2);
        assert!(body.frame().await.unwrap().unwrap().is_trailers());
        assert_eq!(Arc::strong_count(&state), 1);
    }
}
