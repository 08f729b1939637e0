//! HTTP/1.1 connections to destinations.

use std::convert::Infallible;
use std::net::SocketAddr;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use hyper::client::conn::http1::{Builder, SendRequest};
use hyper_util::rt::TokioIo;
use tokio::sync::oneshot;
use tokio::time::{Instant, timeout};
use tracing::debug;

use super::error::ConnectError;
use super::io::UpstreamIo;
use crate::forward::RequestBody;
use crate::observe::targets;

/// The longest head of a response, as .NET's `MaxResponseHeadersLength` in YARP: 64 KiB.
pub(super) const MAX_HEAD: usize = 64 * 1024;

/// The most fields in the head of a response. What bounds them is [`MAX_HEAD`]; hyper's own limit of 100 is met by
/// responses that set many cookies.
const MAX_FIELDS: usize = 1000;

/// Most bytes that are read ahead of the client, the head included.
const MAX_BUFFER: usize = 128 * 1024;

/// How long a connection that is given up may take to say goodbye.
const FAREWELL: Duration = Duration::from_secs(1);

/// An HTTP/1.1 connection. Dropped, it closes.
#[derive(Debug)]
pub(super) struct Http1Connection {
    pub(super) send: SendRequest<RequestBody>,
    pub(super) peer: SocketAddr,
    pub(super) idle_since: Instant,
    /// Whether it has carried a request.
    pub(super) used: bool,
    /// Tells the connection's task that nobody holds it any more.
    _held: oneshot::Sender<Infallible>,
}

impl Http1Connection {
    /// Speaks HTTP/1.1 over `io`. A task on the current runtime carries the connection until this value is dropped, the
    /// destination closes it, or it becomes a tunnel.
    pub(super) async fn handshake(io: UpstreamIo, peer: SocketAddr) -> Result<Self, ConnectError> {
        let (send, connection) = Builder::new()
            .max_buf_size(MAX_BUFFER)
            .max_header_size(MAX_HEAD)
            .max_headers(MAX_FIELDS)
            .handshake(TokioIo::new(io))
            .await
            .map_err(|error| ConnectError::Handshake(Arc::new(error)))?;
        let (held, released) = oneshot::channel();
        tokio::spawn(async move {
            let mut connection = pin!(connection.with_upgrades());
            let ended = tokio::select! {
                ended = connection.as_mut() => ended,
                _ = released => timeout(FAREWELL, connection).await.unwrap_or(Ok(())),
            };
            if let Err(error) = ended {
                debug!(target: targets::UPSTREAM, %peer, %error, "connection failed");
            }
        });
        Ok(Self {
            send,
            peer,
            idle_since: Instant::now(),
            used: false,
            _held: held,
        })
    }
}
