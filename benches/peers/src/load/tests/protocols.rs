//! The generator over TLS and over HTTP/2, against servers of a few lines.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::Duration;

use bytes::Bytes;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::{ServerConfig, ServerConnection, StreamOwned};

use super::{plan, run};
use crate::load::{Edge, Exchange, Extent, Pace, Plan, Target, run_http2};
use crate::origin::Resource;
use crate::tls;

const REPLY: &[u8] = b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n";

/// Answers every request on a connection until the connection is to be closed.
fn answer_all(config: Arc<ServerConfig>, socket: TcpStream) {
    let Ok(connection) = ServerConnection::new(config) else {
        return;
    };
    let mut stream = StreamOwned::new(connection, socket);
    let mut buffer = [0; 4096];
    let mut request = Vec::new();
    while let Ok(read @ 1..) = stream.read(&mut buffer) {
        request.extend_from_slice(&buffer[..read]);
        if !request.ends_with(b"\r\n\r\n") {
            continue;
        }
        let closes = request.windows(17).any(|part| part == b"Connection: close");
        request.clear();
        if stream.write_all(REPLY).is_err() || closes {
            break;
        }
    }
    stream.conn.send_close_notify();
    let _ = stream.flush();
}

#[test]
fn requests_over_tls_are_counted_on_kept_and_on_new_connections() {
    let directory = tempfile::tempdir().unwrap();
    let (files, client) = tls::prepare(directory.path()).unwrap();
    let chain = vec![CertificateDer::from_pem_file(&files.chain).unwrap()];
    let key = PrivateKeyDer::from_pem_file(&files.key).unwrap();
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let server = ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(chain, key)
        .unwrap();
    let server = Arc::new(server);
    let listener = TcpListener::bind(("127.0.0.1", 0)).unwrap();
    let target = Target {
        address: listener.local_addr().unwrap(),
        tls: Some(client),
    };
    let connections = AtomicU64::new(0);
    let stop = AtomicBool::new(false);
    thread::scope(|scope| {
        scope.spawn(|| {
            while let Ok((socket, _)) = listener.accept() {
                if stop.load(Ordering::Relaxed) {
                    return;
                }
                connections.fetch_add(1, Ordering::Relaxed);
                let server = Arc::clone(&server);
                scope.spawn(move || answer_all(server, socket));
            }
        });
        for (pace, least, most) in [(Pace::Closed, 1, 8), (Pace::Churn, 50, u64::MAX)] {
            connections.store(0, Ordering::Relaxed);
            let counted = plan(Exchange::get(Resource::Empty), pace, Extent::Requests(50));
            let (tally, edges) = run(&counted, &target);
            assert_eq!(
                (tally.requests, tally.errors, tally.unanswered),
                (50, 0, 0),
                "{pace:?} {:?}",
                tally.first_error
            );
            assert_eq!(edges, [Edge::Begin, Edge::End]);
            let opened = connections.load(Ordering::Relaxed);
            assert!(
                (least..=most).contains(&opened),
                "{pace:?}: {opened} connections"
            );
        }
        stop.store(true, Ordering::Relaxed);
        drop(TcpStream::connect(target.address));
    });
}

/// Starts an HTTP/2 server on its own thread. It answers the known path with 128 bytes and others
/// with 404. Returns its address.
fn http2_server() -> std::net::SocketAddr {
    let listener = TcpListener::bind(("127.0.0.1", 0)).unwrap();
    let address = listener.local_addr().unwrap();
    listener.set_nonblocking(true).unwrap();
    // The thread ends with the test process: no test joins it.
    thread::spawn(move || {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .unwrap();
        tokio::task::LocalSet::new().block_on(&runtime, async {
            let listener = tokio::net::TcpListener::from_std(listener).unwrap();
            while let Ok((socket, _)) = listener.accept().await {
                tokio::task::spawn_local(async move {
                    let mut connection = ::h2::server::handshake(socket).await.unwrap();
                    while let Some(Ok((request, mut respond))) = connection.accept().await {
                        let found = request.uri().path().ends_with("/128");
                        let status = if found { 200 } else { 404 };
                        let response = http::Response::builder().status(status).body(()).unwrap();
                        let mut body = respond.send_response(response, false).unwrap();
                        body.send_data(Bytes::from_static(&[b'x'; 128]), true)
                            .unwrap();
                    }
                });
            }
        });
    });
    address
}

#[test]
fn requests_over_http2_are_counted_and_their_answers_looked_at() {
    let address = http2_server();
    let two = |exchange| Plan {
        connections: 2,
        ..plan(exchange, Pace::Closed, Extent::Requests(100))
    };
    let mut edges = Vec::new();
    let good = two(Exchange::get(Resource::Bytes128));
    let tally = run_http2(&good, address, 4, &mut |edge| edges.push(edge)).unwrap();
    assert_eq!(
        (tally.requests, tally.errors, tally.unanswered),
        (100, 0, 0),
        "{:?}",
        tally.first_error
    );
    assert_eq!(tally.latency.len(), 100);
    assert_eq!(edges, [Edge::Begin, Edge::End]);

    let missing = Plan {
        warm_up: Duration::ZERO,
        extent: Extent::Time(Duration::from_millis(500)),
        ..two(Exchange::get(Resource::Kilobyte))
    };
    let tally = run_http2(&missing, address, 4, &mut |_| {}).unwrap();
    assert_eq!(tally.requests, 0);
    assert_eq!(tally.first_error.as_deref(), Some("status 404"));
}
