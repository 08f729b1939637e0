//! Tests over TCP, with other servers on an agent's port.

use std::net::SocketAddr;
use std::time::Duration;

use tokio::net::{TcpListener, TcpStream};

use testkit::faults::RefusingPort;
use testkit::time::guarded;

use super::*;

async fn listener() -> (TcpListener, ConnectOptions) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let options = ConnectOptions::new(listener.local_addr().unwrap().to_string());
    (listener, options)
}

/// Returns the result of connecting to a server that accepts the connection and does this with it.
async fn connect_to(
    peer: impl AsyncFnOnce(TcpStream) -> Option<TcpStream>,
    with: impl FnOnce(ConnectOptions) -> ConnectOptions,
) -> Result<SerfClient, ClientError> {
    let (listener, options) = listener().await;
    let options = with(options);
    let both = async {
        tokio::join!(SerfClient::connect(&options), async {
            let (stream, _) = listener.accept().await.unwrap();
            peer(stream).await
        })
    };
    guarded("its end", both).await.0
}

async fn read_handshake(stream: &mut TcpStream) {
    let mut handshake = [0; 34];
    stream.read_exact(&mut handshake).await.unwrap();
}

#[tokio::test]
async fn nobody_there_is_unreachable() {
    let port = RefusingPort::new();
    let options = ConnectOptions::new(port.addr().to_string());
    let error = SerfClient::connect(&options).await.unwrap_err();
    assert_eq!(error.kind(), ClientErrorKind::Unreachable);
    assert!(error.is_transient());
    assert!(error.to_string().contains(&options.address), "{error}");
    for address in ["nowhere", "127.0.0.1:99999", ""] {
        let client = SerfClient::connect(&ConnectOptions::new(address)).await;
        assert_eq!(kind(&client), ClientErrorKind::Unreachable, "{address}");
    }
}

#[tokio::test]
async fn an_http_server_is_no_agent() {
    let client = connect_to(
        async |mut stream| {
            read_handshake(&mut stream).await;
            let answer = b"HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n";
            stream.write_all(answer).await.unwrap();
            None
        },
        |options| options,
    );
    assert_eq!(kind(&client.await), ClientErrorKind::Protocol);
}

#[tokio::test]
async fn one_who_says_nothing_is_left() {
    let client = connect_to(
        async |stream| Some(stream),
        |options| options.with_handshake_timeout(Duration::from_millis(50)),
    );
    assert_eq!(kind(&client.await), ClientErrorKind::TimedOut);
}

/// An agent that was stopped: the system accepts the connection, but no response comes.
#[tokio::test]
async fn one_who_does_not_even_accept_is_left() {
    let (_listener, options) = listener().await;
    let options = options.with_handshake_timeout(Duration::from_millis(50));
    let client = SerfClient::connect(&options).await;
    assert_eq!(kind(&client), ClientErrorKind::TimedOut);
}

#[tokio::test]
async fn one_who_goes_is_closed() {
    let client = connect_to(
        async |mut stream| {
            read_handshake(&mut stream).await;
            None
        },
        |options| options,
    );
    assert_eq!(kind(&client.await), ClientErrorKind::Closed);
}

/// An agent with a connection, and a client.
async fn agent() -> (TcpStream, SerfClient) {
    let (listener, options) = listener().await;
    let (client, stream) = tokio::join!(SerfClient::connect(&options), async {
        let (mut stream, _) = listener.accept().await.unwrap();
        read_handshake(&mut stream).await;
        stream.write_all(&header(1, "")).await.unwrap();
        stream
    });
    (stream, client.unwrap())
}

/// Case 98.
#[tokio::test]
async fn a_connection_that_is_reset_is_closed() {
    let (stream, client) = agent().await;
    // What the system sends for unread data when the connection is closed so is a reset.
    stream.set_zero_linger().unwrap();
    let long = vec![7; 500_000];
    let (first, second, ()) = tokio::join!(
        client.event("e", &long, false),
        client.event("e", &long, false),
        async { drop(stream) }
    );
    assert_eq!(kind(&first), ClientErrorKind::Closed);
    assert_eq!(kind(&second), ClientErrorKind::Closed);
    guarded("the end", client.closed()).await;
    assert_eq!(client.end().unwrap().kind(), ClientErrorKind::Closed);
    assert_eq!(kind(&client.members().await), ClientErrorKind::Closed);
}

/// The last words of an agent count, also if the connection is broken by then.
#[tokio::test]
async fn what_was_said_before_the_end_is_heard() {
    for _ in 0..20 {
        let (mut stream, client) = agent().await;
        let (members, ()) = tokio::join!(client.members(), async {
            let mut request = [0; 22];
            stream.read_exact(&mut request).await.unwrap();
            stream
                .write_all(&header(2, "Authentication required"))
                .await
                .unwrap();
            drop(stream);
        });
        assert_eq!(kind(&members), ClientErrorKind::Denied);
    }
}

#[tokio::test]
async fn a_name_is_resolved() {
    let (listener, options) = listener().await;
    let address: SocketAddr = options.address.parse().unwrap();
    let options = ConnectOptions::new(format!("localhost:{}", address.port()));
    let (client, ()) = tokio::join!(SerfClient::connect(&options), async {
        let (mut stream, _) = listener.accept().await.unwrap();
        read_handshake(&mut stream).await;
        stream.write_all(&header(1, "")).await.unwrap();
    });
    assert_eq!(client.unwrap().address(), options.address);
}
