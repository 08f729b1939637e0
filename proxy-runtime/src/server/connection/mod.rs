//! One connection: its socket, its protocol, its requests, and its end.

mod driver;
mod engine;
mod exchange;
mod io;
mod opening;
mod request_body;
mod response_body;
mod service;
mod state;
#[cfg(test)]
mod tests;

use std::error::Error as StdError;
use std::sync::Arc;

use bytes::Bytes;
use http::{Request, Response};
use http_body::Body;
use hyper_util::rt::TokioIo;
#[cfg(feature = "tls")]
use tokio::net::TcpStream;
use tokio::time::Instant;
#[cfg(feature = "tls")]
use tokio::time::timeout;
use tower_service::Service;

use self::driver::drive;
pub use self::exchange::Outcome;
use self::io::{ConnectionIo, Transport};
pub use self::request_body::{RequestBody, RequestBodyError};
use self::service::ConnectionService;
use self::state::{ConnectionState, Protocol};
#[cfg(feature = "tls")]
use super::metrics::WorkerMetrics;
use super::shared::{Occupied, WorkerShared};
#[cfg(feature = "tls")]
use super::tls::TlsServerConfig;
use crate::connection::ConnectionInfo;
#[cfg(feature = "tls")]
use crate::observe::targets;

type BoxError = Box<dyn StdError + Send + Sync>;

/// Shakes hands, and serves what was agreed on until the connection ends.
///
/// Cancel safe: dropped, it closes the connection.
#[cfg(feature = "tls")]
pub(crate) async fn serve_tls<S, B>(
    stream: TcpStream,
    tls: TlsServerConfig,
    info: ConnectionInfo,
    service: S,
    occupied: Occupied,
    worker: Arc<WorkerShared>,
) where
    S: Service<Request<RequestBody>, Response = Response<B>> + Clone + 'static,
    S::Error: Into<BoxError>,
    S::Future: 'static,
    B: Body<Data = Bytes> + 'static,
    B::Error: Into<BoxError>,
{
    let accepted = Instant::now();
    let acceptor = tokio_rustls::TlsAcceptor::from(tls.rustls());
    let limit = worker.limits.tls_handshake_timeout;
    let error: BoxError = match timeout(limit, acceptor.accept(stream)).await {
        Ok(Ok(stream)) => {
            let protocol = match stream.get_ref().1.alpn_protocol() {
                #[cfg(feature = "http2")]
                Some(b"h2") => Protocol::Http2,
                _ => Protocol::Http1,
            };
            let state = ConnectionState::new(worker, info.with_tls(true), protocol, accepted);
            let io = ConnectionIo::new(stream, Bytes::new(), state.clone(), occupied);
            return serve(io, service, state).await;
        }
        Ok(Err(error)) => error.into(),
        Err(elapsed) => elapsed.into(),
    };
    WorkerMetrics::add(&worker.metrics.tls_failures);
    tracing::debug!(
        target: targets::TLS,
        %error,
        remote = ?info.remote,
        "TLS handshake failed"
    );
}

/// Finds out which protocol a cleartext client speaks, and serves it until the connection ends.
///
/// Cancel safe: dropped, it closes the connection.
pub(crate) async fn serve_cleartext<T, S, B>(
    transport: T,
    info: ConnectionInfo,
    service: S,
    occupied: Occupied,
    worker: Arc<WorkerShared>,
) where
    T: Transport,
    S: Service<Request<RequestBody>, Response = Response<B>> + Clone + 'static,
    S::Error: Into<BoxError>,
    S::Future: 'static,
    B: Body<Data = Bytes> + 'static,
    B::Error: Into<BoxError>,
{
    let accepted = Instant::now();
    let Some((transport, opening)) = opening::read(transport, &worker).await else {
        return;
    };
    let state = ConnectionState::new(worker, info, opening.protocol, accepted);
    let io = ConnectionIo::new(transport, opening.bytes, state.clone(), occupied);
    serve(io, service, state).await;
}

async fn serve<T, S, B>(io: ConnectionIo<T>, service: S, state: Arc<ConnectionState>)
where
    T: Transport,
    S: Service<Request<RequestBody>, Response = Response<B>> + Clone + 'static,
    S::Error: Into<BoxError>,
    S::Future: 'static,
    B: Body<Data = Bytes> + 'static,
    B::Error: Into<BoxError>,
{
    let io = TokioIo::new(io);
    let service = ConnectionService::new(service, state.clone());
    match state.protocol {
        Protocol::Http1 => {
            let engine = engine::http1(&state.worker.limits).serve_connection(io, service);
            drive(engine.with_upgrades(), state.clone()).await;
        }
        #[cfg(feature = "http2")]
        Protocol::Http2 => {
            let engine = engine::http2(&state).serve_connection(io, service);
            drive(engine, state.clone()).await;
        }
    }
}
