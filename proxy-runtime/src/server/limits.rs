//! What the server allows a client, before anything is routed.

mod data_rate;
mod http2;

use std::time::Duration;

pub use self::data_rate::DataRate;
pub use self::http2::Http2Limits;
use crate::http1::HeadLimits;

/// Some round trips, and a packet that was lost.
const HASTE: Duration = Duration::from_secs(2);

/// What the server allows a client.
///
/// The defaults are meant for the open internet: each bounds the memory, the time or the work that a client can cost
/// before it has proved anything. Raise them for what you trust.
///
/// | limit | default | what happens beyond it |
/// |---|---|---|
/// | [`header_bytes`](Self::header_bytes) | 32 KiB | 431 and close; on HTTP/2 431 on the stream |
/// | [`header_fields`](Self::header_fields) | 100 | the same |
/// | [`request_line`](Self::request_line) | 8 KiB | 414 and close |
/// | [`header_timeout`](Self::header_timeout) | 10 s | 408 and close; silently when not a byte of a request came |
/// | [`keep_alive`](Self::keep_alive) | 75 s | close; on HTTP/2 GOAWAY |
/// | [`requests_per_connection`](Self::requests_per_connection) | 10 000 | the last response says `Connection: close`; on HTTP/2 GOAWAY |
/// | [`connection_age`](Self::connection_age) | 1 h ± 10 % | the same |
/// | [`memory_bytes`](Self::memory_bytes) | a quarter of the memory | the connections that hold most are reset |
/// | [`body_bytes`](Self::body_bytes) | unlimited | 413 and close |
/// | [`data_rate`](Self::data_rate) | 240 B/s over 30 s | an upload: 408; a download: the connection is reset, on HTTP/2 the stream |
/// | [`connections`](Self::connections) | 40 % of the open files, at most 50 000 | idle ones are closed, new ones wait in the backlog |
/// | [`connections_per_address`](Self::connections_per_address) | unlimited | close at once |
/// | [`tls_handshake_timeout`](Self::tls_handshake_timeout) | 10 s | close |
/// | [`http2`](Self::http2) | see [`Http2Limits`] | |
///
/// There is no limit on the length of a response: bodies stream. Of one that a service writes, no more is held than
/// [`buffer_bytes`](Self::buffer_bytes) and the piece that exceeds it. Where bytes are forwarded as they come, a transfer
/// that fills its buffer has up to 256 KiB on the way in each direction, whatever `buffer_bytes` says, and holds them for as
/// long as the receiver stalls.
///
/// A duration of [`Duration::MAX`] switches a timeout off.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Limits {
    /// Bytes of a request's head, or of its trailers, all lines together. 32 KiB.
    ///
    /// On HTTP/2 it is the size as RFC 9113 section 6.5.2 counts it: names, values and 32 bytes a field.
    pub header_bytes: usize,
    /// Header fields of a request. 100. On HTTP/2 each crumb of a `cookie` counts, since each costs memory.
    pub header_fields: usize,
    /// Bytes of method and target together. 8 KiB; RFC 9112 section 3 asks for 8000 at least.
    ///
    pub request_line: usize,
    /// Time from a request's first byte to the end of its head. 10 s in total: further bytes do not extend it. On HTTP/1.1 it is
    /// 2 s at most, or [`closing_grace`](Self::closing_grace) if that is longer, from when a worker has its share of
    /// [`connections`](Self::connections).
    ///
    /// On HTTP/2 it is the time for each header block, all of its frames together, and the time until a client has said what it must say
    /// first, and acknowledged the server's settings.
    ///
    /// A connection on which nothing ever arrives is closed after the same time.
    pub header_timeout: Duration,
    /// How long a connection may be idle between two requests. 75 s.
    pub keep_alive: Duration,
    /// How long an idle connection is still read from once it is to be closed for a reason of ours: drain, age, or too
    /// many connections. 500 ms.
    ///
    /// A request that is on its way when the server decides to close would be lost with the connection. In this time
    /// it is still answered, with `Connection: close`. HTTP/2 does not need it, GOAWAY says which requests count.
    pub closing_grace: Duration,
    /// Requests on one connection. 10 000: what a connection accumulates is given back, and clients get to balance anew.
    ///
    /// On HTTP/2, those that a client had begun before it could know are still served: no more than
    /// [`concurrent_streams`](Http2Limits::concurrent_streams). What it begins after that is refused.
    pub requests_per_connection: u64,
    /// Age of a connection, spread by ± 10 % so that connections opened together do not close together. 1 h.
    pub connection_age: Duration,
    /// Connections at a time, all listeners and workers together.
    ///
    /// A worker has an equal share. At its share it stops accepting, so that new connections wait in the kernel's backlog;
    /// connections without a request are closed, and others end with their next response (of HTTP/2, with the one behind which no
    /// stream is open), until an eighth of the share is free. Those that wait when the server is told to stop are served as far as
    /// there is room, and reset beyond it.
    ///
    /// Meanwhile a connection that comes takes the place of one on which no whole request has come yet, be it TLS's handshake or half a
    /// head: the oldest one of the client address that has most of them (of IPv6, the network of 64 bits). So whoever sends half heads
    /// takes places from nobody but itself.
    ///
    /// `None` takes 80 % of half the process' limit of open files, since each connection may need a second one to a
    /// destination, and at most 50 000; where the limit cannot be read it is 10 000.
    pub connections: Option<usize>,
    /// Connections at a time of one client address, or of one network of 64 bits of IPv6; all listeners and workers together. Unlimited:
    /// all clients behind a load balancer, or behind one translation of addresses, have one address.
    pub connections_per_address: Option<usize>,
    /// Bytes that clients may make the server hold, all listeners and workers together: of responses that they do not take, of
    /// requests that destinations do not take, of half heads, and in tunnels that they do not read.
    ///
    /// A worker has an equal share. From half of its share on, it reads and hands over 32 KiB at a time. Beyond it, connections are
    /// reset until an eighth is free again: of the client address that holds most (of IPv6, the network of 64 bits) the connection
    /// that holds most, and of those that hold about as much the one of which nothing has moved for longest.
    ///
    /// What a request takes that waits for nobody is not counted, nor what a service of the embedding program has read of a request;
    /// of a response that a service writes, or that came over HTTP/2, up to 256 KiB are counted that may have come behind.
    ///
    /// `None` takes a quarter of the memory of the machine, or of the process' control group if that has less, and 32 MiB at least; where
    /// that cannot be read it is 256 MiB.
    pub memory_bytes: Option<u64>,
    /// Bytes of a request's body. Unlimited: bodies are streamed, not held, and destinations have limits of their own.
    pub body_bytes: Option<u64>,
    /// How slow a client may be, where the proxy waits for it. `None` allows any pace, and so does a rate of 0; a client that takes
    /// nothing at all of a destination's response is then given up after the `ActivityTimeout` of the cluster, and one that takes
    /// nothing of another response after 100 s.
    ///
    /// On HTTP/2 it is asked of each stream that waits for its client's window. While the socket is full, it is enough if
    /// the connection takes as much as is asked of those streams together.
    ///
    /// Upgraded connections and gRPC are exempt: their silence is not a sign of anything. Of uploads, gRPC is what comes over
    /// HTTP/2 by `POST` with `Content-Type: application/grpc` and `TE: trailers`, as every client of gRPC sends it; over
    /// HTTP/1.1 there is none. Any client may say so. What then bounds the silence of one is the cluster's
    /// `ActivityTimeout`, or the service. Of responses it is what has such a content type.
    pub data_rate: Option<DataRate>,
    /// Bytes of a response of a service that are gathered for one write on HTTP/1.1, and that are buffered per stream
    /// towards the client on HTTP/2. 64 KiB. Never below [`header_bytes`](Self::header_bytes) nor 8 KiB.
    ///
    /// Requests, and responses that are forwarded as they come, are read into 32 KiB, and into 256 KiB while more is sent at
    /// once than that; in between, and while a connection is idle, it holds no buffer.
    pub buffer_bytes: usize,
    /// Time from the connection to the end of the TLS handshake. 10 s, and 2 s at most, or
    /// [`closing_grace`](Self::closing_grace) if that is longer, from when a worker has its share of
    /// [`connections`](Self::connections) or the server is told to stop.
    pub tls_handshake_timeout: Duration,
    /// What is particular to HTTP/2.
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
    /// The same, with a meaning for what could not be kept to: fields are public, and nobody has looked at what is in them.
    #[must_use]
    pub(crate) fn effective(mut self) -> Self {
        self.data_rate = self.data_rate.and_then(DataRate::effective);
        self.http2 = self.http2.effective();
        self
    }

    /// How long a client may take for what it has begun, and is no request yet, once its place is wanted.
    pub(crate) fn haste(&self) -> Duration {
        self.closing_grace.max(HASTE)
    }

    /// What bounds a head of HTTP/1.
    pub(crate) fn head(&self) -> HeadLimits {
        HeadLimits::default()
            .with_bytes(self.header_bytes)
            .with_request_line(self.request_line)
            .with_fields(self.header_fields)
    }

    /// What a connection may hold of what it sends, or `h2` may for it; a whole head must fit.
    pub(crate) fn effective_buffer(&self) -> usize {
        self.buffer_bytes.max(self.header_bytes).max(8 * 1024)
    }
}
