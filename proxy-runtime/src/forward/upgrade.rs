//! Requests that switch to another protocol, and the tunnels that they become.
//!
//! A tunnel begins only when the destination has agreed: what a client sends behind its request waits until then,
//! and is read as the next request if the destination rejects.

use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use http::Version;
use http::header::{CONNECTION, HeaderValue, UPGRADE};
use http::request::Parts;
use hyper::upgrade::OnUpgrade;
use hyper_util::rt::TokioIo;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt, split};
use tokio::time::Instant;
use tracing::debug;

use crate::error::{Dropping, ForwardErrorKind};
use crate::head::headers;
#[cfg(feature = "http2")]
use crate::head::is_websocket_connect;
use crate::observe::{InFlightGuard, targets};
use crate::progress::{Activity, IdleTimer};
use crate::upstream::{Http1Connection, Tunnel};

/// Bytes that a tunnel holds at a time, in each direction. The server counts both while a client does not read
/// (`TUNNEL_BUFFERS`).
const BUFFER: usize = 16 * 1024;

/// A client's wish to switch to another protocol.
#[derive(Debug)]
pub(crate) struct Upgrade {
    client: UpgradedClient,
    wish: Wish,
}

/// The client's connection once the proxy has answered, by the server that the proxy is in.
#[derive(Debug)]
pub(crate) enum UpgradedClient {
    /// A connection of this crate's server over HTTP/1.1.
    #[cfg(feature = "server")]
    Server(crate::stream::OnUpgrade),
    /// HTTP/2, and other servers that are made with hyper.
    Hyper(OnUpgrade),
}

/// A side of a tunnel.
trait TunnelSide: AsyncRead + AsyncWrite + Unpin + Send {}

impl<T: AsyncRead + AsyncWrite + Unpin + Send> TunnelSide for T {}

impl UpgradedClient {
    fn take_from(parts: &mut Parts) -> Option<Self> {
        #[cfg(feature = "server")]
        if let Some(upgrade) = parts.extensions.remove() {
            return Some(Self::Server(upgrade));
        }
        parts.extensions.remove().map(Self::Hyper)
    }

    /// Puts it back where it was taken from.
    pub(super) fn put_into(self, parts: &mut Parts) {
        match self {
            #[cfg(feature = "server")]
            Self::Server(upgrade) => {
                parts.extensions.insert(upgrade);
            }
            Self::Hyper(upgrade) => {
                parts.extensions.insert(upgrade);
            }
        }
    }

    async fn upgraded(self) -> Option<Box<dyn TunnelSide>> {
        match self {
            #[cfg(feature = "server")]
            Self::Server(upgrade) => Some(Box::new(upgrade.await.ok()?)),
            Self::Hyper(upgrade) => Some(Box::new(TokioIo::new(upgrade.await.ok()?))),
        }
    }
}

/// The form in which a client requests another protocol.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Wish {
    /// `Upgrade` of HTTP/1.1, with its value.
    Upgrade(HeaderValue),
    /// Extended `CONNECT` of HTTP/2 for a WebSocket (RFC 8441).
    #[cfg(feature = "http2")]
    Connect,
}

impl Upgrade {
    /// The wish of a request, if it has one that can be fulfilled: WebSocket or SPDY. Requests for other protocols
    /// are served without a switch (RFC 9110 section 7.8).
    pub(crate) fn take_from(parts: &mut Parts) -> Option<Box<Self>> {
        let wish = Wish::of(parts)?;
        // The connection of a server that knows nothing of upgrades leaves nothing here.
        let client = UpgradedClient::take_from(parts)?;
        // Boxed, since most requests have none and would carry the room for it about.
        Some(Box::new(Self { client, wish }))
    }

    /// Returns the protocol switch that the client requests.
    pub(crate) fn wish(&self) -> &Wish {
        &self.wish
    }

    /// The client's side, which is there once the proxy has answered.
    pub(crate) fn into_client(self) -> UpgradedClient {
        self.client
    }
}

impl Wish {
    /// Returns true if it is a WebSocket.
    pub(crate) fn is_websocket(&self) -> bool {
        match self {
            Self::Upgrade(protocol) => protocol.as_bytes().eq_ignore_ascii_case(b"websocket"),
            #[cfg(feature = "http2")]
            Self::Connect => true,
        }
    }

    pub(super) fn of(parts: &Parts) -> Option<Self> {
        #[cfg(feature = "http2")]
        if is_websocket_connect(parts) {
            return Some(Self::Connect);
        }
        if parts.version != Version::HTTP_11
            // Most requests have neither.
            || !parts.headers.contains_key(UPGRADE)
            || !headers::has_token(&parts.headers, &CONNECTION, "upgrade")
        {
            return None;
        }
        // A list of protocols leaves it to the destination which one the tunnel is of.
        let mut protocols = parts.headers.get_all(UPGRADE).iter();
        let (Some(protocol), None) = (protocols.next(), protocols.next()) else {
            return None;
        };
        // Of any method: one that is not GET makes no handshake, which is for the client to know.
        let is_websocket = protocol.as_bytes().eq_ignore_ascii_case(b"websocket");
        // Kubernetes uses SPDY for `exec` and port forwarding.
        let is_spdy = protocol
            .as_bytes()
            .get(..5)
            .is_some_and(|name| name.eq_ignore_ascii_case(b"SPDY/"))
            && !protocol.as_bytes().contains(&b',');
        (is_websocket || is_spdy).then(|| Self::Upgrade(protocol.clone()))
    }
}

impl UpgradedClient {
    /// Copies bytes in both directions until both sides have ended, one of them fails, or neither has sent anything
    /// for `timeout`.
    ///
    /// Dropped, it closes the client's side.
    pub(crate) async fn carry(
        self,
        connection: &mut Http1Connection,
        flight: &InFlightGuard,
        timeout: Duration,
    ) -> Result<(), ForwardErrorKind> {
        let activity = Activity::new(timeout, Instant::now());
        let mut idle = IdleTimer::default();
        let mut client = None;
        let carried = async {
            let upgraded = self.upgraded().await;
            let upgraded = upgraded.ok_or(ForwardErrorKind::UpgradeRequestClient)?;
            carry(client.insert(upgraded), connection, flight, &activity).await
        };
        let ended = tokio::select! {
            // Bytes that have arrived count before the timeout.
            biased;
            carried = carried => carried,
            () = std::future::poll_fn(|cx| idle.poll_expired(cx, &activity)) => {
                Err(ForwardErrorKind::UpgradeActivityTimeout)
            }
        };
        // With the client's side, the server logs the end of the tunnel.
        let _dropping = ended.err().map(Dropping::tunnel);
        drop(client);
        ended
    }
}

async fn carry(
    client: &mut Box<dyn TunnelSide>,
    connection: &mut Http1Connection,
    flight: &InFlightGuard,
    activity: &Activity,
) -> Result<(), ForwardErrorKind> {
    // The wait for the client's side is no silence of the tunnel.
    activity.touch();
    let (client_reader, client_writer) = split(client);
    let (destination_reader, destination_writer) = split(Tunnel::new(connection));
    let up = Direction {
        activity,
        count: &|bytes| flight.sent(bytes),
        read: ForwardErrorKind::UpgradeRequestClient,
        write: ForwardErrorKind::UpgradeRequestDestination,
    };
    let down = Direction {
        activity,
        count: &|bytes| flight.received(bytes),
        read: ForwardErrorKind::UpgradeResponseDestination,
        write: ForwardErrorKind::UpgradeResponseClient,
    };
    let is_destination_done = AtomicBool::new(false);
    let up = async {
        match up.carry(client_reader, destination_writer).await {
            // It has all that there was for it, and how it leaves is its own affair.
            Err(_) if is_destination_done.load(Ordering::Relaxed) => Ok(()),
            carried => carried,
        }
    };
    let down = async {
        down.carry(destination_reader, client_writer).await?;
        is_destination_done.store(true, Ordering::Relaxed);
        Ok(())
    };
    tokio::try_join!(up, down)?;
    Ok(())
}

/// One direction of a tunnel.
struct Direction<'a> {
    activity: &'a Activity,
    count: &'a (dyn Fn(u64) + Sync),
    /// The kind of error if a read fails.
    read: ForwardErrorKind,
    /// The kind of error if a write fails.
    write: ForwardErrorKind,
}

impl Direction<'_> {
    /// Copies bytes until `from` ends, and then shuts down `to` for writing. The other direction continues.
    async fn carry(
        &self,
        mut from: impl AsyncRead + Unpin,
        mut to: impl AsyncWrite + Unpin,
    ) -> Result<(), ForwardErrorKind> {
        let mut buffer = vec![0; BUFFER];
        loop {
            let length = from
                .read(&mut buffer)
                .await
                .map_err(|error| self.failed(self.read, &error))?;
            if length == 0 {
                // The other side may have closed already, and then has nothing to be told.
                let _ = to.shutdown().await;
                return Ok(());
            }
            self.activity.touch();
            (self.count)(length as u64);
            let written = async {
                to.write_all(&buffer[..length]).await?;
                // TLS may hold bytes back until it is flushed, and the other end may wait for them.
                to.flush().await
            };
            written
                .await
                .map_err(|error| self.failed(self.write, &error))?;
            // A slow reader is active as long as it takes something.
            self.activity.touch();
        }
    }

    fn failed(&self, kind: ForwardErrorKind, error: &io::Error) -> ForwardErrorKind {
        debug!(target: targets::REQUEST, error = kind.as_str(), reason = %error, "a side of the tunnel failed");
        kind
    }
}
