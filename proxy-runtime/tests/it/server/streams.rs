//! HTTP/2 streams in front of destinations that are scripted byte by byte.

use std::net::SocketAddr;
use std::num::NonZeroUsize;

use bytes::Bytes;
use h2::client::{SendRequest, handshake};
use h2::{Reason, RecvStream, SendStream};
use http::{HeaderMap, Request, Response};
use proxy_runtime::server::{Limits, Listener, Server, ServerHandle};
use serde_json::{Value, json};
use testkit::raw::RawOrigin;
use testkit::time::{eventually, guarded};
use tokio::net::TcpStream;
use tokio::sync::oneshot;

use crate::changed;
use crate::server::support::loopback;
use crate::server::ways::proxy;

/// An HTTP/2 client that exposes everything that happens to a stream.
pub(crate) struct Client {
    pub(crate) sender: SendRequest<Bytes>,
}

/// A complete response.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) fields: HeaderMap,
    pub(crate) body: Vec<u8>,
    pub(crate) trailers: HeaderMap,
}

impl Client {
    pub(crate) async fn connect(address: SocketAddr) -> Self {
        let stream = TcpStream::connect(address).await.unwrap();
        let (sender, connection) = handshake(stream).await.unwrap();
        tokio::spawn(connection);
        Self { sender }
    }

    /// Sends a request, and reads its whole response.
    pub(crate) async fn send(
        &mut self,
        request: Request<()>,
        body: Option<Bytes>,
        trailers: Option<HeaderMap>,
    ) -> Result<Answer, h2::Error> {
        let mut sender = self.sender.clone().ready().await?;
        let (response, mut stream) = sender.send_request(request, body.is_none())?;
        if let Some(body) = body {
            stream.send_data(body, trailers.is_none())?;
        }
        if let Some(trailers) = trailers {
            stream.send_trailers(trailers)?;
        }
        read(response.await?).await
    }

    /// Begins a request whose body follows later.
    pub(crate) async fn begin(
        &mut self,
        request: Request<()>,
    ) -> (h2::client::ResponseFuture, SendStream<Bytes>) {
        let mut sender = self.sender.clone().ready().await.unwrap();
        sender.send_request(request, false).unwrap()
    }
}

async fn read(response: Response<RecvStream>) -> Result<Answer, h2::Error> {
    let (head, mut stream) = response.into_parts();
    let mut body = Vec::new();
    while let Some(data) = stream.data().await {
        let data = data?;
        body.extend_from_slice(&data);
        stream.flow_control().release_capacity(data.len())?;
    }
    Ok(Answer {
        status: head.status.as_u16(),
        fields: head.headers,
        body,
        trailers: stream.trailers().await?.unwrap_or_default(),
    })
}

pub(crate) fn get(path: &str) -> Request<()> {
    let uri = format!("http://t.example{path}");
    Request::get(uri).body(()).unwrap()
}

pub(crate) fn post(path: &str) -> Request<()> {
    let mut request = get(path);
    *request.method_mut() = http::Method::POST;
    request
}

pub(crate) fn serve(origin: &RawOrigin, limits: Limits) -> (ServerHandle, SocketAddr) {
    serve_route(origin, limits, &json!({}))
}

fn serve_route(origin: &RawOrigin, limits: Limits, route: &Value) -> (ServerHandle, SocketAddr) {
    let proxy = proxy(origin, route, "");
    let server = Server::for_proxy(&proxy).with_workers(NonZeroUsize::MIN);
    let server = server.with_limits(limits);
    let server = server.with_listener(Listener::http(loopback()));
    let server = server.bind().unwrap().start().unwrap();
    let address = server.local_addrs()[0];
    (server, address)
}

#[tokio::test]
async fn many_streams_share_a_connection() {
    let origin = RawOrigin::script(|mut connection| async move {
        while let Ok(head) = connection.read_request().await {
            let text = head.target;
            let answer = format!(
                "HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n{text}",
                text.len()
            );
            connection.write_all(answer).await?;
        }
        Ok(())
    });
    let (server, address) = serve(&origin, Limits::default());
    let client = Client::connect(address).await;
    for _ in 0..5 {
        let requests = (0..50).map(|number| {
            let sender = client.sender.clone();
            tokio::spawn(async move {
                let path = format!("/{number}");
                let answer = Client { sender }
                    .send(get(&path), None, None)
                    .await
                    .unwrap();
                assert_eq!((answer.status, answer.body), (200, path.into_bytes()));
            })
        });
        for request in requests.collect::<Vec<_>>() {
            guarded("a response", request).await.unwrap();
        }
    }
    let counts = server.metrics().counts();
    assert_eq!((counts.requests, counts.active_requests), (250, 0));
}

/// Both bodies move before either has ended, as in gRPC; trailers end both.
#[tokio::test]
async fn both_directions_move_at_once() {
    let origin = RawOrigin::script(|mut connection| async move {
        connection.read_request().await?;
        connection
            .write_all("HTTP/1.1 200 OK\r\nContent-Type: application/grpc\r\nTransfer-Encoding: chunked\r\n\r\n")
            .await?;
        for _ in 0..3 {
            let chunk = connection.read_until(b"ping\r\n").await?;
            assert_eq!(chunk, b"4\r\nping\r\n");
            connection.write_all("4\r\npong\r\n").await?;
        }
        let end = connection.read_until(b"\r\n\r\n").await?;
        assert_eq!(end, b"0\r\nx-sent: 3\r\n\r\n");
        connection.write_all("0\r\nGrpc-Status: 0\r\n\r\n").await
    });
    let (_server, address) = serve(&origin, Limits::default());
    let mut client = Client::connect(address).await;
    let talk = async {
        let mut request = post("/");
        request
            .headers_mut()
            .insert("content-type", "application/grpc".parse().unwrap());
        let (response, mut up) = client.begin(request).await;
        let (head, mut down) = response.await.unwrap().into_parts();
        assert_eq!(head.status, 200);
        for _ in 0..3 {
            up.send_data(Bytes::from_static(b"ping"), false).unwrap();
            assert_eq!(down.data().await.unwrap().unwrap(), "pong");
        }
        let mut trailers = HeaderMap::new();
        trailers.insert("x-sent", "3".parse().unwrap());
        up.send_trailers(trailers).unwrap();
        assert!(down.data().await.is_none());
        let trailers = down.trailers().await.unwrap().unwrap();
        assert_eq!(trailers["grpc-status"], "0");
    };
    guarded("a conversation", talk).await;
    origin.recording(0).outcome().await.unwrap();
}

#[tokio::test]
async fn large_bodies_arrive_whole_whoever_is_slow() {
    const SIZE: usize = 3 * 1024 * 1024;
    let origin = RawOrigin::script(|mut connection| async move {
        let (head, body) = connection.read_whole_request().await?;
        assert_eq!(head.header("content-length"), None);
        assert_eq!(body.len(), SIZE);
        let is_right = body.iter().enumerate().all(|(at, byte)| *byte == at as u8);
        assert!(is_right, "as it was sent");
        let answer = format!("HTTP/1.1 200 OK\r\nContent-Length: {SIZE}\r\n\r\n");
        connection.write_all(answer).await?;
        connection.write_all(body).await
    });
    let (server, address) = serve(&origin, Limits::default());
    let mut client = Client::connect(address).await;
    let body: Vec<u8> = (0..SIZE).map(|at| at as u8).collect();
    let sent = client.send(post("/"), Some(body.clone().into()), None);
    let answer = guarded("a transfer", sent).await.unwrap();
    assert_eq!(answer.status, 200);
    assert!(answer.body == body, "as it was sent");
    eventually("no request is left", async || {
        server.metrics().counts().active_requests == 0
    })
    .await;
}

/// RFC 9113 section 8.1: the client gets the response, and learns that the rest is not needed.
#[tokio::test]
async fn an_early_response_ends_the_upload() {
    let origin = RawOrigin::script(|mut connection| async move {
        connection.read_request().await?;
        connection
            .write_all("HTTP/1.1 403 Forbidden\r\nConnection: close\r\nContent-Length: 2\r\n\r\nno")
            .await?;
        connection.reset();
        Ok(())
    });
    let (server, address) = serve(&origin, Limits::default());
    let mut client = Client::connect(address).await;
    let (response, mut up) = client.begin(post("/")).await;
    up.send_data(Bytes::from_static(b"begin"), false).unwrap();
    let exchange = async {
        let answer = read(response.await.unwrap()).await.unwrap();
        assert_eq!(
            (answer.status, answer.body.as_slice()),
            (403, b"no".as_slice())
        );
        loop {
            // Data arrives after the destination's end, and is not read any more. The reset has the
            // reason.
            let _ = up.send_data(Bytes::from_static(b"more"), false);
            tokio::select! {
                reason = std::future::poll_fn(|cx| up.poll_reset(cx)) => return reason.unwrap(),
                () = tokio::task::yield_now() => {}
            }
        }
    };
    assert_eq!(guarded("the reset", exchange).await, Reason::NO_ERROR);
    let next = client.send(get("/"), None, None);
    assert_eq!(guarded("the next", next).await.unwrap().status, 403);
    eventually("no request is left", async || {
        server.metrics().counts().active_requests == 0
    })
    .await;
}

#[tokio::test]
async fn a_response_that_breaks_off_is_an_internal_error() {
    for answer in [
        "HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nhalf",
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n4\r\nhalf\r\n",
    ] {
        let (go_on, wait) = oneshot::channel();
        let wait = parking_lot::Mutex::new(Some(wait));
        let origin = RawOrigin::script(move |mut connection| {
            let wait = wait.lock().take();
            async move {
                connection.read_request().await?;
                connection.write_all(answer).await?;
                let _ = wait.unwrap().await;
                connection.reset();
                Ok(())
            }
        });
        let (_server, address) = serve(&origin, Limits::default());
        let mut client = Client::connect(address).await;
        let mut sender = client.sender.clone().ready().await.unwrap();
        let (response, _) = sender.send_request(get("/"), true).unwrap();
        let (_, mut body) = guarded("a head", response).await.unwrap().into_parts();
        let data = guarded("data", body.data()).await.unwrap().unwrap();
        assert_eq!(data, "half");
        go_on.send(()).unwrap();
        let error = guarded("the end", body.data()).await.unwrap().unwrap_err();
        assert_eq!(error.reason(), Some(Reason::INTERNAL_ERROR), "{answer}");
        drop(client.sender.clone().ready().await.unwrap());
        client.sender = sender;
    }
}

#[tokio::test]
async fn a_destination_that_does_not_answer_is_504() {
    let origin = RawOrigin::script(|mut connection| async move {
        connection.read_whole_request().await?;
        connection.wait_for_close().await?;
        Ok(())
    });
    let route = json!({ "Timeout": "00:00:00.200" });
    let (server, address) = serve_route(&origin, Limits::default(), &route);
    let mut client = Client::connect(address).await;
    for body in [None, Some("body".into())] {
        let sent = client.send(post("/"), body, None);
        let answer = guarded("an answer", sent).await.unwrap();
        assert_eq!(answer.status, 504);
    }
    eventually("no request is left", async || {
        server.metrics().counts().active_requests == 0
    })
    .await;
}

#[tokio::test]
async fn a_body_that_is_too_large_is_413() {
    let origin = RawOrigin::script(|mut connection| async move {
        connection.read_whole_request().await.map(drop)
    });
    let (server, address) = serve(
        &origin,
        changed(|limits: &mut Limits| limits.body_bytes = Some(10)),
    );
    let mut client = Client::connect(address).await;
    let mut told = post("/");
    told.headers_mut()
        .insert("content-length", "11".parse().unwrap());
    for request in [told, post("/")] {
        let sent = client.send(request, Some("eleven byte".into()), None);
        let answer = guarded("an answer", sent).await.unwrap();
        assert_eq!(answer.status, 413);
    }
    eventually("both are counted", async || {
        server.metrics().counts().rejected_requests == 2
    })
    .await;
    assert_none_is_whole(&origin).await;
}

/// Asserts that a destination that reads whole requests got none.
async fn assert_none_is_whole(origin: &RawOrigin) {
    for recording in origin.recordings() {
        let read = recording.outcome().await;
        assert!(read.is_err(), "{:?} was taken for whole", recording.text());
    }
}

/// A drain ends a connection after its streams, and accepts no further ones.
#[tokio::test]
async fn a_drain_finishes_the_streams_that_are_open() {
    let (go_on, wait) = oneshot::channel();
    let wait = parking_lot::Mutex::new(Some(wait));
    let origin = RawOrigin::script(move |mut connection| {
        let wait = wait.lock().take();
        async move {
            connection.read_request().await?;
            connection
                .write_all("HTTP/1.1 200 OK\r\nContent-Length: 8\r\n\r\nhalf")
                .await?;
            let _ = wait.unwrap().await;
            connection.write_all("half").await
        }
    });
    let (server, address) = serve(&origin, Limits::default());
    let client = Client::connect(address).await;
    let mut sender = client.sender.clone().ready().await.unwrap();
    let (response, _) = sender.send_request(get("/"), true).unwrap();
    let response = guarded("a head", response).await.unwrap();
    let shutdown = tokio::spawn(server.shutdown(std::time::Duration::from_secs(30)));
    let rejected = async {
        // Until GOAWAY arrives, requests are still accepted.
        while client.sender.clone().ready().await.is_ok() {
            tokio::task::yield_now().await;
        }
    };
    guarded("GOAWAY", rejected).await;
    go_on.send(()).unwrap();
    let answer = guarded("the rest", read(response)).await.unwrap();
    assert_eq!(answer.body, b"halfhalf");
    let report = guarded("the end", shutdown).await.unwrap();
    assert_eq!((report.drained, report.cut), (1, 0));
}

/// The client gets an error status if the response has not begun.
#[tokio::test]
async fn what_is_no_response_is_502() {
    for answer in [
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n",
        "HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n",
        "HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\nConnection: upgrade\r\n\r\n",
        "SSH-2.0-OpenSSH\r\n",
        "",
    ] {
        let origin = RawOrigin::answering_once(answer);
        let (server, address) = serve(&origin, Limits::default());
        let mut client = Client::connect(address).await;
        let sent = client.send(get("/"), None, None);
        let got = guarded("a response", sent).await.unwrap();
        assert_eq!((got.status, got.body), (502, b"502 Bad Gateway\n".to_vec()));
        assert_eq!(got.fields["content-length"], "16", "{answer}");
        eventually("no request is left", async || {
            server.metrics().counts().active_requests == 0
        })
        .await;
    }
}

#[tokio::test]
async fn a_reset_of_the_client_reaches_the_destination() {
    let origin = RawOrigin::script(|mut connection| async move {
        connection.read_request().await?;
        connection.wait_for_close().await?;
        Ok(())
    });
    let (server, address) = serve(&origin, Limits::default());
    let mut client = Client::connect(address).await;
    let (response, mut up) = client.begin(post("/")).await;
    guarded("the connection", origin.traffic().wait_for_connections(1)).await;
    guarded("the request", origin.recording(0).wait_for("\r\n\r\n")).await;
    up.send_reset(Reason::CANCEL);
    drop(response);
    guarded("the close", origin.recording(0).outcome())
        .await
        .unwrap();
    let idle = async || server.metrics().counts().active_requests == 0;
    eventually("no request to be left", idle).await;
}

/// RFC 9113 section 8.1.1: the body matches the declared length, or the destination does not get a
/// complete request.
#[tokio::test]
async fn a_body_of_another_length_is_no_request() {
    let origin = RawOrigin::script(|mut connection| async move {
        connection.read_whole_request().await.map(drop)
    });
    let (_server, address) = serve(&origin, Limits::default());
    let mut client = Client::connect(address).await;
    for body in ["ab", "abcd"] {
        let mut request = post("/");
        request
            .headers_mut()
            .insert("content-length", "3".parse().unwrap());
        let sent = client.send(request, Some(body.into()), None);
        let error = guarded("the reset", sent).await.unwrap_err();
        assert_eq!(error.reason(), Some(Reason::PROTOCOL_ERROR), "{body}");
    }
    assert_none_is_whole(&origin).await;
}

#[tokio::test]
async fn a_connection_that_was_closed_meanwhile_is_replaced() {
    let origin = RawOrigin::script(|mut connection| async move {
        let request = connection.read_whole_request().await?;
        assert_eq!(request.1, b"body");
        connection
            .write_all("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")
            .await
    });
    let (_server, address) = serve(&origin, Limits::default());
    let mut client = Client::connect(address).await;
    for _ in 0..20 {
        let sent = client.send(post("/"), Some("body".into()), None);
        let answer = guarded("a response", sent).await.unwrap();
        assert_eq!((answer.status, answer.body), (200, b"ok".to_vec()));
    }
}

#[tokio::test]
async fn interim_responses_are_passed_on() {
    let origin = RawOrigin::script(|mut connection| async move {
        while connection.read_request().await.is_ok() {
            connection
                .write_all(
                    "HTTP/1.1 103 Early Hints\r\nLink: </a.css>\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok",
                )
                .await?;
        }
        Ok(())
    });
    let (_server, address) = serve(&origin, Limits::default());
    let client = Client::connect(address).await;
    for _ in 0..2 {
        let mut sender = client.sender.clone().ready().await.unwrap();
        let (mut response, _) = sender.send_request(get("/"), true).unwrap();
        let early = std::future::poll_fn(|cx| response.poll_informational(cx));
        let early = guarded("the interim response", early)
            .await
            .unwrap()
            .unwrap();
        assert_eq!(early.status(), 103);
        assert_eq!(early.headers()["link"], "</a.css>");
        let answer = guarded("the response", response).await.unwrap();
        assert_eq!(read(answer).await.unwrap().body, b"ok");
    }
}

/// A client that waits for `100 Continue` is told when its body is wanted: by the destination, or by the proxy.
#[tokio::test]
async fn a_body_that_is_expected_is_asked_for() {
    const OK: &str = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok";
    let asking = RawOrigin::script(|mut connection| async move {
        let head = connection.read_request().await?;
        connection
            .write_all("HTTP/1.1 100 Continue\r\n\r\n")
            .await?;
        assert_eq!(connection.read_body(&head).await?, b"hello");
        connection.write_all(OK).await
    });
    let silent = RawOrigin::script(|mut connection| async move {
        connection.read_whole_request().await?;
        connection.write_all(OK).await
    });
    for origin in [asking, silent] {
        for route in [json!({}), json!({ "Layers": ["pass"] })] {
            let (_server, address) = serve_route(&origin, Limits::default(), &route);
            let mut client = Client::connect(address).await;
            let mut request = post("/");
            let fields = request.headers_mut();
            fields.insert("expect", "100-continue".parse().unwrap());
            fields.insert("content-length", 5.into());
            let (mut response, mut stream) = client.begin(request).await;
            let early = std::future::poll_fn(|cx| response.poll_informational(cx));
            let early = guarded("100 Continue", early).await.unwrap().unwrap();
            assert_eq!(early.status(), 100);
            stream.send_data("hello".into(), true).unwrap();
            let answer = guarded("the response", response).await.unwrap();
            assert_eq!(read(answer).await.unwrap().body, b"ok");
        }
    }
}

/// A client that sends the body at once, or gets a response without it, gets no `100 Continue`.
#[tokio::test]
async fn a_body_that_is_not_waited_for_is_not_asked_for() {
    let rejecting = RawOrigin::script(|mut connection| async move {
        connection.read_request().await?;
        let rejection = "HTTP/1.1 409 Conflict\r\nContent-Length: 2\r\n\r\nno";
        connection.write_all(rejection).await?;
        connection.hold().await
    });
    let (_server, address) = serve(&rejecting, Limits::default());
    let mut client = Client::connect(address).await;
    let mut request = post("/");
    let fields = request.headers_mut();
    fields.insert("expect", "100-continue".parse().unwrap());
    let (mut response, _stream) = client.begin(request).await;
    let early = std::future::poll_fn(|cx| response.poll_informational(cx));
    let early = guarded("the response", early).await;
    assert!(early.is_none(), "{early:?}");
    assert_eq!(
        guarded("the response", response).await.unwrap().status(),
        409
    );
}
