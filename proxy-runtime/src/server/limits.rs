//! Limits for clients, enforced before routing.

mod http2;

use std::time::Duration;

pub use self::http2::Http2Limits;
use crate::http1::HeadLimits;
pub use crate::progress::DataRate;

/// Some round trips, with a lost packet.
const HASTE: Duration = Duration::from_secs(2);

/// The limits for clients.
///
/// The defaults suit the open internet: each bounds the memory, time or work that an
/// unauthenticated client can cost. Raise them for trusted clients.
///
/// | limit | default | effect |
/// |---|---|---|
/// | [`header_bytes`](Self::header_bytes) | 32 KiB | 431 and close; on HTTP/2 431 on the stream |
/// | [`header_fields`](Self::header_fields) | 100 | the same |
/// | [`request_line`](Self::request_line) | 8 KiB | 414 and close |
/// | [`header_timeout`](Self::header_timeout) | 10 s | 408 and close; close without a response if no byte arrived |
/// | [`keep_alive`](Self::keep_alive) | 75 s | close; on HTTP/2 GOAWAY |
/// | [`requests_per_connection`](Self::requests_per_connection) | 10 000 | `Connection: close`; on HTTP/2 GOAWAY |
/// | [`connection_age`](Self::connection_age) | 1 h ± 10 % | the same |
/// | [`memory_bytes`](Self::memory_bytes) | a quarter of the memory | the largest connections are reset |
/// | [`body_bytes`](Self::body_bytes) | unlimited | 413 and close |
/// | [`data_rate`](Self::data_rate) | 240 B/s over 30 s | uploads: 408; downloads: reset (on HTTP/2 of the stream) |
/// | [`connections`](Self::connections) | 40 % of open files, at most 50 000 | idle ones are closed, new ones wait |
/// | [`connections_per_address`](Self::connections_per_address) | unlimited | close at once |
/// | [`tls_handshake_timeout`](Self::tls_handshake_timeout) | 10 s | close |
/// | [`http2`](Self::http2) | see [`Http2Limits`] | |
///
/// Responses have no size limit, since bodies are streamed. The server holds at most
/// [`buffer_bytes`](Self::buffer_bytes) and one piece of a response that a service produces. A
/// forwarded transfer that fills its buffer holds up to 256 KiB in each direction, whatever
/// `buffer_bytes` is, while the receiver stalls.
///
/// A duration of [`Duration::MAX`] disables a timeout.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Limits {
    /// Maximum size of a request's head, and of its trailers, in bytes.
    ///
    /// On HTTP/2 the size by RFC 9113 section 6.5.2: names, values and 32 bytes per field.
    ///
    /// Default: 32 KiB.
    pub header_bytes: usize,
    /// Maximum number of header fields. On HTTP/2 each part of a split `cookie` counts, since each
    /// costs memory. Default: 100.
    pub header_fields: usize,
    /// Maximum size of method and target together, in bytes. RFC 9112 section 3 requires at least
    /// 8000. Default: 8 KiB.
    pub request_line: usize,
    /// Time limit from the first byte of a request to the end of its head. Further bytes do not
    /// extend it. On HTTP/1.1 it falls to 2 s, or to [`closing_grace`](Self::closing_grace) if that
    /// is longer, while a worker has its share of [`connections`](Self::connections).
    ///
    /// On HTTP/2 the limit applies to each header block with all of its frames, to the client's
    /// preface, and to the acknowledgement of the server's settings.
    ///
    /// A connection without any data is closed after the same time.
    ///
    /// Default: 10 s.
    pub header_timeout: Duration,
    /// Idle timeout between two requests. Default: 75 s.
    pub keep_alive: Duration,
    /// Time for which an idle connection is still read after the server decided to close it: for a
    /// drain, its age, or too many connections.
    ///
    /// A request already on its way would be lost with the connection; within this time it is
    /// served, with `Connection: close`. HTTP/2 needs no such time, since GOAWAY names the last
    /// request.
    ///
    /// Default: 500 ms.
    pub closing_grace: Duration,
    /// Maximum number of requests on one connection. A new connection releases accumulated memory,
    /// and lets load balancers choose again.
    ///
    /// On HTTP/2 requests that the client began before it received GOAWAY are served as well: at
    /// most [`concurrent_streams`](Http2Limits::concurrent_streams). Later ones are rejected.
    ///
    /// Default: 10 000.
    pub requests_per_connection: u64,
    /// Maximum age of a connection, randomised by ± 10 % so that connections opened together do not
    /// close together. Default: 1 h.
    pub connection_age: Duration,
    /// Maximum number of open connections over all listeners and workers.
    ///
    /// Each worker has an equal share. At its share it stops accepting, so that new connections
    /// wait in the kernel's backlog. Connections without a request are closed, and others end with
    /// their next response (on HTTP/2 with the response after which no stream is open), until an
    /// eighth of the share is free. Connections that wait when the server stops are served while
    /// there is room, and reset otherwise.
    ///
    /// Meanwhile a new connection replaces one without a complete request, such as one in a TLS
    /// handshake or with half a head: the oldest of the client address with the most of them (for
    /// IPv6, of the /64 network). A client that sends half heads can therefore displace only its
    /// own connections.
    ///
    /// Default: 80 % of half the limit of open files, since each connection may need a second one
    /// to a destination, and at most 50 000. If the limit cannot be read: 10 000.
    pub connections: Option<usize>,
    /// Maximum number of open connections per client address (per /64 network for IPv6), over all
    /// listeners and workers. All clients behind a load balancer or NAT share one address. Default:
    /// unlimited.
    pub connections_per_address: Option<usize>,
    /// Maximum memory that clients can make the server hold, in bytes, over all listeners and
    /// workers: unsent parts of responses and requests, incomplete heads, and buffers of tunnels.
    ///
    /// Each worker has an equal share. From half of its share it transfers in pieces of 32 KiB.
    /// Beyond its share, connections are reset until an eighth is free: at the client address that
    /// holds the most (for IPv6, the /64 network) the connection that holds the most; among similar
    /// ones, the one without progress for the longest time.
    ///
    /// Memory of a request that waits for no peer does not count, nor does content that a service
    /// of the embedding program has read. Responses of a service, and those received over HTTP/2,
    /// may hold up to 256 KiB beyond what is counted.
    ///
    /// Default: a quarter of the memory of the machine, or of the process' control group if that is
    /// smaller, and at least 32 MiB. If it cannot be read: 256 MiB.
    pub memory_bytes: Option<u64>,
    /// Maximum size of a request body, in bytes. Default: unlimited, since bodies are streamed and
    /// destinations have their own limits.
    pub body_bytes: Option<u64>,
    /// Minimum data rate of a client while the proxy waits for it. `None` or a rate of 0 allows any
    /// rate. A client that receives nothing at all is then disconnected after the `ActivityTimeout`
    /// of the cluster for a forwarded response, and after 100 s for another one.
    ///
    /// On HTTP/2 it applies to each stream that waits for its client's window. While the socket is
    /// full, the connection must reach the sum of the rates of those streams.
    ///
    /// Upgraded connections and gRPC are exempt, since they may be silent. An upload is gRPC if it
    /// is a `POST` over HTTP/2 with `Content-Type: application/grpc` and `TE: trailers`, which
    /// every gRPC client sends; any client may claim this. A response is gRPC by its content type.
    /// Silent gRPC calls are limited by the `ActivityTimeout` of the cluster, or by the service.
    ///
    /// Default: 240 B/s over 30 s.
    pub data_rate: Option<DataRate>,
    /// Bytes of a service's response that are collected for one write on HTTP/1.1, and buffered per
    /// stream on HTTP/2. At least [`header_bytes`](Self::header_bytes) and 8 KiB.
    ///
    /// Requests and forwarded responses are read into buffers of 32 KiB, and of 256 KiB while more
    /// data arrives at once. An idle connection holds no buffer.
    ///
    /// Default: 64 KiB.
    pub buffer_bytes: usize,
    /// Time limit for the TLS handshake. It falls to 2 s, or to
    /// [`closing_grace`](Self::closing_grace) if that is longer, while a worker has its share of
    /// [`connections`](Self::connections) or the server stops. Default: 10 s.
    pub tls_handshake_timeout: Duration,
    /// Limits of HTTP/2.
    pub http2: Http2Limits,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            header_bytes: 32 * 1024,
            header_fields: 100,
            request_line: 8 * 1024,
            header_timeout: Duration::from_secs(10),
            keep_alive: Duration::from_secs(75),
            closing_grace: Duration::from_millis(500),
            requests_per_connection: 10_000,
            connection_age: Duration::from_secs(3600),
            connections: None,
            connections_per_address: None,
            memory_bytes: None,
            body_bytes: None,
            data_rate: Some(DataRate::default()),
            buffer_bytes: 64 * 1024,
            tls_handshake_timeout: Duration::from_secs(10),
            http2: Http2Limits::default(),
        }
    }
}

impl Limits {
    /// Replaces values that cannot work: the fields are public and unchecked.
    #[must_use]
    pub(crate) fn effective(mut self) -> Self {
        self.data_rate = self.data_rate.and_then(DataRate::effective);
        self.http2 = self.http2.effective();
        self
    }

    /// Time limit for an incomplete request once its connection slot is needed.
    pub(crate) fn haste(&self) -> Duration {
        self.closing_grace.max(HASTE)
    }

    /// The limits of a head of HTTP/1.1.
    pub(crate) fn head(&self) -> HeadLimits {
        HeadLimits::default()
            .with_bytes(self.header_bytes)
            .with_request_line(self.request_line)
            .with_fields(self.header_fields)
    }

    /// Maximum bytes of a response that a connection holds. A whole head must fit.
    pub(crate) fn effective_buffer(&self) -> usize {
        self.buffer_bytes.max(self.header_bytes).max(8 * 1024)
    }
}
