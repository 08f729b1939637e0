//! Tests of idle clients that take places.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::{Request, Response, StatusCode};
use hyper::body::Incoming;
use testkit::raw::RawClient;
use testkit::time::guarded;
use tokio::net::TcpListener;
use tokio::sync::Semaphore;

use super::accept::Limits;
use super::{Answers, ClosedByFault, Peer, Reply, Server, body};

/// A time at which a test would hang.
const HOUR: Duration = Duration::from_secs(3_600);

/// A handler that reads the body, answers `/slow` on permission, and `/large` with more than any socket
/// holds.
struct Site {
    slow: Arc<Semaphore>,
}

impl Answers for Site {
    async fn serve(
        &self,
        request: Request<Incoming>,
        _: Peer,
    ) -> Result<Response<Reply>, ClosedByFault> {
        let (head, body) = request.into_parts();
        let mut response = Response::new(Reply::whole(Bytes::from_static(b"fine")));
        if body::read(&head, body).await.is_err() {
            *response.status_mut() = StatusCode::BAD_REQUEST;
        }
        match head.uri.path() {
            "/slow" => self
                .slow
                .acquire()
                .await
                .expect("it is never closed")
                .forget(),
            "/large" => *response.body_mut() = Reply::whole(vec![b'x'; 64 << 20].into()),
            _ => {}
        }
        Ok(response)
    }
}

struct Running {
    server: Server,
    slow: Arc<Semaphore>,
}

impl Running {
    async fn start(connections: usize, patience: Duration, stall: Duration) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let slow = Arc::new(Semaphore::new(0));
        let site = Arc::new(Site {
            slow: Arc::clone(&slow),
        });
        let limits = Limits {
            connections,
            patience,
            stall,
        };
        let server = Server::start_with(limits, listener, None, site).expect("it starts");
        Self { server, slow }
    }

    fn address(&self) -> SocketAddr {
        self.server.address()
    }

    /// Connects a client that has sent this text.
    async fn client(&self, sent: &str) -> RawClient {
        let mut client = RawClient::connect(self.address())
            .await
            .expect("it listens");
        client.write_all(sent).await.expect("it is read");
        client
    }

    /// Connects a client that is served and then stays idle.
    async fn serves(&self) -> RawClient {
        let mut client = self.client("GET / HTTP/1.1\r\nHost: a\r\n\r\n").await;
        let answer = guarded("a newcomer is served", client.read_response()).await;
        assert_eq!(answer.expect("there is an answer").text(), "fine");
        client
    }
}

#[tokio::test]
async fn clients_that_do_nothing_give_way() {
    for idle in [
        // No bytes, half a head, half a body, and a whole call followed by silence.
        "",
        "GET / HTTP/1.1\r\nHost:",
        "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 10\r\n\r\nx",
        "GET / HTTP/1.1\r\nHost: a\r\n\r\n",
    ] {
        let running = Running::start(2, Duration::from_millis(20), HOUR).await;
        let mut first = running.client(idle).await;
        if idle.ends_with("a\r\n\r\n") {
            first.read_response().await.expect("there is an answer");
        }
        let second = running
            .client("GET /slow HTTP/1.1\r\nHost: a\r\n\r\n")
            .await;
        let mut newcomers = Vec::new();
        for _ in 0..3 {
            newcomers.push(running.serves().await);
        }
        guarded("the first is closed", first.assert_closed()).await;
        // The second client waits for the server, so it stays, even if others connect.
        running.slow.add_permits(1);
        let mut second = second;
        let answer = guarded("the second is answered", second.read_response()).await;
        assert_eq!(
            answer.expect("there is an answer").text(),
            "fine",
            "{idle:?}"
        );
    }
}

#[tokio::test]
async fn nobody_gives_way_before_patience_ends_or_without_need() {
    let running = Running::start(2, HOUR, HOUR).await;
    let mut clients = [running.client("GET ").await, running.client("GET ").await];
    let newcomer = running.client("GET / HTTP/1.1\r\nHost: a\r\n\r\n").await;
    for client in &mut clients {
        client
            .write_all("/ HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n")
            .await
            .expect("it is read");
        let answer = guarded("both are answered", client.read_response()).await;
        assert_eq!(answer.expect("there is an answer").text(), "fine");
    }
    // Now a place is free.
    let mut newcomer = newcomer;
    let answer = guarded("so is the newcomer", newcomer.read_response()).await;
    assert_eq!(answer.expect("there is an answer").text(), "fine");
}

#[tokio::test]
async fn a_client_that_does_not_read_its_answer_is_cut() {
    let running = Running::start(1, HOUR, Duration::from_millis(100)).await;
    let _reads_nothing = running
        .client("GET /large HTTP/1.1\r\nHost: a\r\n\r\n")
        .await;
    running.serves().await;
}
