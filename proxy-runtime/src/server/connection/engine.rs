//! The HTTP/2 engine, set up within the limits.

use std::error::Error as StdError;
use std::pin::Pin;
use std::sync::Arc;

use bytes::Bytes;
use http::{Request, Response};
use http_body::Body;
use hyper::body::Incoming;
use hyper::server::conn::http2;
use hyper::service::HttpService;
use hyper_util::rt::TokioIo;
use tower_service::Service;

use super::driver::{Engine, drive};
use super::io::{ConnectionIo, Transport};
use super::request_body::RequestBody;
use super::service::ConnectionService;
use super::state::ConnectionState;

type BoxError = Box<dyn StdError + Send + Sync>;

/// Serves HTTP/2 until the connection ends.
///
/// Cancel safe: dropped, it closes the connection.
pub(crate) async fn serve<T, S, B>(io: ConnectionIo<T>, service: S, state: Arc<ConnectionState>)
where
    T: Transport,
    S: Service<Request<RequestBody>, Response = Response<B>> + Clone + 'static,
    S::Error: Into<BoxError>,
    S::Future: 'static,
    B: Body<Data = Bytes> + 'static,
    B::Error: Into<BoxError>,
{
    state.set_http2();
    let service = ConnectionService::new(service, state.clone());
    let connection = builder(&state).serve_connection(TokioIo::new(io), service);
    drive(connection, state).await;
}

fn builder(state: &Arc<ConnectionState>) -> http2::Builder<StreamExecutor> {
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
#[derive(Clone, Debug)]
pub(super) struct StreamExecutor(Arc<ConnectionState>);

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
