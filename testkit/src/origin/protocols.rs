use std::pin::{Pin, pin};

use hyper::server::conn::{http1, http2};
use hyper_util::rt::TokioIo;
use hyper_util::server::conn::auto;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::sync::watch;

use super::connection::OriginService;
use crate::tasks::Spawner;

/// The HTTP versions of an origin. Default: both.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Protocols {
    /// HTTP/1.1 only.
    Http1,
    /// HTTP/2 only.
    Http2,
    /// Both; the first bytes of a connection decide.
    #[default]
    Both,
}

/// The HTTP settings of an origin.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct HttpSettings {
    pub(super) protocols: Protocols,
    pub(super) extended_connect: bool,
    pub(super) max_concurrent_streams: Option<u32>,
}

impl HttpSettings {
    /// Serves a connection to its end, gracefully once `drain` changes. Its errors are visible to
    /// the client.
    pub(super) async fn serve<S>(
        self,
        stream: S,
        service: OriginService,
        spawner: Spawner,
        drain: watch::Receiver<()>,
    ) where
        S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
    {
        let io = TokioIo::new(stream);
        match self.protocols {
            Protocols::Http1 => {
                let mut http = http1::Builder::new();
                http.half_close(true);
                let connection = http.serve_connection(io, service).with_upgrades();
                drive(connection, |open| open.graceful_shutdown(), drain).await;
            }
            Protocols::Http2 => {
                let mut http = http2::Builder::new(spawner);
                if self.extended_connect {
                    http.enable_connect_protocol();
                }
                if let Some(streams) = self.max_concurrent_streams {
                    http.max_concurrent_streams(streams);
                }
                let connection = http.serve_connection(io, service);
                drive(connection, |open| open.graceful_shutdown(), drain).await;
            }
            Protocols::Both => {
                let mut http = auto::Builder::new(spawner);
                http.http1().half_close(true);
                if self.extended_connect {
                    http.http2().enable_connect_protocol();
                }
                if let Some(streams) = self.max_concurrent_streams {
                    http.http2().max_concurrent_streams(streams);
                }
                let connection = http.serve_connection_with_upgrades(io, service);
                drive(connection, |open| open.graceful_shutdown(), drain).await;
            }
        }
    }
}

async fn drive<C: Future>(
    connection: C,
    shut_down: impl FnOnce(Pin<&mut C>),
    mut drain: watch::Receiver<()>,
) {
    let mut connection = pin!(connection);
    tokio::select! {
        _ = connection.as_mut() => return,
        _ = drain.changed() => shut_down(connection.as_mut()),
    }
    let _ = connection.await;
}
