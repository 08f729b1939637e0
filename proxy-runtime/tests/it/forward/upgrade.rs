//! WebSockets and other tunnels.

use std::time::Duration;

use http::header::{CONNECTION, UPGRADE};
use serde_json::json;
use testkit::body;
use testkit::client::{ClientError, Message, WebSocket, websocket};
use testkit::faults;
use testkit::origin::{Origin, Protocols};
use testkit::raw::{RawClient, RawOrigin};
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use crate::forward::front::{Front, config, config_with, h2c};

const ASK: &str = "GET /chat HTTP/1.1\r\nHost: h\r\nConnection: keep-alive, Upgrade\r\n\
                   Upgrade: WebSocket\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\
                   Sec-WebSocket-Version: 13\r\n\r\n";

/// The response of an origin that agrees.
const AGREED: &str = "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\
                      Sec-WebSocket-Accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo=\r\n\r\n";

async fn chat(mut socket: WebSocket) {
    socket.send(Message::text("hello")).await.unwrap();
    assert_eq!(
        socket.receive().await.unwrap(),
        Some(Message::text("hello"))
    );
    let binary: Vec<u8> = (0..200_000_u32).map(|i| i as u8).collect();
    socket.send(Message::binary(binary.clone())).await.unwrap();
    assert_eq!(
        socket.receive().await.unwrap(),
        Some(Message::binary(binary))
    );
    socket.close().await.unwrap();
}

#[tokio::test]
async fn n16_messages_pass_unchanged() {
    let origin = Origin::upgrade_echo();
    let front = Front::to(origin.url());
    chat(websocket(front.server.addr(), "/chat").await.unwrap()).await;
    front.settled().await;
    front.connections(0, 0).await;
    let destination = front.destination(0);
    assert_eq!(destination.responses.informational, 1);
    assert!(destination.bytes_sent > 200_000 && destination.bytes_received > 200_000);
    assert!(destination.errors.is_empty(), "{:?}", destination.errors);
}

/// RFC 8441 on the client's side, RFC 6455 on the origin's.
#[tokio::test]
async fn n13_a_websocket_of_http2_reaches_an_origin_of_http1() {
    let origin = Origin::upgrade_echo();
    let front = Front::to(origin.url());
    let socket = WebSocket::over(front.http2().await, "/chat").await.unwrap();
    assert_eq!(socket.response().status(), 200);
    assert!(
        !socket
            .response()
            .headers()
            .contains_key("sec-websocket-accept")
    );
    chat(socket).await;
    front.settled().await;
    front.connections(0, 0).await;
}

/// M09 and M11: of the hop-by-hop fields only the upgrade is left.
#[tokio::test]
async fn m09_m11_only_the_upgrade_is_passed_on() {
    let origin = RawOrigin::script(|mut connection| async move {
        connection.read_request().await?;
        let answer = "HTTP/1.1 101 Switching Protocols\r\nConnection: upgrade, keep-alive\r\n\
                      Upgrade: websocket\r\nKeep-Alive: timeout=5\r\n\
                      Sec-WebSocket-Accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo=\r\n\
                      Sec-WebSocket-Protocol: chat\r\n\r\nfirst";
        connection.write_all(answer).await?;
        connection.never_answer().await
    });
    let front = Front::to(origin.url());
    let mut client = RawClient::connect(front.server.addr()).await.unwrap();
    client.write_all(ASK).await.unwrap();
    let head = client.read_response_head().await.unwrap();
    assert_eq!(head.status, 101);
    assert_eq!(head.header_values("connection"), ["upgrade"]);
    assert_eq!(head.header("upgrade").unwrap().to_lowercase(), "websocket");
    assert!(head.header("keep-alive").is_none());
    assert_eq!(head.header("sec-websocket-protocol"), Some("chat"));
    assert_eq!(
        head.header("sec-websocket-accept"),
        Some("s3pPLMBiTxaQ9kYGzzhZRbK+xOo=")
    );
    // Data that came with the head is part of the tunnel.
    assert_eq!(client.read_exact(5).await.unwrap(), b"first");
    let asked = origin.recording(0).text().to_lowercase();
    assert!(asked.contains("connection: upgrade\r\n"), "{asked}");
    assert!(asked.contains("upgrade: websocket\r\n"), "{asked}");
    assert!(asked.contains("sec-websocket-version: 13\r\n"), "{asked}");
}

/// Frames, close codes, and invalid frames: bytes pass unchanged.
#[tokio::test]
async fn bytes_pass_as_they_are() {
    let close = b"\x88\x86\x00\x00\x00\x00\x0f\xa1gone\x00\xff\r\n\r\nGET / HTTP/1.1";
    let origin = RawOrigin::script(|mut connection| async move {
        connection.read_request().await?;
        connection.write_all(AGREED).await?;
        let bytes = connection.read_exact(32).await?;
        connection.write_all(bytes).await
    });
    assert_eq!(close.len(), 32);
    let front = Front::to(origin.url());
    let mut client = RawClient::connect(front.server.addr()).await.unwrap();
    client.write_all(ASK).await.unwrap();
    assert_eq!(client.read_response_head().await.unwrap().status, 101);
    client.write_all(close).await.unwrap();
    assert_eq!(client.read_exact(32).await.unwrap(), close);
    drop(client);
    front.settled().await;
}

/// Either side may close its direction and still receive.
#[tokio::test]
async fn a_tunnel_can_be_half_closed() {
    let origin = RawOrigin::script(|mut connection| async move {
        connection.read_request().await?;
        let answer =
            "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: SPDY/3.1\r\n\r\n";
        connection.write_all(answer).await?;
        let question = connection.read_to_end().await?;
        connection
            .write_all([b"you said ", question.as_slice()].concat())
            .await
    });
    let front = Front::to(origin.url());
    let mut client = front.http1().await;
    let request = client
        .request("POST", "/exec")
        .header(CONNECTION, "Upgrade")
        .header(UPGRADE, "SPDY/3.1")
        .body(body::empty())
        .unwrap();
    let (response, mut tunnel) = client.upgrade(request).await.unwrap();
    assert_eq!(response.headers()[UPGRADE], "SPDY/3.1");
    tunnel.write_all(b"hello").await.unwrap();
    tunnel.shutdown().await.unwrap();
    let mut answer = String::new();
    tunnel.read_to_string(&mut answer).await.unwrap();
    assert_eq!(answer, "you said hello");
    drop(tunnel);
    front.settled().await;
    front.connections(0, 0).await;
}

/// L23: a rejection is a normal response, and the connection stays open.
#[tokio::test]
async fn l23_a_rejected_upgrade_is_an_ordinary_response() {
    let origin = RawOrigin::answering("HTTP/1.1 403 Forbidden\r\nContent-Length: 2\r\n\r\nno");
    let front = Front::to(origin.url());
    let mut client = RawClient::connect(front.server.addr()).await.unwrap();
    // Data after the request is the next request, since the protocol was not switched.
    client
        .write_all([ASK, "GET /next HTTP/1.1\r\nHost: h\r\n\r\n"].concat())
        .await
        .unwrap();
    for _ in 0..2 {
        let response = client.read_response().await.unwrap();
        assert_eq!((response.status(), response.text().as_str()), (403, "no"));
    }
    assert_eq!(origin.traffic().requests(), 2);
    front.settled().await;

    let error = WebSocket::over(front.http2().await, "/chat")
        .await
        .unwrap_err();
    match error {
        ClientError::NotUpgraded(answer) => assert_eq!(answer.status, 403),
        other => panic!("{}", other.chain()),
    }
}

/// Servers disagree on whether a body belongs to the request or to the data after the switch.
#[tokio::test]
async fn an_upgrade_with_a_body_is_rejected() {
    let origin = Origin::upgrade_echo();
    let front = Front::to(origin.url());
    for framing in ["Content-Length: 5", "Transfer-Encoding: chunked"] {
        let mut client = RawClient::connect(front.server.addr()).await.unwrap();
        let request = ASK.replace("\r\n\r\n", &format!("\r\n{framing}\r\n\r\n"));
        client.write_all(request).await.unwrap();
        assert_eq!(
            client.read_response_head().await.unwrap().status,
            400,
            "{framing}"
        );
    }
    assert_eq!(origin.traffic().requests(), 0);
}

#[tokio::test(start_paused = true)]
async fn l22_an_idle_tunnel_is_closed() {
    let origin = Origin::upgrade_echo();
    let settings = json!({ "HttpRequest": { "ActivityTimeout": "00:00:10" } });
    let front = Front::start(&config_with(&[&origin.url()], &settings));
    let mut socket = websocket(front.server.addr(), "/").await.unwrap();
    for _ in 0..30 {
        tokio::time::sleep(Duration::from_secs(1)).await;
        socket.send(Message::text("still here")).await.unwrap();
        assert!(socket.receive().await.unwrap().is_some());
    }
    assert!(socket.receive().await.is_err(), "closed without a word");
    front.settled().await;
    front.wait_for_errors("UpgradeActivityTimeout", 1).await;
    front.connections(0, 0).await;
}

/// L20, L21: if either side fails, the other one is closed, with distinct errors.
#[tokio::test]
async fn a_broken_tunnel_closes_both_sides() {
    let origin = RawOrigin::script(|mut connection| async move {
        connection.read_request().await?;
        connection.write_all(AGREED).await?;
        connection.read_some().await?;
        connection.reset();
        Ok(())
    });
    let front = Front::to(origin.url());
    let mut client = RawClient::connect(front.server.addr()).await.unwrap();
    client.write_all(ASK).await.unwrap();
    assert_eq!(client.read_response_head().await.unwrap().status, 101);
    client.write_all("go").await.unwrap();
    client.assert_closed().await;
    front.settled().await;
    let broken: u64 = ["UpgradeResponseDestination", "UpgradeRequestDestination"]
        .iter()
        .map(|kind| front.errors(kind))
        .sum();
    assert_eq!(broken, 1);

    let origin = Origin::upgrade_echo();
    let front = Front::to(origin.url());
    let mut client = RawClient::connect(front.server.addr()).await.unwrap();
    client.write_all(ASK).await.unwrap();
    assert_eq!(client.read_response_head().await.unwrap().status, 101);
    client.reset();
    front.settled().await;
    front.connections(0, 0).await;
}

/// N13: the key is validated.
#[tokio::test]
async fn n13_a_wrong_key_over_http2_is_400_and_a_wrong_proof_502() {
    let origin = Origin::upgrade_echo();
    let front = Front::to(origin.url());
    let mut client = front.http2().await;
    let ask = |client: &testkit::client::Connection| {
        client
            .request("CONNECT", "/chat")
            .extension(hyper::ext::Protocol::from_static("websocket"))
            .header("sec-websocket-version", "13")
    };
    let request = ask(&client)
        .header("sec-websocket-key", "Foo")
        .body(body::empty())
        .unwrap();
    match client.upgrade(request).await.unwrap_err() {
        ClientError::NotUpgraded(answer) => assert_eq!(answer.status, 400),
        other => panic!("{}", other.chain()),
    }

    let liar = RawOrigin::answering(
        "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\
         Sec-WebSocket-Accept: nonsense\r\n\r\n",
    );
    let front = Front::to(liar.url());
    let mut client = front.http2().await;
    let request = ask(&client).body(body::empty()).unwrap();
    match client.upgrade(request).await.unwrap_err() {
        ClientError::NotUpgraded(answer) => assert_eq!(answer.status, 502),
        other => panic!("{}", other.chain()),
    }
    front.settled().await;
    assert_eq!(front.errors("ResponseHeaders"), 1);
}

/// A cluster with HTTP/2 only has WebSockets nevertheless, if its destinations support RFC 8441.
#[tokio::test]
async fn n08_a_websocket_reaches_an_origin_of_http2() {
    let origin = Origin::builder()
        .protocols(Protocols::Http2)
        .extended_connect(true)
        .start_upgrade_echo();
    let front = Front::start(&config_with(&[&origin.url()], &h2c()));
    for client in [front.http1().await, front.http2().await] {
        chat(WebSocket::over(client, "/chat").await.unwrap()).await;
        front.settled().await;
    }
    assert_eq!(
        origin.traffic().counts().accepted,
        1,
        "streams of one connection"
    );
    assert_eq!(front.destination(0).connections, 1);
    let errors = front.destination(0).errors;
    assert!(errors.is_empty(), "{errors:?}");
}

/// Any 2xx begins the tunnel (RFC 8441 section 5).
#[tokio::test]
async fn an_origin_of_http2_may_agree_with_any_success() {
    for status in ["200", "202"] {
        let origin = faults::h2::agrees_with(status);
        let front = Front::start(&config_with(&[&origin.url()], &h2c()));
        let mut client = RawClient::connect(front.server.addr()).await.unwrap();
        client.write_all(ASK).await.unwrap();
        let head = client.read_response_head().await.unwrap();
        assert_eq!(head.status, 101, "{status}");
        let first = client.read_exact(faults::PARTIAL.len()).await.unwrap();
        assert_eq!(first, faults::PARTIAL.as_bytes());
    }
}

/// N07, N08: 502, without a hang.
#[tokio::test]
async fn n07_an_origin_without_websockets_over_http2_is_502() {
    let http1 = Origin::builder()
        .protocols(Protocols::Http1)
        .start_upgrade_echo();
    let plain = Origin::builder().protocols(Protocols::Http2).start_echo();
    for origin in [http1, plain] {
        let front = Front::start(&config_with(&[&origin.url()], &h2c()));
        for client in [front.http1().await, front.http2().await] {
            match WebSocket::over(client, "/chat").await.unwrap_err() {
                ClientError::NotUpgraded(answer) => assert_eq!(answer.status, 502),
                other => panic!("{}", other.chain()),
            }
        }
        front.settled().await;
        assert_eq!(front.errors("Request"), 2);
    }
}

#[tokio::test]
async fn n14_a_wrong_key_is_not_sent_to_an_origin_of_http2() {
    let origin = Origin::upgrade_echo();
    let front = Front::start(&config_with(&[&origin.url()], &h2c()));
    let mut client = RawClient::connect(front.server.addr()).await.unwrap();
    client
        .write_all(ASK.replace("dGhlIHNhbXBsZSBub25jZQ==", "Foo"))
        .await
        .unwrap();
    assert_eq!(client.read_response().await.unwrap().status(), 400);
    assert_eq!(origin.traffic().requests(), 0);
}

/// L19, N10: an upgrade that the cluster's version does not support.
#[tokio::test]
async fn l19_an_upgrade_that_needs_http1_where_that_is_forbidden_is_502() {
    let origin = Origin::upgrade_echo();
    let version3 =
        json!({ "HttpRequest": { "Version": "3", "VersionPolicy": "RequestVersionExact" } });
    for (settings, protocol, error) in [
        (h2c(), "SPDY/3.1", "RequestRejected"),
        (version3, "websocket", "RequestCreation"),
    ] {
        let front = Front::start(&config_with(&[&origin.url()], &settings));
        let mut client = RawClient::connect(front.server.addr()).await.unwrap();
        client
            .write_all(ASK.replace("WebSocket\r", &format!("{protocol}\r")))
            .await
            .unwrap();
        assert_eq!(client.read_response().await.unwrap().status(), 502);
        front.settled().await;
        assert_eq!(front.errors(error), 1);
    }
    assert_eq!(origin.traffic().requests(), 0);
}

#[tokio::test]
async fn an_origin_that_does_not_answer_an_upgrade_is_502() {
    let origin = faults::closes_before_answer();
    let front = Front::start(&config(&[&origin.url()]));
    let error = websocket(front.server.addr(), "/").await.unwrap_err();
    match error {
        ClientError::NotUpgraded(answer) => assert_eq!(answer.status, 502),
        other => panic!("{}", other.chain()),
    }
    front.settled().await;
}

#[tokio::test]
async fn a_tunnel_is_of_the_protocol_that_was_asked_for() {
    let origin = RawOrigin::script(|mut connection| async move {
        let head = connection.read_request().await?;
        let answer = match head.header("upgrade") {
            Some(_) => {
                "HTTP/1.1 101 Switching Protocols\r\nConnection: upgrade\r\nUpgrade: h2c\r\n\r\nfirst"
            }
            None => "HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 0\r\n\r\n",
        };
        connection.write_all(answer).await?;
        connection.close();
        Ok(())
    });
    let front = Front::to(origin.url());
    // A list of protocols is not forwarded; a switch to an unrequested protocol is an invalid
    // response.
    for (asked, status) in [("SPDY/3.1, h2c", 200), ("websocket", 502)] {
        let mut client = RawClient::connect(front.server.addr()).await.unwrap();
        let request = format!(
            "GET /chat HTTP/1.1\r\nHost: h\r\nConnection: Upgrade\r\nUpgrade: {asked}\r\n\
             Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n"
        );
        client.write_all(request).await.unwrap();
        let head = client.read_response_head().await.unwrap();
        assert_eq!(head.status, status, "{asked}");
    }
}
