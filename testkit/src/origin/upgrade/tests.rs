use tokio::io::{AsyncReadExt, AsyncWriteExt};

use crate::body;
use crate::client::{ClientError, Connection, Message, WebSocket, websocket};
use crate::origin::{Echo, Origin};
use crate::time::guarded;

#[tokio::test]
async fn websocket_messages_come_back() {
    let origin = Origin::upgrade_echo();
    let over_http2 = Connection::http2(origin.addr()).await.unwrap();
    for mut socket in [
        websocket(origin.addr(), "/").await.unwrap(),
        WebSocket::over(over_http2, "/").await.unwrap(),
    ] {
        for message in [Message::text("grüße"), Message::binary(vec![0, 255])] {
            socket.send(message.clone()).await.unwrap();
            assert_eq!(socket.receive().await.unwrap(), Some(message));
        }
        socket.close().await.unwrap();
    }
    origin.traffic().wait_for_open(0).await;
}

#[tokio::test]
async fn other_protocols_are_echoed_as_bytes() {
    let origin = Origin::upgrade_echo();
    let mut client = Connection::http1(origin.addr()).await.unwrap();
    let request = client
        .request("GET", "/")
        .header("connection", "upgrade")
        .header("upgrade", "foo/2")
        .body(body::empty())
        .unwrap();
    let (response, mut io) = client.upgrade(request).await.unwrap();
    assert_eq!(response.headers()["upgrade"], "foo/2");
    io.write_all(b"raw bytes").await.unwrap();
    io.shutdown().await.unwrap();
    let mut echoed = String::new();
    guarded("the echo", io.read_to_string(&mut echoed))
        .await
        .unwrap();
    assert_eq!(echoed, "raw bytes");
}

#[tokio::test]
async fn upgrade_is_rejected_where_it_has_to_be() {
    let origin = Origin::upgrade_echo();
    let mut client = Connection::http1(origin.addr()).await.unwrap();
    assert_eq!(client.get("/").await.unwrap().status, 426);

    // Without extended CONNECT, HTTP/2 has no WebSockets.
    let plain = Origin::echo();
    let client = Connection::http2(plain.addr()).await.unwrap();
    WebSocket::over(client, "/").await.unwrap_err();

    let error = websocket(plain.addr(), "/").await.unwrap_err();
    let ClientError::NotUpgraded(answer) = error else {
        panic!("{error:?}")
    };
    assert_eq!(answer.json::<Echo>().header("upgrade"), ["websocket"]);
}
