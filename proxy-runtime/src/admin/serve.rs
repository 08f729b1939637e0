//! A small HTTP/1.1 server for the admin API.

use std::convert::Infallible;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use http_body_util::Full;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use log_sink::Seldom;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;
use tokio::time::timeout;

use super::Admin;
use super::places::{ConnectionSlot, ConnectionSlots};
use crate::observe::{LOG_PAUSE, targets};

/// Time limit for a request head, and for an idle connection.
const HEADER_TIMEOUT: Duration = Duration::from_secs(10);
/// Maximum age of a connection.
const CONNECTION_AGE: Duration = Duration::from_secs(60);
/// Time limit for the last response on a connection beyond its maximum age.
const LAST_ANSWER: Duration = Duration::from_secs(10);
/// Maximum size of a request head. Bodies are never read.
const BUFFER_BYTES: usize = 16 * 1024;
/// Pause after a failed accept, which usually means that file descriptors ran out.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

impl Admin {
    /// Serves on `listener` until the future is dropped, which closes all connections.
    ///
    /// Runs in the caller's runtime, apart from the threads that forward requests. Each connection
    /// is accepted at once. Beyond 128 open connections, the one that has been idle longest is
    /// closed. Connections whose last request was for `/healthz` or `/readyz` have a limit of their
    /// own: 32.
    pub async fn serve(self, listener: TcpListener) -> Infallible {
        let places = Arc::new(ConnectionSlots::new(Arc::clone(&self.inner.evicted)));
        let mut connections = JoinSet::new();
        loop {
            // Finished tasks are removed here, so that the set does not grow with each connection.
            while connections.try_join_next().is_some() {}
            let stream = match listener.accept().await {
                Ok((stream, _)) => stream,
                Err(error) => {
                    static SELDOM: Seldom = Seldom::new(LOG_PAUSE);
                    if let Some(left_out) = SELDOM.pass() {
                        tracing::warn!(target: targets::SERVER, %error, left_out, "the admin page cannot accept a connection");
                    }
                    tokio::time::sleep(ACCEPT_PAUSE).await;
                    continue;
                }
            };
            let place = places.enter();
            let id = place.id();
            let task = connections.spawn(self.clone().serve_accepted(stream, place));
            places.served_by(id, task);
        }
    }

    /// Serves a connection after its handshake, if there is one.
    async fn serve_accepted(self, stream: TcpStream, place: ConnectionSlot) {
        #[cfg(feature = "tls")]
        if let Some(tls) = self.inner.tls.clone() {
            // Errors are those of clients.
            let shaken = timeout(HEADER_TIMEOUT, tls.accept_http1(stream)).await;
            if let Ok(Ok(stream)) = shaken {
                // The handshake has verified them.
                let is_certified = stream.get_ref().1.peer_certificates().is_some();
                self.serve_connection(stream, is_certified, place).await;
            }
            return;
        }
        self.serve_connection(stream, false, place).await;
    }

    /// `is_certified`: the client has presented a certificate.
    async fn serve_connection(
        self,
        stream: impl AsyncRead + AsyncWrite + Unpin,
        is_certified: bool,
        place: ConnectionSlot,
    ) {
        let answer = service_fn(|request| {
            place.asked(request.uri().path());
            let response = self.respond_to(&request, is_certified).map(Full::new);
            async move { Ok::<_, Infallible>(response) }
        });
        let connection = hyper::server::conn::http1::Builder::new()
            .timer(TokioTimer::new())
            .header_read_timeout(HEADER_TIMEOUT)
            .max_buf_size(BUFFER_BYTES)
            .serve_connection(TokioIo::new(stream), answer);
        let mut connection = pin!(connection);
        // Errors are those of clients; no state of the proxy depends on them.
        if timeout(CONNECTION_AGE, connection.as_mut()).await.is_err() {
            connection.as_mut().graceful_shutdown();
            let _ = timeout(LAST_ANSWER, connection).await;
        }
    }
}

#[cfg(test)]
mod tests {
    use std::net::SocketAddr;

    use tokio::io::{AsyncReadExt, AsyncWriteExt, DuplexStream, duplex};
    use tokio::time::{Instant, sleep};

    use testkit::client::Connection;
    use testkit::time::eventually;

    use super::*;
    use crate::Proxy;

    /// More connections than there are slots.
    const CLIENTS: usize = 200;

    async fn start() -> (SocketAddr, Admin, JoinSet<Infallible>) {
        let (proxy, _driver) = Proxy::builder().build().unwrap();
        let admin = Admin::builder(proxy).build();
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let mut tasks = JoinSet::new();
        tasks.spawn(admin.clone().serve(listener));
        (address, admin, tasks)
    }

    /// Serves a connection in memory, with `buffer` bytes in each direction. The task returns its age.
    fn connection(buffer: usize) -> (DuplexStream, tokio::task::JoinHandle<Duration>) {
        let (proxy, _driver) = Proxy::builder().build().unwrap();
        let admin = Admin::builder(proxy).build();
        let (client, server) = duplex(buffer);
        let place = Arc::new(ConnectionSlots::new(Arc::default())).enter();
        let begin = Instant::now();
        let task = tokio::spawn(async move {
            admin.serve_connection(server, false, place).await;
            begin.elapsed()
        });
        (client, task)
    }

    const REQUEST: &[u8] = b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n";

    /// Asserts that a connection ended after `limit`, and a second at most.
    #[track_caller]
    fn assert_ended_after(limit: Duration, age: Duration) {
        let late = limit + Duration::from_secs(1);
        assert!(limit <= age && age < late, "{age:?}");
    }

    #[tokio::test(start_paused = true)]
    async fn an_incomplete_head_is_closed_after_its_time() {
        let (mut client, task) = connection(1024);
        client.write_all(b"GET /metrics HT").await.unwrap();
        assert_ended_after(HEADER_TIMEOUT, task.await.unwrap());
    }

    #[tokio::test(start_paused = true)]
    async fn a_connection_in_use_is_closed_at_its_maximum_age() {
        let (client, task) = connection(1024);
        let (mut answers, mut requests) = tokio::io::split(client);
        let asking = tokio::spawn(async move {
            while requests.write_all(REQUEST).await.is_ok() {
                sleep(HEADER_TIMEOUT / 2).await;
            }
        });
        let mut text = Vec::new();
        answers.read_to_end(&mut text).await.unwrap();
        assert!(text.starts_with(b"HTTP/1.1 200"));
        assert_ended_after(CONNECTION_AGE, task.await.unwrap());
        asking.abort();
    }

    #[tokio::test(start_paused = true)]
    async fn a_response_that_is_not_read_ends_with_the_connection() {
        let (mut client, task) = connection(REQUEST.len());
        client.write_all(REQUEST).await.unwrap();
        assert_ended_after(CONNECTION_AGE + LAST_ANSWER, task.await.unwrap());
    }

    async fn half_heads(address: SocketAddr) -> Vec<TcpStream> {
        let mut clients = Vec::new();
        for _ in 0..CLIENTS {
            let mut client = TcpStream::connect(address).await.unwrap();
            client.write_all(b"GET /metrics HT").await.unwrap();
            clients.push(client);
        }
        clients
    }

    fn evicted(admin: &Admin) -> u64 {
        admin
            .inner
            .evicted
            .load(std::sync::atomic::Ordering::Relaxed)
    }

    #[tokio::test]
    async fn health_is_answered_while_others_hold_all_places() {
        let (address, admin, _tasks) = start().await;
        let _clients = half_heads(address).await;
        let asked = async {
            let mut client = Connection::http1(address).await.unwrap();
            client.get("/readyz").await.unwrap().status
        };
        // Incomplete heads may stay open longer than that.
        let answered = timeout(HEADER_TIMEOUT / 2, asked).await;
        assert_eq!(answered.expect("it does not wait for the others"), 200);
        let surplus = CLIENTS as u64 - 128;
        eventually("the surplus is closed", || async {
            evicted(&admin) >= surplus
        })
        .await;
    }

    #[tokio::test]
    async fn a_connection_that_asks_for_health_keeps_its_place() {
        let (address, _admin, _tasks) = start().await;
        let mut probe = Connection::http1(address).await.unwrap();
        let mut other = Connection::http1(address).await.unwrap();
        assert_eq!(probe.get("/readyz").await.unwrap().status, 200);
        assert_eq!(other.get("/metrics").await.unwrap().status, 200);
        let _clients = half_heads(address).await;
        other.closed().await;
        assert_eq!(probe.get("/readyz").await.unwrap().status, 200);
        // Connections of health checks are limited as well.
        let mut probes = Vec::new();
        for _ in 0..32 {
            let mut more = Connection::http1(address).await.unwrap();
            assert_eq!(more.get("/healthz").await.unwrap().status, 200);
            probes.push(more);
        }
        probe.closed().await;
        assert_eq!(probes[0].get("/healthz").await.unwrap().status, 200);
    }
}
