//! A server of the crate `h2` and nothing else: `PORT`, the floor of what a stream of HTTP/2 costs with it.
//!
//! Each request gets the fields and the 128 bytes that the origin of the benchmarks answers with. There is no
//! validation, no route and no destination.

use std::error::Error;
use std::net::Ipv4Addr;

use axum::body::Bytes;
use axum::http::{HeaderValue, Response, header};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::{LocalSet, spawn_local};

const USAGE: &str = "usage: h2-alone PORT";

/// The body of each answer.
const BODY: Bytes = Bytes::from_static(&[b'x'; 128]);

fn main() -> Result<(), Box<dyn Error>> {
    let port: u16 = std::env::args().nth(1).ok_or(USAGE)?.parse()?;
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    LocalSet::new().block_on(&runtime, serve(port))
}

async fn serve(port: u16) -> Result<(), Box<dyn Error>> {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, port)).await?;
    loop {
        let (socket, _) = listener.accept().await?;
        socket.set_nodelay(true)?;
        spawn_local(connection(socket));
    }
}

/// The first bytes of a connection of HTTP/2.
const PREFACE: &[u8; 3] = b"PRI";

/// The response to HTTP/1.1, by which the benchmark knows that the server has started.
const STARTED: &[u8] = b"HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n";

/// Answers the streams of a connection until it ends.
async fn connection(mut socket: TcpStream) {
    let mut first = [0; PREFACE.len()];
    if !matches!(socket.peek(&mut first).await, Ok(3)) {
        return;
    }
    if first != *PREFACE {
        let mut head = Vec::new();
        // What is not read would reset the connection.
        while !head.ends_with(b"\r\n\r\n") && matches!(socket.read_buf(&mut head).await, Ok(1..)) {}
        let _ = socket.write_all(STARTED).await;
        return;
    }
    let Ok(mut connection) = h2::server::handshake(socket).await else {
        return;
    };
    while let Some(Ok((_, mut respond))) = connection.accept().await {
        let Ok(mut stream) = respond.send_response(head(), false) else {
            return;
        };
        if stream.send_data(BODY, true).is_err() {
            return;
        }
    }
}

/// The four fields of the origin.
fn head() -> Response<()> {
    let mut head = Response::new(());
    let fields = head.headers_mut();
    fields.insert(header::SERVER, HeaderValue::from_static("origin"));
    fields.insert(
        header::DATE,
        HeaderValue::from_static("Thu, 01 Jan 2026 00:00:00 GMT"),
    );
    fields.insert(
        header::CONTENT_TYPE,
        HeaderValue::from_static("application/octet-stream"),
    );
    fields.insert(header::CONTENT_LENGTH, HeaderValue::from_static("128"));
    head
}
