//! Connections that take places and do nothing with them.

use std::net::SocketAddr;
use std::time::Duration;

use testkit::client::Connection;
use testkit::time::guarded;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpSocket, TcpStream};
use xds_control_plane::server::ServerOptions;

use crate::xds::support::Running;
use crate::xds::support::resources::Plan;

const POLL: &str =
    "POST /v3/discovery:clusters HTTP/1.1\r\nhost: xds\r\ncontent-length: 2\r\n\r\n{}";

async fn connect_from(own: &str, server: SocketAddr) -> TcpStream {
    let socket = TcpSocket::new_v4().unwrap();
    socket.bind(format!("{own}:0").parse().unwrap()).unwrap();
    socket.connect(server).await.unwrap()
}

/// Returns the first bytes of the response to a poll, or none if the connection is closed.
async fn poll(connection: &mut TcpStream) -> String {
    let _ = connection.write_all(POLL.as_bytes()).await;
    let mut begin = [0; 12];
    match guarded("an answer", connection.read_exact(&mut begin)).await {
        Ok(_) => String::from_utf8_lossy(&begin).into_owned(),
        Err(_) => String::new(),
    }
}

#[tokio::test]
async fn who_says_nothing_gives_the_place_back() {
    let options = ServerOptions::default()
        .with_connections(3)
        .with_opening_timeout(Duration::from_secs(1));
    let server = Running::with(Plan::default().snapshot(), options).await;
    let mut silent = Vec::new();
    for begin in ["", "P", "PRI * HTTP/2.0\r\n\r\nSM"] {
        let mut connection = TcpStream::connect(server.address).await.unwrap();
        connection.write_all(begin.as_bytes()).await.unwrap();
        silent.push(connection);
    }
    let mut served = Connection::http1(server.address).await.unwrap();
    assert_eq!(ask(&mut served).await, 200);
    for mut connection in silent {
        let mut rest = Vec::new();
        // The connection is closed, with any error of the HTTP reader.
        let _ = guarded("its end", connection.read_to_end(&mut rest)).await;
    }
    // Who has begun in time may take breaks.
    tokio::time::sleep(Duration::from_secs(2)).await;
    assert_eq!(ask(&mut served).await, 200);
}

async fn ask(connection: &mut Connection) -> u16 {
    let request = connection.request("POST", "/v3/discovery:clusters");
    let request = request.body(testkit::body::full("{}")).unwrap();
    connection.send(request).await.unwrap().status.as_u16()
}

#[tokio::test]
async fn one_address_does_not_lock_out_others() {
    let options = ServerOptions::default()
        .with_connections(4)
        .with_connections_per_peer(2);
    let server = Running::with(Plan::default().snapshot(), options).await;
    let mut first = connect_from("127.0.0.1", server.address).await;
    let mut second = connect_from("127.0.0.1", server.address).await;
    assert_eq!(poll(&mut first).await, "HTTP/1.1 200");
    assert_eq!(poll(&mut second).await, "HTTP/1.1 200");
    let mut third = connect_from("127.0.0.1", server.address).await;
    assert_eq!(poll(&mut third).await, "");
    let mut other = connect_from("127.0.0.2", server.address).await;
    assert_eq!(poll(&mut other).await, "HTTP/1.1 200");
}
