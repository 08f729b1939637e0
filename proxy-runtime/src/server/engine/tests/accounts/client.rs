//! A client that does what a scene says, over either version of HTTP.

use std::cell::RefCell;
use std::rc::Rc;
use std::time::Duration;

#[cfg(feature = "http2")]
use bytes::Bytes;
#[cfg(feature = "http2")]
use h2::{Reason, SendStream, client as h2_client};
use tokio::io::{AsyncReadExt, AsyncWriteExt, DuplexStream, ReadHalf, WriteHalf, split};
use tokio::task::{JoinHandle, spawn_local};
use tokio::time::timeout;

use super::scene::{Content, Scene};

/// The end of a response, as the client sees it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[cfg_attr(
    not(feature = "http2"),
    expect(dead_code, reason = "resets are of streams")
)]
pub(super) enum End {
    /// Incomplete. HTTP/1.1 does not distinguish causes.
    #[default]
    Cut,
    /// A reset of the stream because of the client's own fault.
    Dropped,
    /// A reset of the stream for another reason.
    Reset(u32),
    Whole,
}

/// The response that a client received, as far as it came.
#[derive(Debug, Default)]
pub(super) struct Received {
    /// `None` if there was no final head.
    pub(super) status: Option<u16>,
    /// True if the response has the field that the route adds to failures.
    pub(super) is_marked: bool,
    pub(super) content: Vec<u8>,
    pub(super) end: End,
}

/// A client that does what a scene says.
pub(super) enum Client {
    Http1(Http1),
    #[cfg(feature = "http2")]
    Http2(Http2),
    /// The client has left.
    Disconnected,
}

impl Client {
    /// Creates a client over `stream`, whose other end a server has.
    pub(super) async fn new(stream: DuplexStream, scene: &Scene, is_http2: bool) -> Self {
        #[cfg(feature = "http2")]
        if is_http2 {
            return Self::Http2(Http2::new(stream, scene).await);
        }
        assert!(!is_http2);
        Self::Http1(Http1::new(stream, scene))
    }

    pub(super) async fn ask(&mut self, scene: &Scene) {
        match self {
            Self::Http1(client) => client.ask(scene).await,
            #[cfg(feature = "http2")]
            Self::Http2(client) => client.ask(scene),
            Self::Disconnected => panic!("it has left"),
        }
    }

    /// Sends content; `is_last` ends the body. A proxy that has rejected the request may still get it.
    pub(super) async fn send(&mut self, bytes: usize, is_last: bool) {
        match self {
            Self::Http1(client) => client.send(bytes).await,
            #[cfg(feature = "http2")]
            Self::Http2(client) => client.send(bytes, is_last),
            Self::Disconnected => panic!("it has left, {is_last}"),
        }
    }

    /// Ends a body of undeclared length with this number of trailer fields.
    pub(super) async fn end(&mut self, trailers: usize) {
        match self {
            Self::Http1(client) => client.end(trailers).await,
            #[cfg(feature = "http2")]
            Self::Http2(client) => client.end(trailers),
            Self::Disconnected => panic!("it has left"),
        }
    }

    /// Sends an invalid chunk.
    pub(super) async fn break_off(&mut self) {
        match self {
            Self::Http1(client) => client.write("no chunk\r\n").await,
            #[cfg(feature = "http2")]
            Self::Http2(_) => panic!("it has no chunks"),
            Self::Disconnected => panic!("it has left"),
        }
    }

    /// Cancels the request: by RST_STREAM in HTTP/2, otherwise by closing the connection.
    pub(super) fn leave(&mut self) {
        match std::mem::replace(self, Self::Disconnected) {
            Self::Http1(client) => drop(client.reading.inspect(JoinHandle::abort)),
            #[cfg(feature = "http2")]
            Self::Http2(mut client) => {
                if let Some(stream) = &mut client.stream {
                    stream.send_reset(Reason::CANCEL);
                }
                // The connection stays.
                *self = Self::Http2(client);
            }
            Self::Disconnected => panic!("it has left"),
        }
    }

    /// Closes the connection.
    pub(super) fn vanish(&mut self) {
        match std::mem::replace(self, Self::Disconnected) {
            Self::Http1(client) => drop(client.reading.inspect(JoinHandle::abort)),
            #[cfg(feature = "http2")]
            Self::Http2(client) => {
                client.connection.abort();
                client.reading.inspect(JoinHandle::abort);
            }
            Self::Disconnected => panic!("it has left"),
        }
    }

    /// Returns the response as far as it has arrived.
    pub(super) async fn received(&mut self) -> Received {
        if let Self::Http1(Http1 {
            unread: unread @ Some(_),
            received,
            ..
        }) = self
            && let Some(mut unread) = unread.take()
        {
            let reading = read_all(&mut unread, received);
            let _ = timeout(Duration::from_secs(1), reading).await;
        }
        match self {
            Self::Http1(client) => received(&client.received.borrow()),
            #[cfg(feature = "http2")]
            Self::Http2(client) => client.received.take(),
            Self::Disconnected => Received::default(),
        }
    }
}

/// A client of HTTP/1.1.
pub(super) struct Http1 {
    sending: WriteHalf<DuplexStream>,
    received: Rc<RefCell<Vec<u8>>>,
    reading: Option<JoinHandle<()>>,
    /// The reading half of a client that reads only after the end.
    unread: Option<ReadHalf<DuplexStream>>,
    is_chunked: bool,
}

impl Http1 {
    fn new(stream: DuplexStream, scene: &Scene) -> Self {
        let (receiving, sending) = split(stream);
        let mut client = Self {
            sending,
            received: Rc::default(),
            unread: Some(receiving),
            reading: None,
            is_chunked: scene.content == Content::Chunked,
        };
        if scene.takes_response
            && let Some(mut unread) = client.unread.take()
        {
            let received = Rc::clone(&client.received);
            let reading = async move { read_all(&mut unread, &received).await };
            client.reading = Some(spawn_local(reading));
        }
        client
    }

    async fn write(&mut self, bytes: impl AsRef<[u8]>) {
        // The proxy may have closed: the rest is of no interest to it.
        let _ = self.sending.write_all(bytes.as_ref()).await;
    }

    async fn ask(&mut self, scene: &Scene) {
        let framing = match scene.content {
            Content::None if scene.method == "GET" => String::new(),
            Content::None => "Content-Length: 0\r\n".to_owned(),
            Content::Length(length) => format!("Content-Length: {length}\r\n"),
            Content::Chunked => "Transfer-Encoding: chunked\r\n".to_owned(),
        };
        let method = scene.method;
        let head = format!("{method} / HTTP/1.1\r\nHost: h\r\n{framing}\r\n");
        self.write(head).await;
    }

    async fn send(&mut self, bytes: usize) {
        let content = "x".repeat(bytes);
        match self.is_chunked {
            true => self.write(format!("{bytes:x}\r\n{content}\r\n")).await,
            false => self.write(content).await,
        }
    }

    async fn end(&mut self, trailers: usize) {
        let fields: String = (0..trailers).map(|i| format!("x-{i}: 1\r\n")).collect();
        self.write(format!("0\r\n{fields}\r\n")).await;
    }
}

/// Reads what comes, until the end.
pub(super) async fn read_all(stream: &mut ReadHalf<DuplexStream>, into: &RefCell<Vec<u8>>) {
    let mut part = [0; 4096];
    while let Ok(count @ 1..) = stream.read(&mut part).await {
        into.borrow_mut().extend_from_slice(&part[..count]);
    }
}

/// Parses the beginning of a response.
fn received(mut bytes: &[u8]) -> Received {
    let mut received = Received::default();
    loop {
        let Some(head) = super::message::head(bytes) else {
            return received;
        };
        bytes = &bytes[head.len()..];
        let status = head[9..12].parse().unwrap();
        if status < 200 {
            continue;
        }
        let message = super::message::Message::read(head, bytes);
        received.status = Some(status);
        received.is_marked = head.to_ascii_lowercase().contains("\r\nx-failure: 1\r\n");
        received.content = message.content;
        received.end = match message.is_whole {
            true => End::Whole,
            false => End::Cut,
        };
        return received;
    }
}

/// A client of HTTP/2.
#[cfg(feature = "http2")]
pub(super) struct Http2 {
    requests: h2_client::SendRequest<Bytes>,
    stream: Option<SendStream<Bytes>>,
    received: Rc<RefCell<Received>>,
    connection: JoinHandle<()>,
    reading: Option<JoinHandle<()>>,
}

#[cfg(feature = "http2")]
impl Http2 {
    async fn new(stream: DuplexStream, scene: &Scene) -> Self {
        let mut builder = h2_client::Builder::new();
        if !scene.takes_response {
            builder.initial_window_size(0);
        }
        let (requests, connection) = builder.handshake(stream).await.unwrap();
        Self {
            requests,
            stream: None,
            received: Rc::default(),
            connection: spawn_local(async move { drop(connection.await) }),
            reading: None,
        }
    }

    fn ask(&mut self, scene: &Scene) {
        let mut request = http::Request::builder()
            .method(scene.method)
            .uri("http://h/");
        if let Content::Length(length) = scene.content {
            request = request.header("content-length", length);
        }
        let is_end = scene.content == Content::None;
        let request = request.body(()).unwrap();
        let (response, stream) = self.requests.send_request(request, is_end).unwrap();
        self.stream = Some(stream);
        let received = Rc::clone(&self.received);
        self.reading = Some(spawn_local(async move {
            receive(response, &received).await;
        }));
    }

    fn send(&mut self, bytes: usize, is_last: bool) {
        if let Some(stream) = &mut self.stream {
            let _ = stream.send_data(vec![b'x'; bytes].into(), is_last);
        }
    }

    fn end(&mut self, trailers: usize) {
        let Some(stream) = &mut self.stream else {
            return;
        };
        let _ = match trailers {
            0 => stream.send_data(Bytes::new(), true),
            count => {
                let fields = (0..count).map(|i| {
                    let name = format!("x-{i}").parse::<http::HeaderName>().unwrap();
                    (name, http::HeaderValue::from_static("1"))
                });
                stream.send_trailers(fields.collect())
            }
        };
    }
}

#[cfg(feature = "http2")]
async fn receive(response: h2_client::ResponseFuture, into: &RefCell<Received>) {
    let Ok(response) = response.await else {
        return;
    };
    {
        let mut into = into.borrow_mut();
        into.status = Some(response.status().as_u16());
        into.is_marked = response
            .headers()
            .get("x-failure")
            .is_some_and(|mark| mark == "1");
    }
    let mut body = response.into_body();
    loop {
        match body.data().await {
            Some(Ok(data)) => {
                let _ = body.flow_control().release_capacity(data.len());
                into.borrow_mut().content.extend_from_slice(&data);
            }
            Some(Err(error)) => {
                into.borrow_mut().end = match error.reason() {
                    Some(Reason::CANCEL) => End::Dropped,
                    Some(Reason::INTERNAL_ERROR) | None => End::Cut,
                    Some(other) => End::Reset(other.into()),
                };
                return;
            }
            None => {
                into.borrow_mut().end = End::Whole;
                return;
            }
        }
    }
}
