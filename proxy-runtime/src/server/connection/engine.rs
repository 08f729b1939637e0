//! The HTTP engine, set up within the limits.

use std::error::Error as StdError;
use std::pin::Pin;
#[cfg(feature = "http2")]
use std::sync::Arc;

use bytes::Bytes;
use http_body::Body;
use hyper::body::Incoming;
use hyper::server::conn::http1;
#[cfg(feature = "http2")]
use hyper::server::conn::http2;
use hyper::service::HttpService;

use super::driver::Engine;
#[cfg(feature = "http2")]
use super::state::ConnectionState;
use crate::server::limits::Limits;

type BoxError = Box<dyn StdError + Send + Sync>;

/// The engine's default, which it can do without allocating.
const ENGINE_FIELDS: usize = 100;

/// HTTP/1.1. Its clocks are not used: they count the time between two requests as time of the next one's head.
pub(super) fn http1(limits: &Limits) -> http1::Builder {
    let mut builder = http1::Builder::new();
    builder
        .header_read_timeout(None)
        .max_header_size(limits.header_bytes)
        .max_buf_size(limits.effective_buffer());
    if limits.header_fields != ENGINE_FIELDS {
        builder.max_headers(limits.header_fields);
    }
    builder
}

/// HTTP/2.
#[cfg(feature = "http2")]
pub(super) fn http2(state: &Arc<ConnectionState>) -> http2::Builder<StreamExecutor> {
    let limits = &state.worker.limits;
    let http2 = &limits.http2;
    let mut builder = http2::Builder::new(StreamExecutor(state.clone()));
    builder
        // WebSockets over HTTP/2 (RFC 8441).
        .enable_connect_protocol()
        .max_header_list_size(u32::try_from(limits.header_bytes).unwrap_or(u32::MAX))
        .max_send_buf_size(limits.effective_buffer().min(u32::MAX as usize))
        .max_concurrent_streams(http2.concurrent_streams)
        .initial_stream_window_size(http2.stream_window)
        .initial_connection_window_size(http2.connection_window)
        .max_pending_accept_reset_streams(http2.pending_resets)
        .max_local_error_reset_streams(http2.error_resets);
    builder
}

/// Runs the streams of a connection, and the tunnels that become of them, as tasks of the thread that the connection is
/// on; the connection is busy as long as one of them lives.
#[cfg(feature = "http2")]
#[derive(Clone, Debug)]
pub(super) struct StreamExecutor(Arc<ConnectionState>);

#[cfg(feature = "http2")]
impl<F> hyper::rt::Executor<F> for StreamExecutor
where
    F: Future<Output = ()> + 'static,
{
    fn execute(&self, future: F) {
        let stream = self.0.enter_stream();
        tokio::task::spawn_local(async move {
            future.await;
            drop(stream);
        });
    }
}

impl<I, S, B> Engine for http1::UpgradeableConnection<I, S>
where
    S: HttpService<Incoming, ResBody = B>,
    S::Error: Into<BoxError>,
    I: hyper::rt::Read + hyper::rt::Write + Unpin + Send + 'static,
    B: Body<Data = Bytes> + 'static,
    B::Error: Into<BoxError>,
{
    fn shut_down(self: Pin<&mut Self>) {
        self.graceful_shutdown();
    }
}

#[cfg(feature = "http2")]
impl<I, S, B> Engine for http2::Connection<I, S, StreamExecutor>
where
    S: HttpService<Incoming, ResBody = B>,
    S::Error: Into<BoxError>,
    S::Future: 'static,
    I: hyper::rt::Read + hyper::rt::Write + Unpin,
    B: Body<Data = Bytes> + 'static,
    B::Error: Into<BoxError>,
{
    fn shut_down(self: Pin<&mut Self>) {
        self.graceful_shutdown();
    }
}
