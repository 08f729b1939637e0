#[cfg(test)]
mod tests;

use futures_util::{SinkExt, StreamExt};
use http::header::{CONNECTION, SEC_WEBSOCKET_ACCEPT, SEC_WEBSOCKET_KEY, UPGRADE};
use http::{HeaderValue, Method, Request, Response, StatusCode};
use hyper::ext::Protocol;
use hyper::upgrade::Upgraded;
use hyper_util::rt::TokioIo;
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::handshake::derive_accept_key;
use tokio_tungstenite::tungstenite::protocol::Role;

use super::Incoming;
use crate::body::{self, Body};
use crate::tasks::Spawner;

/// The `Sec-WebSocket-Accept` for a `Sec-WebSocket-Key` (RFC 6455 section 4.2.2).
pub fn websocket_accept(key: &str) -> String {
    derive_accept_key(key.as_bytes())
}

pub(super) fn answer(mut request: Request<Incoming>, spawner: &Spawner) -> Response<Body> {
    let extended = request.extensions().get::<Protocol>().cloned();
    let protocol = match (&extended, request.headers().get(UPGRADE)) {
        (Some(protocol), _) if request.method() == Method::CONNECT => protocol.as_str().to_owned(),
        (_, Some(asked)) => String::from_utf8_lossy(asked.as_bytes()).into_owned(),
        _ => return status(StatusCode::UPGRADE_REQUIRED),
    };
    let websocket = protocol.eq_ignore_ascii_case("websocket");
    let key = request.headers().get(SEC_WEBSOCKET_KEY).cloned();
    if websocket && extended.is_none() && key.is_none() {
        // Over HTTP/1.1 the key is required (RFC 6455 4.2.1).
        return status(StatusCode::BAD_REQUEST);
    }
    let upgrade = hyper::upgrade::on(&mut request);
    spawner.spawn(async move {
        if let Ok(upgraded) = upgrade.await {
            if websocket {
                echo_messages(upgraded).await;
            } else {
                echo_bytes(upgraded).await;
            }
        }
    });
    if extended.is_some() {
        // A 2xx opens the tunnel; HTTP/2 has neither Upgrade nor the accept key (RFC 8441 5).
        return status(StatusCode::OK);
    }
    let mut answer = status(StatusCode::SWITCHING_PROTOCOLS);
    let headers = answer.headers_mut();
    headers.insert(CONNECTION, HeaderValue::from_static("Upgrade"));
    if let Ok(protocol) = HeaderValue::from_str(&protocol) {
        headers.insert(UPGRADE, protocol);
    }
    if let Some(key) = key.filter(|_| websocket) {
        let accept = derive_accept_key(key.as_bytes());
        let accept = HeaderValue::from_str(&accept).expect("Base64 is a valid header value");
        headers.insert(SEC_WEBSOCKET_ACCEPT, accept);
    }
    answer
}

fn status(status: StatusCode) -> Response<Body> {
    let mut answer = Response::new(body::empty());
    *answer.status_mut() = status;
    answer
}

/// Echoes until the other side closes; the protocol acknowledges close frames.
async fn echo_messages(upgraded: Upgraded) {
    let io = TokioIo::new(upgraded);
    let mut socket = WebSocketStream::from_raw_socket(io, Role::Server, None).await;
    while let Some(Ok(message)) = socket.next().await {
        if (message.is_text() || message.is_binary()) && socket.send(message).await.is_err() {
            return;
        }
    }
}

/// Echoes until the other side ends its direction; then this side ends too.
async fn echo_bytes(upgraded: Upgraded) {
    use tokio::io::AsyncWriteExt;

    let (mut read, mut write) = tokio::io::split(TokioIo::new(upgraded));
    if tokio::io::copy(&mut read, &mut write).await.is_ok() {
        let _ = write.shutdown().await;
    }
}
