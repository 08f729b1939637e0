//! The emulator behind a socket.

use std::io;
use std::net::SocketAddr;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::{Request, Response, StatusCode};
use http_body_util::{BodyExt, Full, LengthLimitError, Limited};
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Semaphore, watch};
use tokio::task::{JoinHandle, JoinSet};

use super::handle::Emulator;
use super::rejection::Rejection;

/// The maximum number of connections. Further ones wait in the system's queue.
const MAX_CONNECTIONS: usize = 256;
/// The maximum size of a body, in bytes. A load balancer with all possible rules takes a tenth of it.
const MAX_BODY: usize = 16 * 1024 * 1024;
/// The time limit for the head of a request. Idle connections are closed after it, too.
const HEAD: Duration = Duration::from_secs(60);
/// The time limit for the body of a request.
const BODY: Duration = Duration::from_secs(30);
/// The time that connections get to end by themselves.
const DRAIN: Duration = Duration::from_secs(5);
/// The pause after a failed accept.
const ACCEPT_PAUSE: Duration = Duration::from_millis(50);

/// A running server. Dropping it stops it at once.
#[derive(Debug)]
pub struct EmulatorServer {
    address: SocketAddr,
    stop: watch::Sender<bool>,
    task: Option<JoinHandle<()>>,
}

impl EmulatorServer {
    /// Listens at `address`, for example `127.0.0.1:0`, and serves the emulator over HTTP/1.1 without TLS.
    ///
    /// # Errors
    ///
    /// The address cannot be bound.
    pub async fn start(address: &str, emulator: Emulator) -> io::Result<Self> {
        let listener = TcpListener::bind(address).await?;
        let address = listener.local_addr()?;
        let (stop, stopped) = watch::channel(false);
        let task = tokio::spawn(accept(listener, emulator, stopped));
        Ok(Self {
            address,
            stop,
            task: Some(task),
        })
    }

    /// Returns the address on which the server listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Returns the URL of the emulated resource manager, e.g. `http://127.0.0.1:1234`.
    pub fn endpoint(&self) -> String {
        format!("http://{}", self.address)
    }

    /// Stops accepting, lets requests in flight end (for at most five seconds), and returns when all
    /// connections are closed.
    pub async fn shutdown(mut self) {
        self.stop.send_replace(true);
        if let Some(task) = self.task.take() {
            // The task ends by itself; a panic in it was already reported.
            let _ = task.await;
        }
    }
}

impl Drop for EmulatorServer {
    fn drop(&mut self) {
        if let Some(task) = &self.task {
            task.abort();
        }
    }
}

async fn accept(listener: TcpListener, emulator: Emulator, mut stopped: watch::Receiver<bool>) {
    let places = Arc::new(Semaphore::new(MAX_CONNECTIONS));
    let mut connections = JoinSet::new();
    loop {
        let place = tokio::select! {
            () = until(&mut stopped) => break,
            Some(_) = connections.join_next(), if !connections.is_empty() => continue,
            place = Arc::clone(&places).acquire_owned() => place,
        };
        // The semaphore is never closed.
        let Ok(place) = place else { break };
        let stream = tokio::select! {
            () = until(&mut stopped) => break,
            accepted = listener.accept() => match accepted {
                Ok((stream, _)) => stream,
                Err(error) => {
                    tracing::warn!(%error, "a connection cannot be accepted");
                    tokio::time::sleep(ACCEPT_PAUSE).await;
                    continue;
                }
            },
        };
        let (emulator, stopped) = (emulator.clone(), stopped.clone());
        connections.spawn(async move {
            serve(stream, emulator, stopped).await;
            drop(place);
        });
    }
    drop(listener);
    let drained = async { while connections.join_next().await.is_some() {} };
    if tokio::time::timeout(DRAIN, drained).await.is_err() {
        connections.shutdown().await;
    }
}

/// Waits until the value is true, or its sender was dropped. Cancel safe.
async fn until(stopped: &mut watch::Receiver<bool>) {
    // The borrow of the channel's value ends here, since it cannot be held across an await.
    let _ = stopped.wait_for(|stopped| *stopped).await;
}

async fn serve(stream: TcpStream, emulator: Emulator, mut stopped: watch::Receiver<bool>) {
    // Responses are written whole, so waiting for more bytes would only delay them.
    let _ = stream.set_nodelay(true);
    let service = service_fn(move |request| answer(emulator.clone(), request));
    let connection = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(HEAD)
        .serve_connection(TokioIo::new(stream), service);
    let mut connection = pin!(connection);
    let result = tokio::select! {
        result = connection.as_mut() => result,
        () = until(&mut stopped) => {
            connection.as_mut().graceful_shutdown();
            connection.await
        }
    };
    if let Err(error) = result {
        tracing::debug!(%error, "a connection ended early");
    }
}

/// The error that closes the connection in place of a response.
#[derive(Debug, thiserror::Error)]
#[error("closed by an injected fault")]
struct ClosedByFault;

async fn answer(
    emulator: Emulator,
    request: Request<Incoming>,
) -> Result<Response<Full<Bytes>>, ClosedByFault> {
    let (head, body) = request.into_parts();
    let body = match tokio::time::timeout(BODY, Limited::new(body, MAX_BODY).collect()).await {
        Ok(Ok(body)) => body.to_bytes(),
        Ok(Err(error)) if error.is::<LengthLimitError>() => {
            let rejection = Rejection::new(
                StatusCode::PAYLOAD_TOO_LARGE,
                "RequestContentTooLarge",
                format!("The content has more than {MAX_BODY} bytes."),
            );
            return Ok(rejected(&rejection));
        }
        Ok(Err(_)) | Err(_) => return Err(ClosedByFault),
    };
    let request = Request::from_parts(head, body);
    // A large set of resources takes a while, and other connections of this thread must not wait for it.
    let answered =
        tokio::task::spawn_blocking(move || emulator.with(|machine| machine.answer(&request)))
            .await;
    match answered {
        Ok(Some(response)) => Ok(response.map(Full::new)),
        Ok(None) | Err(_) => Err(ClosedByFault),
    }
}

fn rejected(rejection: &Rejection) -> Response<Full<Bytes>> {
    let mut response = Response::new(Full::new(Bytes::from(rejection.body().to_string())));
    *response.status_mut() = rejection.status;
    response
}
