//! The load generator: one thread, one core.
//!
//! | pace | what is sent when | latency counts from |
//! |---|---|---|
//! | closed | the next request of a connection when the answer to its last one is complete | its sending |
//! | open | at fixed instants, whatever became of earlier requests | the instant at which it was due |
//! | churn | as closed, and each request on a connection of its own | the beginning of the connection |
//!
//! Every answer is followed to its end and compared with what the origin is known to send; what differs is an error.

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

/// Where requests go.
#[derive(Clone)]
pub(crate) struct Target {
    pub(crate) address: SocketAddr,
    pub(crate) tls: Option<Arc<ClientConfig>>,
}

/// What is asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Exchange {
    pub(crate) resource: Resource,
    /// Bytes of the request's body; it is a POST if there are any.
    pub(crate) upload: usize,
}

/// The route that requests take: one of the thousand of our gateway.
pub(crate) const ROUTE: &str = "/r617";

/// The host that requests name.
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

    /// The request as it is sent over HTTP/1.1: five fields, as a modest client has.
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

/// When requests are sent.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Pace {
    Closed,
    /// Requests a second, in equal intervals.
    Open(f64),
    Churn,
}

/// How long it is measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Extent {
    Time(Duration),
    /// Exactly so many requests, over connections that are open already.
    Requests(u64),
}

/// A run of the generator.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Plan {
    pub(crate) exchange: Exchange,
    pub(crate) pace: Pace,
    pub(crate) connections: usize,
    /// Not measured.
    pub(crate) warm_up: Duration,
    pub(crate) extent: Extent,
}

/// What is told to whoever reads the clocks of the proxy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Edge {
    Begin,
    End,
}

/// What came of a run, between its edges.
#[derive(Clone, Debug)]
pub(crate) struct Tally {
    /// Requests whose answers were complete and right.
    pub(crate) requests: u64,
    pub(crate) errors: u64,
    /// What the first error was.
    pub(crate) first_error: Option<String>,
    /// Requests that were due and had no answer when patience ended.
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
