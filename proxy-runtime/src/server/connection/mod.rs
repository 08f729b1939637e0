//! One connection: its socket, its protocol, its requests, and its end.
//!
//! ```text
//! serve_tls ─▶ handshake ─┬─ ALPN says h2 ────────────────────────────────────────────▶ http2::serve
//!                         └─ else ────────▶ http1::serve                                  ▲
//! serve_cleartext ────────────────────────▶ http1::serve ─ begins with HTTP/2's preface ──┘
//!
//! head ─▶ RequestRecord ─▶ validation ─┬─ a proxy, and a request for the byte path ─▶ Http1Downstream, Http2Downstream
//!                                      └─ else ─▶ ServiceCall ─▶ the service ─▶ ResponseBody
//! ```
//!
//! Both versions share the parts of this module: the socket ([`ConnectionIo`]), the state of the connection
//! ([`ConnectionState`]) and of each request ([`RequestRecord`]), and the call of the service ([`ServiceCall`],
//! [`RequestBody`], [`ResponseBody`]).

pub(crate) mod handshake;
mod holding;
mod io;
mod pace;
mod record;
mod request_body;
mod response_body;
mod service_call;
mod state;
#[cfg(test)]
mod tests;

use std::rc::Rc;
use std::sync::Arc;

use tokio::time::Instant;

#[cfg(feature = "http2")]
pub(crate) use self::holding::Held;
pub(crate) use self::io::{ConnectionIo, Transport};
pub(crate) use self::pace::{DownloadPace, after, spread};
pub(crate) use self::record::RequestRecord;
pub use self::request_body::RequestBody;
pub(crate) use self::response_body::ResponseBody;
#[cfg(feature = "http2")]
pub(crate) use self::service_call::{GRPC, is_grpc, is_grpc_call};
pub(crate) use self::service_call::{ResponseRules, ServiceCall};
pub(crate) use self::state::ConnectionState;
#[cfg(feature = "http2")]
pub(crate) use self::state::OpenStream;
#[cfg(feature = "tls")]
use super::accept::ClientSocket;
use super::handler::{Handler, Served};
use super::http1::{self, Client};
#[cfg(all(feature = "http2", feature = "tls"))]
use super::http2;
#[cfg(feature = "tls")]
use super::metrics::WorkerMetrics;
use super::shared::{ConnectionPermit, WorkerShared};
#[cfg(feature = "tls")]
use super::tls::{ConnectionPolicy, Shaken, TlsServerConfig};
#[cfg(feature = "tls")]
use crate::BoxError;
use crate::connection::ConnectionInfo;
#[cfg(feature = "tls")]
use crate::connection::{ClientCertificate, Registration};
#[cfg(feature = "tls")]
use crate::observe::targets;

/// Performs the TLS handshake, and serves the agreed protocol until the connection ends.
///
/// Cancel safe: dropped, it closes the connection.
#[cfg(feature = "tls")]
pub(crate) async fn serve_tls<H>(
    stream: ClientSocket,
    tls: TlsServerConfig,
    info: ConnectionInfo,
    service: Rc<Served<H>>,
    permit: ConnectionPermit,
    worker: Arc<WorkerShared>,
) where
    H: Handler,
{
    let accepted = Instant::now();
    let limit = worker.limits.tls_handshake_timeout;
    let shaken = handshake::within(tls.accept(stream), (accepted, limit), info.remote, &worker);
    let error: BoxError = match shaken.await {
        Some(Ok(Shaken { stream, policy })) => {
            let session = stream.get_ref().1;
            #[cfg(feature = "http2")]
            let is_http2 = session.alpn_protocol() == Some(b"h2");
            let presented = session.peer_certificates().and_then(|chain| chain.first());
            let certificate = presented.and_then(|presented| ClientCertificate::new(presented));
            // Until the connection ends.
            let known = Registration::new(certificate, policy.map(ConnectionPolicy::into_check));
            let mut info = ConnectionInfo { tls: true, ..info };
            info.identity = known.as_ref().map(Registration::key);
            let state = ConnectionState::new(worker, info, accepted);
            let io = ConnectionIo::new(stream, state.clone(), permit);
            #[cfg(feature = "http2")]
            if is_http2 {
                return http2::serve(io, service, state).await;
            }
            return http1::serve(Client::new(io, state), service).await;
        }
        Some(Err(error)) => error.into(),
        None => "it took too long".into(),
    };
    WorkerMetrics::add(&worker.metrics.tls_failures);
    tracing::debug!(
        target: targets::TLS,
        %error,
        remote = ?info.remote,
        "TLS handshake failed"
    );
}

/// Serves a cleartext connection until it ends: HTTP/1.1, or HTTP/2 if the client begins with that.
///
/// Cancel safe: dropped, it closes the connection.
pub(crate) fn serve_cleartext<T, H>(
    transport: T,
    info: ConnectionInfo,
    service: Rc<Served<H>>,
    permit: ConnectionPermit,
    worker: Arc<WorkerShared>,
) -> impl Future<Output = ()>
where
    T: Transport,
    H: Handler,
{
    let state = ConnectionState::new(worker, info, Instant::now());
    let io = ConnectionIo::new(transport, state.clone(), permit);
    http1::serve(Client::new(io, state), service)
}
