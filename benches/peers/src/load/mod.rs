//! The load generator: one thread, one core.
//!
//! | pace | time of sending | start of the latency |
//! |---|---|---|
//! | closed | after the complete answer to the connection's last request | sending |
//! | open | at fixed times, whatever the state of earlier requests | the due time |
//! | churn | as closed, with each request on a new connection | start of the connection |
//!
//! Every answer is read to its end and compared with the known answer of the origin. A difference
//! counts as an error.

mod arrivals;
mod connection;
mod generator;
mod h2;
mod idle;
mod phase;
mod response;
#[cfg(test)]
mod tests;

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use rustls::ClientConfig;

use crate::histogram::Histogram;
use crate::origin::Resource;

pub(crate) use self::generator::run as run_http1;
pub(crate) use self::h2::run as run_http2;
pub(crate) use self::idle::hold;

/// Destination of the requests.
#[derive(Clone)]
pub(crate) struct Target {
    pub(crate) address: SocketAddr,
    pub(crate) tls: Option<Arc<ClientConfig>>,
}

/// A request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Exchange {
    pub(crate) resource: Resource,
    /// Size of the request body in bytes. The method is POST if it is not 0.
    pub(crate) upload: usize,
}

/// Path of the requests: one of the thousand routes of our gateway.
pub(crate) const ROUTE: &str = "/r617";

/// Host of the requests.
pub(crate) const HOST: &str = "bench.example";

impl Exchange {
    pub(crate) const fn get(resource: Resource) -> Self {
        Self {
            resource,
            upload: 0,
        }
    }

    pub(crate) const fn post(upload: usize) -> Self {
        Self {
            resource: Resource::Sink,
            upload,
        }
    }

    pub(crate) fn path(self) -> String {
        format!("{ROUTE}/{}", self.resource.segment())
    }

    /// Renders the HTTP/1.1 request with five fields, as many as a modest client sends.
    fn render(self, keep_alive: bool) -> Vec<u8> {
        let method = if self.upload == 0 { "GET" } else { "POST" };
        let mut head = format!(
            "{method} {} HTTP/1.1\r\nHost: {HOST}\r\nUser-Agent: bench-peers\r\nAccept: */*\r\n\
             Accept-Language: en\r\nX-Request-Id: 4711-0815\r\n",
            self.path()
        );
        if self.upload > 0 {
            head.push_str(&format!("Content-Length: {}\r\n", self.upload));
        }
        if !keep_alive {
            head.push_str("Connection: close\r\n");
        }
        head.push_str("\r\n");
        let mut request = head.into_bytes();
        request.resize(request.len() + self.upload, b'y');
        request
    }
}

/// Times at which requests are sent.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Pace {
    Closed,
    /// Requests per second, in equal intervals.
    Open(f64),
    Churn,
}

/// Length of a measurement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Extent {
    Time(Duration),
    /// Exact number of requests, over open connections.
    Requests(u64),
}

/// A run of the generator.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Plan {
    pub(crate) exchange: Exchange,
    pub(crate) pace: Pace,
    pub(crate) connections: usize,
    /// Time before the measurement.
    pub(crate) warm_up: Duration,
    pub(crate) extent: Extent,
}

/// Boundary of the measurement, reported to the reader of the proxy's clocks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Edge {
    Begin,
    End,
}

/// Result of a run, between its edges.
#[derive(Clone, Debug)]
pub(crate) struct Tally {
    /// Requests with complete and correct answers.
    pub(crate) requests: u64,
    pub(crate) errors: u64,
    /// The first error.
    pub(crate) first_error: Option<String>,
    /// Requests that were due and had no answer at the end of the drain time.
    pub(crate) unanswered: u64,
    pub(crate) elapsed: Duration,
    pub(crate) latency: Histogram,
}

impl Tally {
    fn new() -> Self {
        Self {
            requests: 0,
            errors: 0,
            first_error: None,
            unanswered: 0,
            elapsed: Duration::ZERO,
            latency: Histogram::new(),
        }
    }

    fn fail(&mut self, why: impl FnOnce() -> String) {
        self.errors += 1;
        self.first_error.get_or_insert_with(why);
    }
}
