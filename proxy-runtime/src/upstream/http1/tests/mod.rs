mod response;
mod reuse;
#[cfg(feature = "server")]
use std::future::poll_fn;

use bytes::Bytes;
use http::{HeaderMap, HeaderValue, Response, StatusCode, Version};
use http_body::Frame;
use hyper::ext::ReasonPhrase;
use tokio::io::{AsyncWriteExt, DuplexStream, duplex};

use super::response_head::to_map;
use super::{Http1Body, Http1Connection, Http1Error};
use crate::http1::{self, Field, Method, RawResponse, Rejection};
use crate::upstream::OwnRequest;
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

/// Converts a parsed head to a response. `bytes` are those of the head, and the values of its fields share them.
fn to_response(
    head: &RawResponse,
    fields: &[Field],
    bytes: &Bytes,
) -> Result<Response<()>, Http1Error> {
    let mut response = Response::new(());
    let status = StatusCode::from_u16(head.status()).map_err(|_| Rejection::StatusCode)?;
    *response.status_mut() = status;
    *response.version_mut() = match head.version() {
        http1::Version::Http10 => Version::HTTP_10,
        http1::Version::Http11 => Version::HTTP_11,
    };
    // The usual phrase needs no storage: writers add it.
    let reason = head.reason().get(bytes);
    if status.canonical_reason().map(str::as_bytes) != Some(reason) {
        let reason = ReasonPhrase::try_from(reason).map_err(|_| Rejection::Reason)?;
        response.extensions_mut().insert(reason);
    }
    *response.headers_mut() = to_map(fields, bytes)?;
    Ok(response)
}

/// Sends a request with this method, and reads the head of the response.
async fn send(
    connection: &mut Http1Connection,
    method: Method,
) -> Result<Response<Http1Body>, Http1Error> {
    let host = HeaderValue::from_static("h");
    let request = OwnRequest::new(method, "/".to_owned(), &host, "", b"").unwrap();
    let answered = connection.ask(&request).await;
    let (head, table) = answered.map_err(|error| *error.downcast::<Http1Error>().unwrap())?;
    let text = connection.input.take_head(head.head_length());
    let response = to_response(&head, table.fields(), &text)?;
    let body = Http1Body::new(&head, table, connection);
    Ok(response.map(|()| body))
}

/// Returns the response of a destination that sends `bytes` and closes.
async fn answer(bytes: impl AsRef<[u8]>) -> Result<Whole, Http1Error> {
    let (mut near, mut far) = connection();
    let answering = async {
        // It may not take all.
        let _ = far.write_all(bytes.as_ref()).await;
        let _ = far.shutdown().await;
        // Whatever is asked.
        let _ = tokio::io::copy(&mut far, &mut tokio::io::sink()).await;
    };
    let asking = async {
        let response = send(&mut near, Method::Get).await?;
        read(&mut near, response).await
    };
    tokio::select! {
        whole = asking => whole,
        () = async { answering.await; std::future::pending().await } => unreachable!("it never ends"),
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
