use std::time::Duration;

#[cfg(feature = "tls")]
use super::ServerTls;

/// The options of the server, and the limits of its clients.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct ServerOptions {
    /// The server's name in responses, so that an operator can see in an Envoy which server configured it.
    /// Left out if empty. Default: empty.
    pub identifier: String,
    /// The time for which changes wait until a client acknowledges or rejects the last response of the
    /// type. Changes of listeners and routes wait this long for clusters to be acknowledged, which Envoy
    /// does when they are warm. Default: 10 s.
    pub patience: Duration,
    /// The time for which a removed cluster is kept for clients that may still have routes to it. On
    /// aggregated streams it is removed as soon as the routes have been acknowledged. Default: 30 s.
    pub removal_grace: Duration,
    /// The time by which new clusters precede listeners and routes on streams of one type and in polls,
    /// where types have no order: clients may need it to receive a cluster and to warm it. Aggregated
    /// streams acknowledge clusters instead. Default: 3 s.
    pub addition_lead: Duration,
    /// Maximum number of names that a stream may subscribe to for each type. Default: 100,000.
    pub names_per_stream: usize,
    /// Maximum number of open streams of one address. Envoy opens one for each cluster if it has no
    /// aggregated stream. Default: 20,000.
    pub streams_per_peer: usize,
    /// Maximum number of open streams of one connection, which is announced in HTTP/2's settings. Default:
    /// 20,000.
    pub streams_per_connection: u32,
    /// Maximum number of open connections. Further ones wait to be accepted. Default: 10,000.
    pub connections: usize,
    /// Maximum number of open connections of one address, or of one IPv6 /64 network, so that one client
    /// cannot lock out the others. Further ones are closed at once. Default: 2,000.
    pub connections_per_peer: usize,
    /// The time limit for the start of a connection: to complete the TLS handshake and to send the first
    /// bytes of a request. Default: 10 s.
    pub opening_timeout: Duration,
    /// Maximum number of names that one address may be subscribed to, over all its streams and types. Each
    /// takes about 100 bytes. Default: 8,000,000.
    pub names_per_peer: usize,
    /// The TLS options. `None` to serve without TLS, to every client that can connect. Default: `None`.
    #[cfg(feature = "tls")]
    pub tls: Option<ServerTls>,
    /// Maximum size of a request, in bytes. A client that reconnects sends the version of all its
    /// resources. Default: 8 MiB.
    pub request_bytes: usize,
    /// The time without data from the client after which it is sent a ping. Default: 30 s.
    pub ping_interval: Duration,
    /// The time limit for the response to a ping, after which the connection is closed. Default: 10 s.
    pub ping_timeout: Duration,
    /// The time limit for connections to end during shutdown. Default: 5 s.
    pub drain: Duration,
}

impl Default for ServerOptions {
    fn default() -> Self {
        Self {
            identifier: String::new(),
            patience: Duration::from_secs(10),
            removal_grace: Duration::from_secs(30),
            addition_lead: Duration::from_secs(3),
            names_per_stream: 100_000,
            streams_per_peer: 20_000,
            streams_per_connection: 20_000,
            connections: 10_000,
            connections_per_peer: 2_000,
            opening_timeout: Duration::from_secs(10),
            names_per_peer: 8_000_000,
            #[cfg(feature = "tls")]
            tls: None,
            request_bytes: 8 * 1024 * 1024,
            ping_interval: Duration::from_secs(30),
            ping_timeout: Duration::from_secs(10),
            drain: Duration::from_secs(5),
        }
    }
}

impl ServerOptions {
    /// Sets [`identifier`](Self::identifier).
    #[must_use]
    pub fn with_identifier(mut self, identifier: impl Into<String>) -> Self {
        self.identifier = identifier.into();
        self
    }

    /// Sets [`patience`](Self::patience).
    #[must_use]
    pub fn with_patience(mut self, patience: Duration) -> Self {
        self.patience = patience;
        self
    }

    /// Sets [`removal_grace`](Self::removal_grace).
    #[must_use]
    pub fn with_removal_grace(mut self, removal_grace: Duration) -> Self {
        self.removal_grace = removal_grace;
        self
    }

    /// Sets [`addition_lead`](Self::addition_lead).
    #[must_use]
    pub fn with_addition_lead(mut self, addition_lead: Duration) -> Self {
        self.addition_lead = addition_lead;
        self
    }

    /// Sets [`names_per_stream`](Self::names_per_stream).
    #[must_use]
    pub fn with_names_per_stream(mut self, names: usize) -> Self {
        self.names_per_stream = names;
        self
    }

    /// Sets [`streams_per_peer`](Self::streams_per_peer).
    #[must_use]
    pub fn with_streams_per_peer(mut self, streams: usize) -> Self {
        self.streams_per_peer = streams;
        self
    }

    /// Sets [`streams_per_connection`](Self::streams_per_connection).
    #[must_use]
    pub fn with_streams_per_connection(mut self, streams: u32) -> Self {
        self.streams_per_connection = streams;
        self
    }

    /// Sets [`connections`](Self::connections).
    #[must_use]
    pub fn with_connections(mut self, connections: usize) -> Self {
        self.connections = connections;
        self
    }

    /// Sets [`connections_per_peer`](Self::connections_per_peer).
    #[must_use]
    pub fn with_connections_per_peer(mut self, connections: usize) -> Self {
        self.connections_per_peer = connections;
        self
    }

    /// Sets [`opening_timeout`](Self::opening_timeout).
    #[must_use]
    pub fn with_opening_timeout(mut self, timeout: Duration) -> Self {
        self.opening_timeout = timeout;
        self
    }

    /// Sets [`names_per_peer`](Self::names_per_peer).
    #[must_use]
    pub fn with_names_per_peer(mut self, names: usize) -> Self {
        self.names_per_peer = names;
        self
    }

    /// Sets [`tls`](Self::tls).
    #[cfg(feature = "tls")]
    #[must_use]
    pub fn with_tls(mut self, tls: ServerTls) -> Self {
        self.tls = Some(tls);
        self
    }

    /// Sets [`request_bytes`](Self::request_bytes).
    #[must_use]
    pub fn with_request_bytes(mut self, bytes: usize) -> Self {
        self.request_bytes = bytes;
        self
    }

    /// Sets [`ping_interval`](Self::ping_interval) and [`ping_timeout`](Self::ping_timeout).
    #[must_use]
    pub fn with_pings(mut self, interval: Duration, timeout: Duration) -> Self {
        self.ping_interval = interval;
        self.ping_timeout = timeout;
        self
    }

    /// Sets [`drain`](Self::drain).
    #[must_use]
    pub fn with_drain(mut self, drain: Duration) -> Self {
        self.drain = drain;
        self
    }
}
