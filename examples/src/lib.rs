//! The shared parts of examples: a service to proxy to, a client, and the end of an example.

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

/// Any error of an example.
pub type Failure = Box<dyn Error + Send + Sync>;

/// Starts a service that responds to every request with its name, the method and the path. Returns
/// its URL.
///
/// # Errors
///
/// Fails if no port is free.
pub async fn start_service(name: &'static str) -> Result<String, Failure> {
    let address = start_service_on(Ipv4Addr::LOCALHOST.into(), name).await?;
    Ok(format!("http://{address}/"))
}

/// Like [`start_service`], on a port of this address. Returns both.
///
/// # Errors
///
/// Fails if no port is free, or if the address does not belong to this machine.
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

/// A response to [`send`].
#[derive(Debug)]
pub struct Answer {
    /// The status.
    pub status: StatusCode,
    /// The headers.
    pub headers: HeaderMap,
    /// The body.
    pub text: String,
}

/// Sends a request and waits for the whole response.
///
/// # Errors
///
/// Fails if the address does not respond, or not with HTTP.
pub async fn send(address: SocketAddr, method: Method, path: &str) -> Result<Answer, Failure> {
    let request = http::Request::builder().method(method).uri(path);
    send_request(address, request).await
}

/// Like [`send`], with additional headers. `Host` is the address.
///
/// # Errors
///
/// Fails as [`send`] does, or if the request is invalid.
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
/// Fails as [`send`] does.
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

/// Sends a GET and prints the response.
///
/// # Errors
///
/// Fails as [`send`] does.
pub async fn get(address: SocketAddr, path: &str) -> Result<Answer, Failure> {
    let answer = send(address, Method::GET, path).await?;
    println!("GET {path} → {} {}", answer.status, answer.text.trim_end());
    Ok(answer)
}

/// Returns true if the example should test itself and end, instead of waiting for a user.
pub fn once() -> bool {
    std::env::args().any(|argument| argument == "--once")
}

/// Waits for Ctrl-C, unless the example should end by itself.
///
/// # Errors
///
/// Fails if signals cannot be received.
pub async fn wait_unless_once() -> Result<(), Failure> {
    if !once() {
        println!("Ctrl-C stops.");
        tokio::signal::ctrl_c().await?;
    }
    Ok(())
}
