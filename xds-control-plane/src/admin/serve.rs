//! A small HTTP/1.1 server for the admin API.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use http_body_util::Full;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use log_sink::Seldom;
use tokio::net::TcpListener;
use tokio::sync::Semaphore;
use tokio::task::JoinSet;

use super::Admin;
use crate::server::LOG_PAUSE;

/// Connections at a time. Others wait in the backlog.
const CONNECTIONS: usize = 128;
/// Time for the head of a request, and how long a connection may be idle.
const HEADER_TIMEOUT: Duration = Duration::from_secs(30);
/// Maximum length of a request without its body, which is not read.
const BUFFER_BYTES: usize = 16 * 1024;
/// The wait after a connection could not be accepted, usually for lack of file descriptors.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

impl Admin {
    /// Serves on `listener` until the future is dropped, which closes all connections. The server runs in
    /// the caller's runtime.
    pub async fn serve(self, listener: TcpListener) -> Infallible {
        let places = Arc::new(Semaphore::new(CONNECTIONS));
        let mut connections = JoinSet::new();
        let not_accepted = Seldom::new(LOG_PAUSE);
        loop {
            while connections.try_join_next().is_some() {}
            let place = Arc::clone(&places).acquire_owned().await;
            let stream = match listener.accept().await {
                Ok((stream, _)) => stream,
                Err(error) => {
                    if let Some(left_out) = not_accepted.pass() {
                        tracing::warn!(target: "xds::server", %error, left_out, "the admin API cannot accept a connection");
                    }
                    tokio::time::sleep(ACCEPT_PAUSE).await;
                    continue;
                }
            };
            let admin = self.clone();
            connections.spawn(async move {
                let _place = place;
                let answer = service_fn(move |request| {
                    let response = admin.respond(&request).map(Full::new);
                    async move { Ok::<_, Infallible>(response) }
                });
                // The only errors are those of clients, and nothing was half done for them.
                let _ = hyper::server::conn::http1::Builder::new()
                    .timer(TokioTimer::new())
                    .header_read_timeout(HEADER_TIMEOUT)
                    .max_buf_size(BUFFER_BYTES)
                    .serve_connection(TokioIo::new(stream), answer)
                    .await;
            });
        }
    }
}
