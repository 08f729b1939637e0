mod request;
mod response;
mod reuse;
#[cfg(feature = "server")]
mod same_head;

use std::future::poll_fn;

use bytes::Bytes;
use http::request::Builder;
use http::{HeaderMap, Request, Response};
use http_body::Frame;
use http_body_util::StreamBody;
use tokio::io::{AsyncReadExt, AsyncWriteExt, DuplexStream, duplex};

use super::{Http1Body, Http1Connection, Http1Error};
use crate::BoxError;
use crate::progress::OutgoingBody;
use crate::upstream::error::{ExchangeError, SendError};
use crate::upstream::io::UpstreamIo;
use crate::upstream::tests::Scripted;
use crate::upstream::transport::UpstreamTransport;

/// Bytes that fit between the two ends.
const ROOM: usize = 64 * 1024;

fn over(transport: impl Scripted + 'static) -> Http1Connection {
    let io = UpstreamIo::uncounted(UpstreamTransport::Scripted(Box::new(transport)));
    Http1Connection::new(io, ([127, 0, 0, 1], 80).into())
}

/// A connection and the destination's end of it.
fn connection() -> (Http1Connection, DuplexStream) {
    let (near, far) = duplex(ROOM);
    (over(near), far)
}

fn get() -> Request<OutgoingBody> {
    empty(Request::get("/"))
}

fn empty(head: Builder) -> Request<OutgoingBody> {
    head.body(OutgoingBody::empty()).unwrap()
}

fn chunked() -> Builder {
    Request::post("/").header("transfer-encoding", "chunked")
}

fn data(content: impl Into<Bytes>) -> Frame<Bytes> {
    Frame::data(content.into())
}

fn trailers(value: &'static str) -> Frame<Bytes> {
    let mut trailers = HeaderMap::new();
    trailers.insert("x-sum", value.parse().unwrap());
    Frame::trailers(trailers)
}

fn body(frames: Vec<Frame<Bytes>>) -> OutgoingBody {
    let frames = frames.into_iter().map(Ok::<_, BoxError>);
    OutgoingBody::of(StreamBody::new(futures_util::stream::iter(frames)))
}

/// A body whose frames come when the test sends them.
fn fed() -> (
    tokio::sync::mpsc::UnboundedSender<Frame<Bytes>>,
    OutgoingBody,
) {
    let (feed, mut fed) = tokio::sync::mpsc::unbounded_channel();
    let frames = futures_util::stream::poll_fn(move |cx| {
        fed.poll_recv(cx).map(|frame| frame.map(Ok::<_, BoxError>))
    });
    (feed, OutgoingBody::of(StreamBody::new(frames)))
}

/// Returns the response to `request` of a destination that sends `bytes` and closes.
async fn answer(
    request: Request<OutgoingBody>,
    bytes: impl AsRef<[u8]>,
) -> Result<Whole, Http1Error> {
    let (mut near, mut far) = connection();
    let answering = async {
        // It may not take all.
        let _ = far.write_all(bytes.as_ref()).await;
        let _ = far.shutdown().await;
        // Whatever is asked.
        let _ = tokio::io::copy(&mut far, &mut tokio::io::sink()).await;
    };
    let asking = async {
        let response = near.send(request).await.map_err(of_http1)?;
        read(&mut near, response).await
    };
    tokio::select! {
        whole = asking => whole,
        () = async { answering.await; std::future::pending().await } => unreachable!("it never ends"),
    }
}

/// Returns the HTTP/1.1 error of a failed request.
#[expect(clippy::boxed_local, reason = "as it is returned")]
fn of_http1(failed: Box<SendError>) -> Http1Error {
    match failed.error {
        ExchangeError::Http1(error) => error,
        #[cfg(feature = "http2")]
        other => panic!("{other}"),
    }
}

/// A response that was read to its end.
#[derive(Debug)]
struct Whole {
    response: Response<()>,
    frames: Vec<Bytes>,
    trailers: Option<HeaderMap>,
    body: Http1Body,
}

impl Whole {
    fn content(&self) -> Vec<u8> {
        self.frames.concat()
    }
}

async fn read(
    connection: &mut Http1Connection,
    response: Response<Http1Body>,
) -> Result<Whole, Http1Error> {
    let (head, body) = response.into_parts();
    let mut whole = Whole {
        response: Response::from_parts(head, ()),
        frames: Vec::new(),
        trailers: None,
        body,
    };
    while let Some(frame) = next(connection, &mut whole.body).await {
        match frame?.into_data() {
            Ok(data) => whole.frames.push(data),
            Err(other) => whole.trailers = other.into_trailers().ok(),
        }
    }
    assert!(
        next(connection, &mut whole.body).await.is_none(),
        "behind its end"
    );
    Ok(whole)
}

async fn next(
    connection: &mut Http1Connection,
    body: &mut Http1Body,
) -> Option<Result<Frame<Bytes>, Http1Error>> {
    poll_fn(|cx| body.poll_frame(connection, cx)).await
}

/// Reads what the destination has got, up to an end that the test knows.
async fn received(far: &mut DuplexStream, end: &str) -> String {
    let mut received = Vec::new();
    while !received.ends_with(end.as_bytes()) {
        let read = far.read_buf(&mut received).await.unwrap();
        assert!(read > 0, "{}", received.escape_ascii());
    }
    String::from_utf8(received).unwrap()
}
