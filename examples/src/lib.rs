//! What the examples share: a service to proxy to, a client to try it with, and when to end.

mod folder;
mod followed;
mod started;

use std::error::Error;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};

use axum::Router;
use axum::extract::Request;
use http::{HeaderMap, Method, StatusCode};
use http_body_util::{BodyExt, Empty};
use hyper::body::Bytes;
use hyper_util::rt::TokioIo;
use tokio::net::{TcpListener, TcpStream};

pub use self::folder::Folder;
pub use self::followed::Followed;
pub use self::started::Started;

/// What can go wrong in an example.
pub type Failure = Box<dyn Error + Send + Sync>;

/// Starts a service that answers every request with its name, the method and the path. Returns its URL.
///
/// # Errors
///
/// There is no free port.
pub async fn start_service(name: &'static str) -> Result<String, Failure> {
    let address = start_service_on(Ipv4Addr::LOCALHOST.into(), name).await?;
    Ok(format!("http://{address}/"))
}

/// As [`start_service`], on a port of this address. Returns both.
///
/// # Errors
///
/// There is no free port, or the address is none of this machine's.
pub async fn start_service_on(ip: IpAddr, name: &'static str) -> Result<SocketAddr, Failure> {
    let listener = TcpListener::bind((ip, 0)).await?;
    let address = listener.local_addr()?;
    let answer = move |request: Request| async move {
        format!("{name}: {} {}\n", request.method(), request.uri())
    };
    let app = Router::new().fallback(answer);
    tokio::spawn(async move { axum::serve(listener, app).await });
    Ok(address)
}

/// An answer to [`send`].
#[derive(Debug)]
pub struct Answer {
    /// Its status.
    pub status: StatusCode,
    /// Its headers.
    pub headers: HeaderMap,
    /// Its body.
    pub text: String,
}

/// Sends a request and waits for the whole answer.
///
/// # Errors
///
/// The address does not answer, or not in HTTP.
pub async fn send(address: SocketAddr, method: Method, path: &str) -> Result<Answer, Failure> {
    let request = http::Request::builder().method(method).uri(path);
    send_request(address, request).await
}

/// As [`send`], with headers of one's own. `Host` is the address.
///
/// # Errors
///
/// As [`send`]; the request is none.
pub async fn send_request(
    address: SocketAddr,
    request: http::request::Builder,
) -> Result<Answer, Failure> {
    let request = request.header(http::header::HOST, address.to_string());
    send_with_host(address, request).await
}

/// Sends a GET with this `Host`.
///
/// # Errors
///
/// As [`send`].
pub async fn send_to_host(address: SocketAddr, host: &str, path: &str) -> Result<Answer, Failure> {
    let request = http::Request::get(path).header(http::header::HOST, host);
    send_with_host(address, request).await
}

async fn send_with_host(
    address: SocketAddr,
    request: http::request::Builder,
) -> Result<Answer, Failure> {
    let stream = TcpStream::connect(address).await?;
    let (mut sender, connection) =
        hyper::client::conn::http1::handshake(TokioIo::new(stream)).await?;
    tokio::spawn(connection);
    let request = request.body(Empty::<Bytes>::new())?;
    let (head, body) = sender.send_request(request).await?.into_parts();
    let bytes = body.collect().await?.to_bytes();
    Ok(Answer {
        status: head.status,
        headers: head.headers,
        text: String::from_utf8_lossy(&bytes).into_owned(),
    })
}

/// Sends a GET and prints what came back.
///
/// # Errors
///
/// As [`send`].
pub async fn get(address: SocketAddr, path: &str) -> Result<Answer, Failure> {
    let answer = send(address, Method::GET, path).await?;
    println!("GET {path} → {} {}", answer.status, answer.text.trim_end());
    Ok(answer)
}

/// Whether the example is to try itself and end, rather than wait for somebody to try it.
pub fn once() -> bool {
    std::env::args().any(|argument| argument == "--once")
}

/// Waits for Ctrl-C, unless the example is to end by itself.
///
/// # Errors
///
/// Signals cannot be received.
pub async fn wait_unless_once() -> Result<(), Failure> {
    if !once() {
        println!("Ctrl-C stops.");
        tokio::signal::ctrl_c().await?;
    }
    Ok(())
}
