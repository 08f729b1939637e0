//! Many requests at once, and who else is served meanwhile.

use std::cell::Cell;
use std::io;

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::task::{spawn_local, yield_now};

use super::*;
use crate::Proxy;
use crate::fixtures::snapshot;
use crate::stream::ByteStream;

const REQUEST: &[u8] = b"GET /path HTTP/1.1\r\nhost: t\r\n\r\n";

/// The budget of a task in tokio's units.
const BUDGET: u64 = 128;

/// A few times that: in which order tasks have their turns is the runtime's affair.
const MOST: u64 = 4 * BUDGET;

const REQUESTS: u64 = 10 * MOST;

/// A client that has sent everything, and takes everything. Like a socket that is read and written directly, it takes
/// nothing from the budget of the task.
struct Greedy {
    rest: Vec<u8>,
}

impl Greedy {
    fn new() -> Self {
        Self {
            rest: REQUEST.repeat(REQUESTS as usize),
        }
    }
}

impl ByteStream for Greedy {}

impl Transport for Greedy {
    fn reset_on_drop(&self) {}

    fn lingers_on_close(&self) -> bool {
        false
    }
}

impl AsyncRead for Greedy {
    fn poll_read(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let count = buffer.remaining().min(self.rest.len());
        buffer.put_slice(&self.rest[..count]);
        self.rest.drain(..count);
        Poll::Ready(Ok(()))
    }
}

impl AsyncWrite for Greedy {
    fn poll_write(
        self: Pin<&mut Self>,
        _: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Poll::Ready(Ok(bytes.len()))
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }
}

/// Returns the largest number of requests that are served before the next task runs.
async fn most_at_once(handler: impl handler::Handler) -> u64 {
    local(async {
        let bench = Rc::new(Bench::new(Limits::default()));
        let greedy = bench.serve_by(Greedy::new(), handler);
        let most = Rc::new(Cell::new(0));
        let neighbour = spawn_local({
            let (bench, most) = (bench.clone(), most.clone());
            async move {
                let mut before = 0;
                loop {
                    let served = bench.metrics.counts().requests;
                    most.set(most.get().max(served - before));
                    before = served;
                    yield_now().await;
                }
            }
        });
        greedy.await.unwrap();
        yield_now().await;
        neighbour.abort();
        assert_eq!(bench.metrics.counts().requests, REQUESTS);
        most.get()
    })
    .await
}

/// The answers of a service that has no need to wait.
#[tokio::test]
async fn requests_that_are_answered_at_once_leave_others_their_turn() {
    let most = most_at_once(ServiceHandler(Handler::path())).await;
    assert!((1..=MOST).contains(&most), "{most}");
}

/// Requests to a proxy that end without a route or a destination.
#[tokio::test]
async fn requests_that_are_not_forwarded_leave_others_their_turn() {
    let nowhere =
        r#"{"Routes":{"r":{"ClusterId":"c","Match":{"Path":"/path"}}},"Clusters":{"c":{}}}"#;
    for config in ["{}", nowhere] {
        let builder = Proxy::builder().snapshot(snapshot(config));
        let (proxy, _driver) = builder.build().unwrap();
        let most = most_at_once(ProxyHandler::new(proxy.service())).await;
        assert!((1..=MOST).contains(&most), "{config}: {most}");
    }
}
