use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use http::{Request, StatusCode};
use tokio::sync::watch;
use tokio::task::JoinSet;

use super::{Answer, ClientError, Connection, LoadReport, Protocol};
use crate::body::{self, Body};
use crate::time::{guarded, within};

/// A closed loop of requests: each connection sends its next request when the previous response is
/// complete.
///
/// Connections are kept alive, and reopened when the server closes them. No request is sent twice,
/// except one of which no byte was sent because the connection had been closed before.
///
/// ```
/// use testkit::client::Load;
/// use testkit::origin::Origin;
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() {
/// let origin = Origin::named("a");
/// let load = Load::new(origin.addr()).connections(4).start();
/// load.wait_for_finished(100).await;
/// // … what must not disturb anybody happens here …
/// let report = load.stop().await;
/// report.assert_no_failure();
/// # }
/// ```
#[derive(Clone)]
#[must_use = "nothing is sent before `start` is called"]
pub struct Load {
    addr: SocketAddr,
    protocol: Protocol,
    connections: usize,
    max_requests: u64,
    max_duration: Duration,
    request_limit: Duration,
    pause: Duration,
    request: MakeRequest,
    expect: Expect,
}

type MakeRequest = Arc<dyn Fn(&Connection, u64) -> Request<Body> + Send + Sync>;
type Expect = Arc<dyn Fn(&Answer) -> Result<(), String> + Send + Sync>;

impl Load {
    /// GET `/` over 4 HTTP/1.1 connections, expecting 200, until stopped; at most 1,000,000
    /// requests or 600 s.
    pub fn new(addr: SocketAddr) -> Self {
        Self {
            addr,
            protocol: Protocol::Http1,
            connections: 4,
            max_requests: 1_000_000,
            max_duration: Duration::from_secs(600),
            request_limit: Duration::from_secs(20),
            pause: Duration::ZERO,
            request: Arc::new(|connection, _| {
                let request = connection.request("GET", "/").body(body::empty());
                request.expect("these parts are valid")
            }),
            expect: Arc::new(|answer| match answer.status {
                StatusCode::OK => Ok(()),
                status => Err(format!("status {}", status.as_u16())),
            }),
        }
    }

    /// Uses HTTP/2 (prior knowledge) instead of HTTP/1.1, with one stream at a time on each
    /// connection.
    pub fn http2(mut self) -> Self {
        self.protocol = Protocol::Http2;
        self
    }

    /// Sets the number of concurrent connections.
    pub fn connections(mut self, connections: usize) -> Self {
        self.connections = connections;
        self
    }

    /// Sets the function that makes the requests; each call gets a different number, from 0.
    pub fn request<R>(mut self, request: R) -> Self
    where
        R: Fn(&Connection, u64) -> Request<Body> + Send + Sync + 'static,
    {
        self.request = Arc::new(request);
        self
    }

    /// GET for this path.
    ///
    /// # Panics
    ///
    /// When the first request is made, if this is no path.
    pub fn path(self, path: impl Into<String>) -> Self {
        let path = path.into();
        self.request(move |connection, _| {
            let request = connection.request("GET", &path).body(body::empty());
            request.expect("a path was given")
        })
    }

    /// Sets the check of responses; its error is the reason under which the failure is counted.
    pub fn expect<E>(mut self, expect: E) -> Self
    where
        E: Fn(&Answer) -> Result<(), String> + Send + Sync + 'static,
    {
        self.expect = Arc::new(expect);
        self
    }

    /// Stops by itself after this many requests.
    pub fn max_requests(mut self, requests: u64) -> Self {
        self.max_requests = requests;
        self
    }

    /// Stops by itself after this much real time.
    pub fn max_duration(mut self, duration: Duration) -> Self {
        self.max_duration = duration;
        self
    }

    /// Sets the time limit of a request in real time, after which it counts as failed.
    /// Default: 20 s.
    pub fn request_limit(mut self, limit: Duration) -> Self {
        self.request_limit = limit;
        self
    }

    /// Sets the pause of each connection between two requests, on tokio's clock, so that a long
    /// load leaves CPU time to the programs under test. Default: none.
    pub fn pause(mut self, pause: Duration) -> Self {
        self.pause = pause;
        self
    }

    /// Starts on the current runtime.
    ///
    /// # Panics
    ///
    /// Outside a tokio runtime.
    #[track_caller]
    pub fn start(self) -> RunningLoad {
        let (progress, report) = watch::channel(LoadReport::default());
        let shared = Arc::new(Shared {
            load: self,
            next: AtomicU64::new(0),
            progress,
            stop: watch::Sender::new(false),
        });
        let mut workers = JoinSet::new();
        workers.spawn(Arc::clone(&shared).stop_in_time());
        for _ in 0..shared.load.connections {
            workers.spawn(Arc::clone(&shared).work());
        }
        RunningLoad {
            shared,
            report,
            workers,
        }
    }
}

impl std::fmt::Debug for Load {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Load")
            .field("addr", &self.addr)
            .field("protocol", &self.protocol)
            .field("connections", &self.connections)
            .field("max_requests", &self.max_requests)
            .field("max_duration", &self.max_duration)
            .field("request_limit", &self.request_limit)
            .field("pause", &self.pause)
            .finish_non_exhaustive()
    }
}

/// A [`Load`] in progress. Dropping it cancels the requests in flight.
#[derive(Debug)]
#[must_use = "a load ends when it is dropped"]
pub struct RunningLoad {
    shared: Arc<Shared>,
    report: watch::Receiver<LoadReport>,
    workers: JoinSet<()>,
}

impl RunningLoad {
    /// The results so far.
    pub fn report(&self) -> LoadReport {
        self.report.borrow().clone()
    }

    /// Waits until at least `n` exchanges have ended; panics after [`GUARD`](crate::time::GUARD).
    #[track_caller]
    pub fn wait_for_finished(&self, n: u64) -> impl Future<Output = ()> + use<> {
        let mut report = self.report.clone();
        guarded(format!("{n} finished requests"), async move {
            let reached = report.wait_for(|report| report.finished >= n).await;
            reached.map(drop).expect("the load is still there");
        })
    }

    /// Finishes the requests in flight, sends no more, and returns the results.
    pub async fn stop(self) -> LoadReport {
        self.shared.stop.send_replace(true);
        self.finish().await
    }

    /// Waits for the end of the load, at its maximum number of requests or duration, and returns
    /// the results.
    pub async fn finish(mut self) -> LoadReport {
        while let Some(worker) = self.workers.join_next().await {
            if let Err(error) = worker {
                std::panic::resume_unwind(error.into_panic());
            }
        }
        self.report()
    }
}

struct Shared {
    load: Load,
    next: AtomicU64,
    progress: watch::Sender<LoadReport>,
    stop: watch::Sender<bool>,
}

impl std::fmt::Debug for Shared {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Shared")
            .field("load", &self.load)
            .finish_non_exhaustive()
    }
}

impl Shared {
    /// Ends the load after its maximum duration as `stop` does: between two requests.
    async fn stop_in_time(self: Arc<Self>) {
        let mut stop = self.stop.subscribe();
        let _ = within(self.load.max_duration, stop.wait_for(|stop| *stop)).await;
        self.stop.send_replace(true);
    }

    /// The number of the next request, unless it is time to stop.
    fn next(&self) -> Option<u64> {
        if *self.stop.borrow() {
            return None;
        }
        let number = self.next.fetch_add(1, Ordering::Relaxed);
        if number >= self.load.max_requests {
            self.stop.send_replace(true);
            return None;
        }
        Some(number)
    }

    /// Uses one connection after another, with one request after another.
    async fn work(self: Arc<Self>) {
        let mut connection = None;
        while let Some(number) = self.next() {
            let exchange = self.exchange(&mut connection, number);
            let outcome = match within(self.load.request_limit, exchange).await {
                Ok(outcome) => outcome,
                Err(_) => Err(format!("no answer within {:?}", self.load.request_limit)),
            };
            if outcome.is_err() {
                // Later data on the connection belongs to the failed exchange.
                connection = None;
            }
            self.progress.send_modify(|report| report.record(outcome));
            if !self.load.pause.is_zero() {
                let mut stop = self.stop.subscribe();
                let stopped = stop.wait_for(|stop| *stop);
                let _ = tokio::time::timeout(self.load.pause, stopped).await;
            }
        }
    }

    async fn exchange(
        &self,
        connection: &mut Option<Connection>,
        number: u64,
    ) -> Result<(), String> {
        loop {
            let reused = connection.is_some();
            let open = match connection {
                Some(open) => open,
                None => connection.insert(self.connect().await.map_err(|error| error.chain())?),
            };
            let request = (self.load.request)(open, number);
            match open.send(request).await {
                Ok(answer) => return (self.load.expect)(&answer),
                // Only a connection that has served before may turn out to be closed: a new one
                // that accepts no request is a failure, and repeating it would loop.
                Err(ClientError::NotSent(_)) if reused => {
                    *connection = None;
                    self.progress.send_modify(|report| report.reconnects += 1);
                }
                Err(error) => return Err(error.chain()),
            }
        }
    }

    async fn connect(&self) -> Result<Connection, ClientError> {
        let connection = match self.load.protocol {
            Protocol::Http1 => Connection::http1(self.load.addr).await?,
            Protocol::Http2 => Connection::http2(self.load.addr).await?,
        };
        self.progress.send_modify(|report| report.connections += 1);
        Ok(connection)
    }
}
