//! The origin over HTTP/2 with prior knowledge.

use std::io;
use std::sync::atomic::{AtomicBool, Ordering};

use ::h2::server::{SendResponse, handshake};
use bytes::Bytes;
use http::{Request, Response, StatusCode};
use tokio::net::{TcpListener, TcpStream};
use tokio::runtime::Builder;
use tokio::task::{LocalSet, spawn_local};
use tokio::time::sleep;

use super::LOOK;
use super::reply::Resource;

/// Serves the listeners until `stop` is true.
pub(super) fn serve(listeners: Vec<std::net::TcpListener>, stop: &AtomicBool) -> io::Result<()> {
    let runtime = Builder::new_current_thread().enable_all().build()?;
    LocalSet::new().block_on(&runtime, async {
        for listener in listeners {
            spawn_local(accept(TcpListener::from_std(listener)?));
        }
        while !stop.load(Ordering::Relaxed) {
            sleep(LOOK).await;
        }
        Ok(())
    })
}

async fn accept(listener: TcpListener) {
    loop {
        // The proxy may close a connection before it is accepted.
        if let Ok((socket, _)) = listener.accept().await {
            spawn_local(connection(socket));
        }
    }
}

/// Serves a connection until its end or an error: the proxy notices either.
async fn connection(socket: TcpStream) {
    let _ = socket.set_nodelay(true);
    let Ok(mut connection) = handshake(socket).await else {
        return;
    };
    while let Some(Ok((request, respond))) = connection.accept().await {
        if answer(&request, respond).is_err() {
            return;
        }
    }
}

/// Answers with the four fields of the origin of HTTP/1.1.
fn answer<B>(request: &Request<B>, mut respond: SendResponse<Bytes>) -> Result<(), ::h2::Error> {
    let path = request.uri().path();
    let (status, body) = match Resource::from_path(path) {
        Some(resource) => (StatusCode::OK, resource.body()),
        None if path.ends_with("/echo") => (StatusCode::OK, echo(request).into_bytes()),
        None => (StatusCode::NOT_FOUND, Vec::new()),
    };
    let head = Response::builder()
        .status(status)
        .header("server", "origin")
        .header("date", "Thu, 01 Jan 2026 00:00:00 GMT")
        .header("content-type", "application/octet-stream")
        .header("content-length", body.len())
        .body(())
        .expect("its fields are valid");
    let mut stream = respond.send_response(head, body.is_empty())?;
    if !body.is_empty() {
        stream.send_data(body.into(), true)?;
    }
    Ok(())
}

/// Returns the head of the request as HTTP/1.1 writes it, which is how a program under test is checked.
fn echo<B>(request: &Request<B>) -> String {
    let uri = request.uri();
    let host = uri.authority().map_or("", |authority| authority.as_str());
    let target = uri.path_and_query().map_or("/", |target| target.as_str());
    let mut text = format!("{} {target} HTTP/1.1\r\nhost: {host}\r\n", request.method());
    for (name, value) in request.headers() {
        let value = String::from_utf8_lossy(value.as_bytes());
        text.push_str(&format!("{name}: {value}\r\n"));
    }
    text + "\r\n"
}

#[cfg(test)]
mod tests {
    use super::super::Origin;
    use super::*;

    #[test]
    fn a_resource_is_served_over_http2() {
        let origin = Origin::start_http2().unwrap();
        let runtime = Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            let socket = TcpStream::connect(origin.addresses()[1]).await.unwrap();
            let (send, connection) = ::h2::client::handshake(socket).await.unwrap();
            tokio::spawn(connection);
            for (path, status, length) in [("/r1/128", 200, "128"), ("/none", 404, "0")] {
                let request = Request::get(format!("http://h{path}")).body(()).unwrap();
                let mut send = send.clone().ready().await.unwrap();
                let response = send.send_request(request, true).unwrap().0.await.unwrap();
                assert_eq!(response.status(), status, "{path}");
                assert_eq!(response.headers()["content-length"], length, "{path}");
            }
            let request = Request::get("http://h/r1/echo").header("x-a", "b").body(());
            let mut send = send.ready().await.unwrap();
            let sent = send.send_request(request.unwrap(), true).unwrap().0;
            let mut body = sent.await.unwrap().into_body();
            let mut text = Vec::new();
            while let Some(data) = body.data().await {
                text.extend_from_slice(&data.unwrap());
            }
            let expected = "GET /r1/echo HTTP/1.1\r\nhost: h\r\nx-a: b\r\n\r\n";
            assert_eq!(String::from_utf8(text).unwrap(), expected);
        });
    }
}
