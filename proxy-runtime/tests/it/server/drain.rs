use std::num::NonZeroUsize;
use std::time::Duration;

use proxy_runtime::server::{Limits, Listener, OnUpgrade};
#[cfg(feature = "http2")]
use testkit::client::Connection;
use testkit::client::Load;
use testkit::raw::{Closed, RawClient};
use testkit::time::eventually;

use crate::changed;
use crate::server::support::{Gate, Handler, builder, loads, serve, status, text};

const REQUEST: &str = "GET / HTTP/1.1\r\nHost: t.example\r\n\r\n";

/// Longer than any test waits.
const LONG: Duration = Duration::from_secs(25);

/// No client is ever directed to a closed port, and none is disconnected.
#[cfg(target_os = "linux")]
#[tokio::test]
async fn a_successor_takes_over_under_load_without_a_failed_request() {
    // An idle client must not be closed just before its request on a busy machine.
    let limits = || changed(|limits: &mut Limits| limits.closing_grace = Duration::from_secs(10));
    let start = |address| {
        builder(Handler::echo(), limits())
            .with_shared_ports(true)
            .with_listener(Listener::http(address))
            .bind()
            .unwrap()
            .start()
            .unwrap()
    };
    let mut serving = start(crate::server::support::loopback());
    let address = serving.local_addrs()[0];
    let loads = loads(address).into_iter();
    let loads: Vec<_> = loads.map(|load| load.connections(4).start()).collect();
    for round in 1..=5 {
        for load in &loads {
            load.wait_for_finished(round * 200).await;
        }
        let successor = start(address);
        let report = serving.shutdown(LONG).await;
        assert_eq!(report.cut, 0);
        assert!(report.drained > 0);
        serving = successor;
    }
    for load in loads {
        load.stop().await.assert_no_failure();
    }
}

/// The sockets themselves are passed on: no client can be reset together with a closing socket, and
/// the number of workers may change.
#[tokio::test]
async fn a_successor_inherits_the_sockets_under_load_without_a_failed_request() {
    let bind = |address, workers, sockets: &mut Vec<std::net::TcpListener>| {
        let limits = changed(|limits: &mut Limits| limits.closing_grace = Duration::from_secs(10));
        builder(Handler::echo(), limits)
            .with_workers(NonZeroUsize::new(workers).unwrap())
            .with_listener(Listener::http(address))
            .bind_with(sockets)
            .unwrap()
    };
    let server = bind(
        crate::server::support::loopback(),
        2,
        &mut Default::default(),
    );
    let address = server.local_addrs()[0];
    let mut handed = server.listening_sockets().unwrap();
    let mut serving = server.start().unwrap();
    // One client keeps its connections, and one opens a connection for each request.
    let closing = Load::new(address).request(|connection, _| {
        let request = connection.request("GET", "/").header("connection", "close");
        request.body(testkit::body::empty()).unwrap()
    });
    let loads = loads(address).into_iter().chain([closing]);
    let loads: Vec<_> = loads.map(|load| load.connections(4).start()).collect();
    for (round, workers) in [(1, 2), (2, 1), (3, 3), (4, 2)] {
        for load in &loads {
            load.wait_for_finished(round * 200).await;
        }
        let successor = bind(address, workers, &mut handed);
        assert!(handed.is_empty());
        handed = successor.listening_sockets().unwrap();
        let successor = successor.start().unwrap();
        let report = serving.shutdown(LONG).await;
        assert_eq!(report.cut, 0);
        serving = successor;
    }
    for load in loads {
        load.stop().await.assert_no_failure();
    }
    drop(handed);
    serving.shutdown(LONG).await;
    assert!(std::net::TcpListener::bind(address).is_ok());
}

#[tokio::test]
async fn requests_in_flight_are_answered_and_the_port_is_free_at_once() {
    let gate = Gate::new();
    let (server, address) = serve(gate.handler(), Limits::default());
    let mut client = RawClient::connect(address).await.unwrap();
    client.write_all(REQUEST).await.unwrap();
    gate.wait_for_waiting(1).await;
    let shutdown = tokio::spawn(server.shutdown(LONG));
    eventually("the port to be free", async || {
        std::net::TcpListener::bind(address).is_ok()
    })
    .await;
    gate.open();
    let response = client.read_response().await.unwrap();
    assert_eq!(response.status(), 200);
    assert_eq!(response.header("connection"), Some("close"));
    assert_eq!(client.assert_closed().await, Closed::Ended);
    let report = shutdown.await.unwrap();
    assert_eq!((report.drained, report.cut), (1, 0));
}

#[tokio::test]
async fn what_is_left_at_the_deadline_is_reset_and_counted() {
    let gate = Gate::new();
    let (server, address) = serve(gate.handler(), Limits::default());
    let mut clients = Vec::new();
    for count in 1..=3 {
        let mut client = RawClient::connect(address).await.unwrap();
        client.write_all(REQUEST).await.unwrap();
        gate.wait_for_waiting(count).await;
        clients.push(client);
    }
    let report = server.shutdown(Duration::from_millis(50)).await;
    assert_eq!((report.drained, report.cut), (0, 3));
    for client in &mut clients {
        assert_eq!(client.assert_closed().await, Closed::Reset);
    }
}

#[tokio::test]
async fn a_tunnel_lasts_until_the_deadline() {
    let handler = Handler::new(|mut request| async move {
        let upgraded = request.extensions_mut().remove::<OnUpgrade>().unwrap();
        tokio::spawn(async move {
            // Holds the tunnel open.
            let _tunnel = upgraded.await;
            std::future::pending::<()>().await;
        });
        let mut response = status(101);
        let headers = response.headers_mut();
        headers.insert("connection", "upgrade".parse().unwrap());
        headers.insert("upgrade", "foo".parse().unwrap());
        response
    });
    let (server, address) = serve(handler, Limits::default());
    let mut client = RawClient::connect(address).await.unwrap();
    client
        .write_all(
            "GET / HTTP/1.1\r\nHost: t.example\r\nConnection: Upgrade\r\nUpgrade: foo\r\n\r\n",
        )
        .await
        .unwrap();
    assert_eq!(client.read_response().await.unwrap().status(), 101);
    let report = server.shutdown(Duration::from_millis(50)).await;
    assert_eq!((report.drained, report.cut), (0, 1));
    assert_eq!(client.assert_closed().await, Closed::Reset);
}

#[tokio::test]
async fn dropping_the_handle_stops_the_server() {
    let gate = Gate::new();
    let (server, address) = serve(gate.handler(), Limits::default());
    let mut client = RawClient::connect(address).await.unwrap();
    client.write_all(REQUEST).await.unwrap();
    gate.wait_for_waiting(1).await;
    drop(server);
    client.assert_closed().await;
    eventually("the port to be free", async || {
        std::net::TcpListener::bind(address).is_ok()
    })
    .await;
}

#[tokio::test]
async fn giving_up_on_a_drain_stops_the_server() {
    let gate = Gate::new();
    let (server, address) = serve(gate.handler(), Limits::default());
    let mut client = RawClient::connect(address).await.unwrap();
    client.write_all(REQUEST).await.unwrap();
    gate.wait_for_waiting(1).await;
    let shutdown = tokio::time::timeout(Duration::ZERO, server.shutdown(LONG));
    assert!(shutdown.await.is_err());
    client.assert_closed().await;
}

#[cfg(feature = "http2")]
#[tokio::test]
async fn http2_clients_get_goaway_and_their_response() {
    let gate = Gate::new();
    let (server, address) = serve(gate.handler(), Limits::default());
    let mut client = Connection::http2(address).await.unwrap();
    let mut other = client.share().unwrap();
    let request = tokio::spawn(async move { other.get("/").await });
    gate.wait_for_waiting(1).await;
    let shutdown = tokio::spawn(server.shutdown(LONG));
    let rejected = async { while client.get("/more").await.is_ok() {} };
    gate.open();
    assert_eq!(request.await.unwrap().unwrap().text(), "done");
    testkit::time::guarded("GOAWAY", rejected).await;
    let report = shutdown.await.unwrap();
    assert_eq!((report.drained, report.cut), (1, 0));
}

/// HTTP/1.0 without a length: the end of the connection is the end of the body, unless it is a
/// reset.
#[tokio::test]
async fn a_truncated_response_does_not_look_whole() {
    let handler = Handler::new(|_| async {
        let frames: [Result<_, crate::server::support::BoxError>; 2] = [
            Ok(http_body::Frame::data(bytes::Bytes::from_static(b"part"))),
            Err("the rest is lost".into()),
        ];
        let frames = futures_util::stream::iter(frames);
        text("")
            .map(|_| http_body_util::BodyExt::boxed_unsync(http_body_util::StreamBody::new(frames)))
    });
    let (_server, address) = serve(handler, Limits::default());
    for request in ["GET / HTTP/1.0\r\n\r\n", REQUEST] {
        let mut client = RawClient::connect(address).await.unwrap();
        client.write_all(request).await.unwrap();
        let result = client.read_response().await;
        assert!(result.is_err(), "{result:?}");
    }
}
