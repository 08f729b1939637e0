//! A destination of HTTP/2.

use std::sync::Arc;

use bytes::Bytes;
use h2::server::{SendResponse, handshake};
use h2::{Reason, RecvStream};
use http::{HeaderMap, HeaderValue, Request, Response, StatusCode};
use parking_lot::Mutex;
use tokio::net::{TcpListener, TcpStream};

use super::{chunks, map};
use crate::server::support::loopback;
use crate::server::ways::Message;

/// A destination of HTTP/2 with prior knowledge, which answers in the words of one of HTTP/1.1.
pub(crate) struct Http2Origin {
    url: String,
    requests: Arc<Mutex<Vec<Message>>>,
}

impl Http2Origin {
    /// Returns `None` if the answer cannot be said in HTTP/2: it has fields of its connection.
    pub(crate) async fn start(answer: &'static str) -> Option<Self> {
        let said = answer.to_lowercase();
        if ["\r\nconnection:", "\r\nkeep-alive:", "\r\nupgrade:"]
            .iter()
            .any(|field| said.contains(field))
        {
            return None;
        }
        let listener = TcpListener::bind(loopback()).await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let requests = Arc::<Mutex<Vec<Message>>>::default();
        let received = Arc::clone(&requests);
        tokio::spawn(async move {
            while let Ok((socket, _)) = listener.accept().await {
                tokio::spawn(serve(socket, answer, Arc::clone(&received)));
            }
        });
        Some(Self { url, requests })
    }

    pub(super) fn url(&self) -> String {
        self.url.clone()
    }

    pub(super) fn received_twice(&self) -> Message {
        let requests = std::mem::take(&mut *self.requests.lock());
        let (first, second) = requests.split_at(requests.len() / 2);
        assert_eq!(first, second, "both times the same");
        second.iter().next().cloned().unwrap_or_default()
    }
}

async fn serve(socket: TcpStream, answer: &'static str, received: Arc<Mutex<Vec<Message>>>) {
    let Ok(mut connection) = handshake(socket).await else {
        return;
    };
    while let Some(Ok((request, respond))) = connection.accept().await {
        // The connection has to be polled beside.
        tokio::spawn(stream(request, respond, answer, Arc::clone(&received)));
    }
}

async fn stream(
    request: Request<RecvStream>,
    mut respond: SendResponse<Bytes>,
    answer: &'static str,
    received: Arc<Mutex<Vec<Message>>>,
) {
    let (head, mut body) = request.into_parts();
    let mut content = Vec::new();
    while let Some(Ok(data)) = body.data().await {
        content.extend_from_slice(&data);
        let _ = body.flow_control().release_capacity(data.len());
    }
    let trailers = body.trailers().await.ok().flatten().unwrap_or_default();
    let target = head.uri.path_and_query().unwrap();
    let host = match head.uri.authority().unwrap().as_str() {
        own if own.starts_with("127.0.0.1:") => "of the destination",
        named => named,
    };
    // One byte, one character, as recordings of HTTP/1.1 are read.
    let text = |value: &HeaderValue| {
        value
            .as_bytes()
            .iter()
            .map(|byte| char::from(*byte))
            .collect()
    };
    let fields = head.headers.iter().chain(&trailers);
    let fields: Vec<(&str, String)> = fields
        .map(|(name, value)| (name.as_str(), text(value)))
        .collect();
    let fields = fields.iter().map(|(name, value)| (*name, value.as_str()));
    let message = Message::new(
        format!("{} {target} HTTP/1.1", head.method),
        fields.chain([("host", host)]),
        &content,
    );
    received.lock().push(message);
    let _ = send(&mut respond, answer);
}

/// Sends what a destination of HTTP/1.1 says.
fn send(respond: &mut SendResponse<Bytes>, answer: &'static str) -> Result<(), h2::Error> {
    let (head, body) = answer.split_once("\r\n\r\n").unwrap();
    let mut lines = head.split("\r\n");
    let status = lines.next().unwrap().strip_prefix("HTTP/1.1 ");
    let Some(status) = status.and_then(|line| StatusCode::from_bytes(&line.as_bytes()[..3]).ok())
    else {
        respond.send_reset(Reason::INTERNAL_ERROR);
        return Ok(());
    };
    let mut response = Response::new(());
    *response.status_mut() = status;
    *response.headers_mut() = map(lines);
    let is_chunked = response.headers_mut().remove("transfer-encoding").is_some();
    let (content, trailers) = match is_chunked {
        true => chunks(body),
        false => (body.to_owned(), HeaderMap::new()),
    };
    let is_end = content.is_empty() && trailers.is_empty();
    let mut stream = respond.send_response(response, is_end)?;
    if !content.is_empty() {
        stream.send_data(content.into(), trailers.is_empty())?;
    }
    if !trailers.is_empty() {
        stream.send_trailers(trailers)?;
    }
    Ok(())
}
