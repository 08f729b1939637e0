use std::time::Duration;

#[cfg(feature = "tls")]
use super::ServerTls;

/// How the server behaves, and what a client may ask of it.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct ServerOptions {
    /// What the server calls itself in responses, so that a person who looks at an Envoy knows who configured it. Empty by
    /// default, and then left out.
    pub identifier: String,
    /// How long changes wait until a client acknowledges or refuses the last response of the type, and how long changes of
    /// listeners and routes wait for clusters to be acknowledged, which Envoy does when they are warm. 10 s by default.
    pub patience: Duration,
    /// How long a removed cluster is kept for clients that may still have routes to it. On aggregated streams it goes as soon
    /// as the routes have been acknowledged. 30 s by default.
    pub removal_grace: Duration,
    /// How far new clusters are ahead of listeners and routes on streams of one type and in polls, where no order is kept
    /// between types: the time that a client may need to hear of a cluster and to warm it. An aggregated stream says when it
    /// has, and waits for that only. 3 s by default.
    pub addition_lead: Duration,
    /// How many names a stream may subscribe to for each type. 100,000 by default.
    pub names_per_stream: usize,
    /// How many streams one address may have open. Envoy opens one for each cluster if it has no aggregated stream. 20,000 by
    /// default.
    pub streams_per_peer: usize,
    /// How many streams one connection may have open, which a client is told in HTTP/2's settings. 20,000 by default.
    pub streams_per_connection: u32,
    /// How many connections may be open. Others wait to be accepted. 10,000 by default.
    pub connections: usize,
    /// How many connections one address may have open, or one network of 64 bits of version 6, so that nobody locks out
    /// everybody else. More are closed at once. 2,000 by default.
    pub connections_per_peer: usize,
    /// How long a connection may take to begin: to agree on TLS, and to send the first bytes of a request. 10 s by default.
    pub opening_timeout: Duration,
    /// How many names one address may be subscribed to, over all its streams and types; each takes about 100 bytes. 8,000,000
    /// by default.
    pub names_per_peer: usize,
    /// With what TLS is spoken. `None` by default: there is none, and everybody is served who can connect.
    #[cfg(feature = "tls")]
    pub tls: Option<ServerTls>,
    /// How many bytes a request may have. 8 MiB by default: a client that reconnects says the version of all it has.
    pub request_bytes: usize,
    /// After how long without a sign of the client it is sent a ping. 30 s by default.
    pub ping_interval: Duration,
    /// How long the answer to a ping may take until the connection is closed. 10 s by default.
    pub ping_timeout: Duration,
    /// How long connections may take to end when the server is asked to stop. 5 s by default.
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
