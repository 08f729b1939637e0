//! HTTP/2 streams that are rejected, and clients that open too many.

use std::net::SocketAddr;

use bytes::Bytes;
use h2::Reason;
use http::{HeaderMap, HeaderName};
use http_body_util::BodyExt;
use proxy_runtime::server::{Http2Limits, Limits};
use serde_json::json;
use testkit::raw::frame::{self, Frame};
use testkit::raw::{RawClient, RawOrigin};
use testkit::time::{eventually, guarded};

use crate::changed;
use crate::server::streams::{Client, post, serve};
use crate::server::support::{self, Handler, text};
use crate::server::ways::{OK, as_bytes, over_types, proxy};

/// CVE-2023-44487, by a client that waits until each request has reached its destination.
#[tokio::test]
async fn a_client_that_resets_what_is_served_has_an_end() {
    const MOST: u32 = 30;
    let origin = RawOrigin::script(|mut connection| async move {
        connection.read_request().await?;
        connection.wait_for_close().await?;
        Ok(())
    });
    let http2 = changed(|http2: &mut Http2Limits| http2.resets_per_connection = MOST);
    let (server, address) = serve(&origin, changed(|limits: &mut Limits| limits.http2 = http2));
    let client = Client::connect(address).await;
    let mut sent = 0;
    let reason = loop {
        let Ok(mut sender) = client.sender.clone().ready().await else {
            break client.sender.ready().await.unwrap_err().reason();
        };
        let Ok((response, mut up)) = sender.send_request(post("/"), false) else {
            continue;
        };
        sent += 1;
        assert!(sent <= MOST + 2, "it goes on");
        let number = sent as usize - 1;
        let arrived = async {
            let connected = origin.traffic().wait_for_connections(u64::from(sent));
            guarded("a connection", connected).await;
            guarded("a request", origin.recording(number).wait_for("\r\n\r\n")).await;
        };
        tokio::select! {
            _ = response => continue,
            () = arrived => {}
        }
        up.send_reset(Reason::CANCEL);
        // The next request comes after the close was detected.
        guarded("the close", origin.recording(number).outcome())
            .await
            .unwrap();
    };
    assert_eq!(reason, Some(Reason::ENHANCE_YOUR_CALM));
    assert!(sent > MOST, "it ends after {sent}");
    assert!(origin.recordings().len() <= MOST as usize + 2);
    let gone = async || server.metrics().counts().active_connections == 0;
    eventually("the connection to be gone", gone).await;
    eventually("no request is left", async || {
        server.metrics().counts().active_requests == 0
    })
    .await;
}

/// Trailer fields have the limit of header fields.
#[tokio::test]
async fn too_many_trailer_fields_are_431() {
    for serve in [as_bytes, over_types] {
        let origin = RawOrigin::answering(OK);
        let server = serve(&proxy(&origin, &json!({}), ""));
        let mut client = Client::connect(server.local_addrs()[0]).await;
        for (count, status) in [(100, 200), (101, 431)] {
            let mut trailers = HeaderMap::new();
            for _ in 0..count {
                trailers.append("x-sum", "1".parse().unwrap());
            }
            let body = Some(Bytes::from_static(b"body"));
            let sent = client.send(post("/"), body, Some(trailers));
            let answer = guarded("an answer", sent).await.unwrap();
            assert_eq!(answer.status, status, "{count}");
        }
    }
}

/// RFC 9110 section 6.5.1: a service might use such fields, although nothing expects them after a
/// body.
#[tokio::test]
async fn trailers_name_neither_hosts_nor_senders() {
    let names = Handler::new(|request| async move {
        let body = request.into_body().collect().await.unwrap();
        let names = body.trailers().unwrap().keys().map(HeaderName::as_str);
        text(&names.collect::<Vec<_>>().join(" "))
    });
    let (_server, address) = support::serve(names, Limits::default());
    let mut client = Client::connect(address).await;
    let mut trailers = HeaderMap::new();
    for name in [
        "x-sum",
        "host",
        "authorization",
        "x-forwarded-for",
        "x_forwarded_for",
        "cookie",
    ] {
        trailers.append(name, "1".parse().unwrap());
    }
    let body = Some(Bytes::from_static(b"body"));
    let sent = client.send(post("/"), body, Some(trailers));
    let answer = guarded("an answer", sent).await.unwrap();
    assert_eq!(answer.body, b"x-sum");
}

/// RFC 9113 section 8.2.2, and section 8.3 for what has no authority.
#[tokio::test]
async fn malformed_requests_are_rejected() {
    let origin = RawOrigin::answering("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n");
    let (_server, address) = serve(&origin, Limits::default());
    let complete = [
        (":method", "GET"),
        (":scheme", "http"),
        (":authority", "t"),
        (":path", "/"),
    ];
    for (name, pseudo, field) in [
        (
            "connection",
            complete.as_slice(),
            Some(("connection", "close")),
        ),
        ("coding", &complete, Some(("transfer-encoding", "chunked"))),
        ("te", &complete, Some(("te", "gzip"))),
        ("upper case", &complete, Some(("X", "1"))),
        ("no path", &complete[..3], None),
    ] {
        let fields: Vec<_> = pseudo.iter().copied().chain(field).collect();
        let mut raw = open(address).await;
        let head = Frame::headers(1, &fields, true).encode();
        raw.write_all(head).await.unwrap();
        let rejection = guarded(format!("the rejection of {name}"), rejection(&mut raw)).await;
        assert_eq!(rejection, frame::PROTOCOL_ERROR, "{name}");
    }
    assert!(origin.recordings().is_empty(), "nothing was sent on");
}

async fn open(address: SocketAddr) -> RawClient {
    let mut raw = RawClient::connect(address).await.unwrap();
    raw.write_all(frame::PREFACE).await.unwrap();
    let settings = Frame::settings(&[]).encode();
    raw.write_all(settings).await.unwrap();
    raw
}

/// The error code with which the stream, or the connection, ends.
async fn rejection(raw: &mut RawClient) -> u32 {
    loop {
        let frame = raw.read_frame().await.unwrap();
        if let Some(code) = frame.error_code() {
            return code;
        }
    }
}

/// CVE-2024-27316 and similar: a head that never ends.
#[tokio::test]
async fn a_flood_of_continuation_ends_the_connection() {
    let origin = RawOrigin::answering("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n");
    let (server, address) = serve(&origin, Limits::default());
    let mut raw = open(address).await;
    let head = [
        (":method", "GET"),
        (":scheme", "http"),
        (":path", "/"),
        (":authority", "t"),
    ];
    let begin = Frame::new(
        frame::HEADERS,
        frame::END_STREAM,
        1,
        frame::header_block(&head),
    );
    raw.write_all(begin.encode()).await.unwrap();
    let block = frame::header_block(&[("a", &"x".repeat(256))]);
    let part = Frame::new(frame::CONTINUATION, 0, 1, block).encode();
    let flood = async {
        // The server stops reading at some point, and closes.
        while raw.write_all(&part).await.is_ok() {}
    };
    guarded("the end of the flood", flood).await;
    let gone = async || server.metrics().counts().active_connections == 0;
    eventually("the connection to be gone", gone).await;
    assert_eq!(server.metrics().counts().requests, 0);
}
