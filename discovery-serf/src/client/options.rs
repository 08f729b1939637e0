//! The options of a connection to an agent.

use std::time::Duration;

use super::AuthKey;

/// The options of a connection to an agent: its address, and time limits.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ConnectOptions {
    /// Host and port of the agent's RPC (its `-rpc-addr`): an IP address or a name; IPv6 in brackets.
    /// Default: `127.0.0.1:7373`.
    pub address: String,
    /// The key that the agent requires if its configuration has an `rpc_auth`. Default: none.
    pub auth_key: Option<AuthKey>,
    /// The time limit for resolving the name and connecting together. Default: 2 s.
    pub connect_timeout: Duration,
    /// The time limit for handshake and for authentication each. Default: 2 s.
    pub handshake_timeout: Duration,
    /// The time limit of a request. Requests with a longer limit are named at
    /// [`SerfClient`](super::SerfClient). Default: 5 s.
    pub request_timeout: Duration,
    /// Maximum length of an agent's message, in bytes. A member with seven tags takes about 260 bytes, so
    /// the default would suffice for 250,000 members. A limit of 4 million values in a message, about
    /// 100,000 members, is reached earlier. Default: 64 MiB.
    pub max_frame: usize,
    /// Maximum number of events that a stream queues until they are read. At least 1. Default: 1,024.
    pub max_queued_events: usize,
    /// Maximum length of the queued events together, in bytes on the wire. Default: 4 MiB.
    pub max_queued_bytes: usize,
}

impl Default for ConnectOptions {
    fn default() -> Self {
        Self {
            address: "127.0.0.1:7373".to_owned(),
            auth_key: None,
            connect_timeout: Duration::from_secs(2),
            handshake_timeout: Duration::from_secs(2),
            request_timeout: Duration::from_secs(5),
            max_frame: 64 << 20,
            max_queued_events: 1_024,
            max_queued_bytes: 4 << 20,
        }
    }
}

impl ConnectOptions {
    /// Creates the default options for the agent at an address.
    pub fn new(address: impl Into<String>) -> Self {
        Self {
            address: address.into(),
            ..Self::default()
        }
    }

    /// Sets [`auth_key`](Self::auth_key).
    #[must_use]
    pub fn with_auth_key(mut self, key: impl Into<AuthKey>) -> Self {
        self.auth_key = Some(key.into());
        self
    }

    /// Sets [`connect_timeout`](Self::connect_timeout).
    #[must_use]
    pub fn with_connect_timeout(mut self, timeout: Duration) -> Self {
        self.connect_timeout = timeout;
        self
    }

    /// Sets [`handshake_timeout`](Self::handshake_timeout).
    #[must_use]
    pub fn with_handshake_timeout(mut self, timeout: Duration) -> Self {
        self.handshake_timeout = timeout;
        self
    }

    /// Sets [`request_timeout`](Self::request_timeout).
    #[must_use]
    pub fn with_request_timeout(mut self, timeout: Duration) -> Self {
        self.request_timeout = timeout;
        self
    }

    /// Sets [`max_frame`](Self::max_frame).
    #[must_use]
    pub fn with_max_frame(mut self, bytes: usize) -> Self {
        self.max_frame = bytes;
        self
    }

    /// Sets [`max_queued_events`](Self::max_queued_events).
    #[must_use]
    pub fn with_max_queued_events(mut self, events: usize) -> Self {
        self.max_queued_events = events;
        self
    }

    /// Sets [`max_queued_bytes`](Self::max_queued_bytes).
    #[must_use]
    pub fn with_max_queued_bytes(mut self, bytes: usize) -> Self {
        self.max_queued_bytes = bytes;
        self
    }
}
