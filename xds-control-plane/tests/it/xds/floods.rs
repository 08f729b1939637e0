//! Log lines that clients can cause: one for each cause in 10 s, however often it happens.

use std::sync::Arc;
use std::time::Duration;

use prometheus_client::registry::Registry;
use socket2::SockRef;
use tokio::net::TcpListener;
use tokio::sync::watch;
use tokio::time::timeout;
use xds_control_plane::admin::Admin;
use xds_control_plane::server::{ServerOptions, XdsServer};

use crate::xds::support::Running;
use crate::xds::support::log;
use crate::xds::support::resources::Plan;

/// Asserts that the log has one line with `text`, which says how many were left out before it.
#[track_caller]
fn assert_one_line(text: &str) {
    let lines = log::lines_with(text);
    assert_eq!(lines.len(), 1, "{lines:#?}");
    assert!(lines[0].contains("left_out=0"), "{}", lines[0]);
}

/// A listener whose sockets cannot be accepted, as without free file descriptors.
async fn unusable() -> TcpListener {
    let listener = TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
    let socket = SockRef::from(&listener);
    socket.shutdown(std::net::Shutdown::Both).unwrap();
    listener
}

#[tokio::test(start_paused = true)]
async fn a_listener_that_accepts_nothing_is_logged_once() {
    log::record();
    let (_snapshots, receiver) = watch::channel(Some(Arc::new(Plan::default().snapshot())));
    let server = XdsServer::new(receiver, ServerOptions::default());
    let serving = server.serve(unusable().await, std::future::pending());
    // Ten attempts.
    assert!(timeout(Duration::from_secs(1), serving).await.is_err());
    assert_one_line("the xDS server cannot accept a connection");
}

#[tokio::test(start_paused = true)]
async fn an_admin_listener_that_accepts_nothing_is_logged_once() {
    log::record();
    let (_snapshots, receiver) = watch::channel(None);
    let server = XdsServer::new(receiver, ServerOptions::default());
    let admin = Admin::builder(server.handle(), Registry::default()).build();
    let serving = admin.serve(unusable().await);
    assert!(timeout(Duration::from_secs(1), serving).await.is_err());
    assert_one_line("the admin API cannot accept a connection");
}

#[tokio::test]
async fn rejections_of_clients_that_reconnect_are_logged_once() {
    use crate::xds::streams::{Stream, rejecting, request};
    use xds_control_plane::snapshot::ResourceType::Cluster;

    log::record();
    let plan = Plan::default().service("a", &["127.0.0.1:1".parse().unwrap()]);
    let server = Running::start(plan.snapshot()).await;
    for _ in 0..5 {
        let mut stream = Stream::open(&server).await;
        stream.say(request(Cluster, &[]));
        let response = stream.response().await;
        stream.say(rejecting(&response, "no"));
        testkit::time::eventually("the rejection is known", async || {
            let nodes = server.handle.nodes();
            let mut types = nodes
                .iter()
                .flat_map(|node| &node.streams)
                .flat_map(|of| &of.types);
            types.any(|of| of.rejected.is_some())
        })
        .await;
        drop(stream);
        testkit::time::eventually("the stream is gone", async || {
            server.handle.open_streams() == 0
        })
        .await;
    }
    assert_one_line("a client has rejected a response");
}

#[tokio::test]
async fn types_that_are_not_served_are_logged_once() {
    use crate::xds::streams::{Stream, request};
    use xds_control_plane::snapshot::ResourceType::Cluster;

    log::record();
    let server = Running::start(Plan::default().snapshot()).await;
    for _ in 0..5 {
        let mut stream = Stream::open(&server).await;
        let mut unknown = request(Cluster, &[]);
        unknown.type_url = "type.googleapis.com/none".to_owned();
        stream.say(unknown);
        stream.say(request(Cluster, &[]));
        stream.response().await;
    }
    assert_one_line("a client requests a type that is not served");
}

#[cfg(feature = "tls")]
mod tls {
    use testkit::certs::CertificateAuthority;
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    use tokio::net::TcpStream;
    use xds_control_plane::server::ServerTls;

    use super::*;

    /// Sends `bytes` over ten connections to a server with TLS, and waits until it has closed all.
    async fn handshakes(bytes: &[u8], opening: Duration) {
        log::record();
        let files = CertificateAuthority::new("fleet")
            .issue(&["xds.test"])
            .write_pem();
        let options = ServerOptions::default()
            .with_tls(ServerTls::new(files.certificate(), files.key()))
            .with_opening_timeout(opening);
        let server = Running::with(Plan::default().snapshot(), options).await;
        let mut clients = Vec::new();
        for _ in 0..10 {
            let mut client = TcpStream::connect(server.address).await.unwrap();
            client.write_all(bytes).await.unwrap();
            clients.push(client);
        }
        for mut client in clients {
            // An end or a reset.
            let mut rest = Vec::new();
            let closed = client.read_to_end(&mut rest);
            let _ = testkit::time::guarded("the end of the connection", closed).await;
        }
    }

    #[tokio::test]
    async fn failed_handshakes_are_logged_once() {
        handshakes(b"GET / HTTP/1.1\r\n\r\n", Duration::from_secs(60)).await;
        assert_one_line("a client does not agree on TLS");
    }

    #[tokio::test]
    async fn slow_handshakes_are_logged_once() {
        handshakes(b"", Duration::from_millis(1)).await;
        assert_one_line("a client takes too long to agree on TLS");
    }
}
