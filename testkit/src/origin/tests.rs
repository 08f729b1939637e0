use std::io::ErrorKind;
use std::time::Duration;

use http::{HeaderMap, HeaderValue, Request, Response};
use http_body_util::BodyExt;
use tokio::sync::oneshot;

use super::{ConnectionInfo, Echo, Incoming, Origin, Protocols};
use crate::body;
use crate::certs::{Alpn, CertificateAuthority};
use crate::client::{ClientError, Connection, Protocol};
use crate::raw::{RawClient, frame};
use crate::time::guarded;

#[tokio::test]
async fn both_protocols_on_one_port() {
    let origin = Origin::echo();
    let mut versions = Vec::new();
    for mut client in [
        Connection::http1(origin.addr()).await.unwrap(),
        Connection::http2(origin.addr()).await.unwrap(),
    ] {
        versions.push(client.get("/").await.unwrap().json::<Echo>().version);
    }
    assert_eq!(versions, ["HTTP/1.1", "HTTP/2.0"]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn works_on_several_threads() {
    let origin = Origin::echo();
    let tasks: Vec<_> = (0..8)
        .map(|n| {
            let addr = origin.addr();
            tokio::spawn(async move {
                let mut client = Connection::http2(addr).await.unwrap();
                let path = format!("/{n}");
                let echo: Echo = client.get(&path).await.unwrap().json();
                assert_eq!(echo.path_and_query(), path);
            })
        })
        .collect();
    for task in tasks {
        task.await.unwrap();
    }
    assert_eq!(origin.traffic().counts().accepted, 8);
    origin.traffic().wait_for_open(0).await;
}

#[tokio::test]
async fn tls_agrees_on_the_protocol_by_alpn() {
    let ca = CertificateAuthority::new("ca");
    let server = ca.issue(&["a.example"]).server_config(Alpn::Both);
    let origin = Origin::builder().tls(server).start_echo();
    let cases = [
        (Alpn::Both, Protocol::Http2, Some("h2")),
        (Alpn::Http1, Protocol::Http1, Some("http/1.1")),
        (Alpn::Absent, Protocol::Http1, None),
    ];
    for (alpn, protocol, agreed) in cases {
        let config = ca.client_config(alpn);
        let mut client = Connection::tls(origin.addr(), "a.example", config)
            .await
            .unwrap();
        assert_eq!(client.protocol(), protocol);
        let echo: Echo = client.get("/").await.unwrap().json();
        assert_eq!(echo.alpn.as_deref(), agreed);
        assert_eq!(echo.server_name.as_deref(), Some("a.example"));
    }
}

#[tokio::test]
async fn protocols_can_be_limited() {
    let origin = Origin::builder().protocols(Protocols::Http1).start_echo();
    let mut raw = RawClient::connect(origin.addr()).await.unwrap();
    raw.write_all(frame::PREFACE).await.unwrap();
    // Anything but a SETTINGS frame.
    assert!(!raw.read_to_end().await.unwrap().starts_with(&[0, 0]));

    let origin = Origin::builder().protocols(Protocols::Http2).start_echo();
    let mut client = Connection::http1(origin.addr()).await.unwrap();
    client.get("/").await.unwrap_err();
}

#[tokio::test]
async fn echo_tells_all_of_a_request() {
    let origin = Origin::echo();
    for mut client in [
        Connection::http1(origin.addr()).await.unwrap(),
        Connection::http2(origin.addr()).await.unwrap(),
    ] {
        let trailers = HeaderMap::from_iter([(
            http::HeaderName::from_static("x-sum"),
            HeaderValue::from_static("7"),
        )]);
        let request = client
            .request_for("b.example", "PUT", "/p?q=%20")
            .header("x-many", "1, 2")
            .header("x-many", "")
            .header("x-latin", HeaderValue::from_bytes(b"\xe9").unwrap())
            .header("trailer", "x-sum")
            .body(body::with_trailers("hello", trailers))
            .unwrap();
        let echo: Echo = client.send(request).await.unwrap().json();
        assert_eq!(
            (echo.method.as_str(), echo.path_and_query()),
            ("PUT", "/p?q=%20")
        );
        assert_eq!(echo.header("X-Many"), ["1, 2", ""]);
        assert_eq!(echo.header("x-latin"), ["é"]);
        assert_eq!(
            (echo.body_length, echo.body_text.as_deref()),
            (5, Some("hello"))
        );
        assert_eq!(echo.body_sha256, Echo::sha256(b"hello"));
        assert_eq!(echo.trailers, [("x-sum".to_owned(), "7".to_owned())]);
        assert_eq!(echo.peer, client.local_addr().to_string());
        let authority = match client.protocol() {
            Protocol::Http1 => echo.header("host"),
            Protocol::Http2 => vec![echo.uri.split('/').nth(2).unwrap()],
        };
        assert_eq!(authority, ["b.example"]);
    }
}

#[tokio::test]
async fn echo_of_a_large_body_has_no_text() {
    let origin = Origin::echo();
    let mut client = Connection::http1(origin.addr()).await.unwrap();
    let large = vec![b'x'; 3 << 20];
    let sha256 = Echo::sha256(&large);
    let request = client.request("POST", "/").body(body::full(large)).unwrap();
    let echo: Echo = client.send(request).await.unwrap().json();
    assert_eq!((echo.body_length, echo.body_text), (3 << 20, None));
    assert_eq!(echo.body_sha256, sha256);
}

#[tokio::test(start_paused = true)]
async fn transfers_inside_one_process_take_no_virtual_time() {
    let mirror = |request: Request<Incoming>| async move { Response::new(request.into_body()) };
    let ca = CertificateAuthority::new("ca");
    let plain = Origin::start(mirror);
    let server = ca.issue(&["127.0.0.1"]).server_config(Alpn::Both);
    let tls = Origin::builder().tls(server).start(mirror);
    let trusting = ca.client_config(Alpn::Both);
    let start = tokio::time::Instant::now();
    for mut client in [
        Connection::http1(plain.addr()).await.unwrap(),
        Connection::http2(plain.addr()).await.unwrap(),
        Connection::tls(tls.addr(), "127.0.0.1", trusting)
            .await
            .unwrap(),
    ] {
        // More than the buffers and windows hold, so both sides have to wait for each other.
        let upload = body::full(vec![b'x'; 32 << 20]);
        let request = client.request("POST", "/").body(upload).unwrap();
        assert_eq!(client.send(request).await.unwrap().body.len(), 32 << 20);
    }
    assert_eq!(start.elapsed(), Duration::ZERO);
}

#[tokio::test]
async fn echo_reports_a_body_that_breaks_off() {
    let origin = Origin::start(|request| async move {
        let collected = request.into_body().collect().await;
        Response::new(body::full(collected.is_err().to_string()))
    });
    let mut raw = RawClient::connect(origin.addr()).await.unwrap();
    raw.write_all("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 9\r\n\r\nhello")
        .await
        .unwrap();
    raw.half_close().await.unwrap();
    assert_eq!(raw.read_response().await.unwrap().text(), "true");
}

#[tokio::test]
async fn connections_and_requests_are_counted() {
    let origin = Origin::echo();
    let traffic = origin.traffic();
    let mut first = Connection::http1(origin.addr()).await.unwrap();
    let mut second = Connection::http2(origin.addr()).await.unwrap();
    for _ in 0..3 {
        assert_eq!(first.get("/").await.unwrap().json::<Echo>().connection, 0);
    }
    assert_eq!(second.get("/").await.unwrap().json::<Echo>().connection, 1);
    assert_eq!(traffic.wait_for_connections(2).await.open(), 2);
    assert_eq!(traffic.requests(), 4);
    drop(first);
    assert_eq!(traffic.wait_for_closed(1).await.open(), 1);
    drop(second);
    traffic.wait_for_open(0).await;
}

#[tokio::test]
async fn dropping_the_origin_drops_handlers_and_connections() {
    for http2 in [false, true] {
        let (held, dropped) = oneshot::channel::<()>();
        let held = std::sync::Arc::new(parking_lot::Mutex::new(Some(held)));
        let origin = Origin::start(move |_| {
            let held = held.lock().take();
            async move {
                let _keep = held;
                std::future::pending::<Response<body::Body>>().await
            }
        });
        let mut client = match http2 {
            false => Connection::http1(origin.addr()).await.unwrap(),
            true => Connection::http2(origin.addr()).await.unwrap(),
        };
        let traffic = origin.traffic().clone();
        let ended = client.closed();
        let stop = async {
            traffic.wait_for_requests(1).await;
            drop(origin);
        };
        let (answer, ()) = tokio::join!(client.get("/"), stop);
        answer.unwrap_err();
        guarded("the handler's end", dropped).await.unwrap_err();
        ended.await;
        assert_eq!(traffic.counts().open(), 0);
    }
}

#[tokio::test]
async fn stopped_origin_rejects_and_can_come_back_on_its_port() {
    let addr = std::net::SocketAddr::from(([127, 0, 0, 1], crate::peers::free_port()));
    let origin = Origin::builder().bind(addr).start_named("a");
    let mut client = Connection::http1(addr).await.unwrap();
    client.get("/").await.unwrap();
    origin.stop().await;
    let error = Connection::http1(addr).await.unwrap_err();
    let ClientError::Connect(error) = error else {
        panic!("{error:?}")
    };
    assert_eq!(error.kind(), ErrorKind::ConnectionRefused);

    let again = Origin::builder().bind(addr).start_named("b");
    let mut client = Connection::http1(again.addr()).await.unwrap();
    assert_eq!(client.get("/").await.unwrap().text(), "b");
}

#[tokio::test]
async fn draining_ends_connections_after_their_exchange() {
    let (answer, wait) = oneshot::channel::<()>();
    let wait = std::sync::Arc::new(tokio::sync::Mutex::new(Some(wait)));
    let origin = Origin::start(move |_| {
        let wait = std::sync::Arc::clone(&wait);
        async move {
            let wait = wait.lock().await.take();
            if let Some(wait) = wait {
                let _ = wait.await;
            }
            Response::new(body::full("done"))
        }
    });
    let mut busy = Connection::http1(origin.addr()).await.unwrap();
    let idle = Connection::http2(origin.addr()).await.unwrap();
    let traffic = origin.traffic().clone();
    let drain = async {
        traffic.wait_for_requests(1).await;
        traffic.wait_for_connections(2).await;
        origin.drain();
        idle.closed().await;
        answer.send(()).unwrap();
    };
    let (done, ()) = tokio::join!(busy.get("/"), drain);
    let done = done.unwrap();
    assert_eq!(
        (done.text().as_str(), done.header("connection")),
        ("done", Some("close"))
    );
    busy.closed().await;
    // Later connections are served normally.
    let mut later = Connection::http1(origin.addr()).await.unwrap();
    for _ in 0..2 {
        assert_eq!(later.get("/").await.unwrap().header("connection"), None);
    }
}

#[tokio::test]
async fn failing_body_is_seen_as_a_broken_answer() {
    let origin = Origin::start(|_| async {
        let error = h2::Error::from(h2::Reason::ENHANCE_YOUR_CALM);
        Response::new(body::failing("half", error))
    });
    let mut client = Connection::http1(origin.addr()).await.unwrap();
    let error = client.get("/").await.unwrap_err();
    assert_eq!(error.truncated().unwrap().text(), "half");

    let mut client = Connection::http2(origin.addr()).await.unwrap();
    let error = client.get("/").await.unwrap_err();
    assert_eq!(error.h2_reason(), Some(h2::Reason::ENHANCE_YOUR_CALM));
}

#[tokio::test]
async fn body_channel_streams_under_the_tests_control() {
    let origin = Origin::start(|request| async move { Response::new(request.into_body()) });
    for mut client in [
        Connection::http1(origin.addr()).await.unwrap(),
        Connection::http2(origin.addr()).await.unwrap(),
    ] {
        let (mut sender, upload) = body::channel(1);
        let request = client.request("POST", "/").body(upload).unwrap();
        let response = client.send_streaming(request).await.unwrap();
        let mut mirrored = response.into_body();
        for piece in ["one", "two"] {
            sender.send_data(piece.into()).await.unwrap();
            let frame = guarded("the piece to come back", mirrored.frame()).await;
            assert_eq!(frame.unwrap().unwrap().into_data().unwrap(), piece);
        }
        drop(sender);
        let rest = guarded("the end", mirrored.collect()).await.unwrap();
        assert!(rest.to_bytes().is_empty());
    }
}

#[tokio::test]
async fn endless_body_stops_with_its_reader() {
    let origin = Origin::start(|_| async { Response::new(body::endless("more")) });
    let mut client = Connection::http1(origin.addr()).await.unwrap();
    let request = client.request("GET", "/").body(body::empty()).unwrap();
    let mut body = client.send_streaming(request).await.unwrap().into_body();
    for _ in 0..100 {
        assert!(
            body.frame()
                .await
                .unwrap()
                .unwrap()
                .into_data()
                .unwrap()
                .starts_with(b"more")
        );
    }
    drop((body, client));
    origin.traffic().wait_for_open(0).await;
}

#[tokio::test]
async fn handler_sees_the_clients_certificate() {
    let ca = CertificateAuthority::new("ca");
    let server = ca
        .issue(&["127.0.0.1"])
        .server_config_requiring(&ca, Alpn::Both);
    let origin = Origin::builder().tls(server).start(|request| async move {
        let info = request
            .extensions()
            .get::<ConnectionInfo>()
            .unwrap()
            .clone();
        Response::new(body::full(info.client_certificate.unwrap().to_vec()))
    });
    let alice = ca.issue_client("alice");
    let config = ca.client_config_with(&alice, Alpn::Both);
    let mut client = Connection::tls(origin.addr(), "127.0.0.1", config)
        .await
        .unwrap();
    assert_eq!(
        client.get("/").await.unwrap().body,
        alice.certificate().as_ref()
    );
}

#[tokio::test]
async fn failed_handshake_is_counted() {
    let ca = CertificateAuthority::new("ca");
    let origin = Origin::builder()
        .tls(ca.issue(&["127.0.0.1"]).server_config(Alpn::Both))
        .ipv6()
        .start_echo();
    assert!(origin.addr().is_ipv6());
    let mut raw = RawClient::connect(origin.addr()).await.unwrap();
    raw.write_all("GET / HTTP/1.1\r\n\r\n").await.unwrap();
    let counts = origin.traffic().wait_for_closed(1).await;
    assert_eq!((counts.failed_handshakes, counts.requests), (1, 0));
}
