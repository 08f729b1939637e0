use std::sync::Arc;
use std::time::Duration;

/// The facts about the Envoys that [`to_envoy`](super::to_envoy) needs.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct BridgeOptions {
    /// Ports that clients may append to a host that routes match only by a wildcard, in addition to those
    /// that routes name. Default: 80, 443 and 8080.
    pub ports: Vec<u16>,
    /// True if the listeners have TLS, so that a host without a port means port 443. Default: false.
    pub https: bool,
    /// The file, on the Envoys' machines, with the authorities that `https` destinations are trusted by.
    /// Default: `/etc/ssl/certs/ca-certificates.crt`.
    pub trusted_ca: Arc<str>,
    /// The time limit for connecting to a destination. Default: 5 s.
    pub connect_timeout: Duration,
    /// True to carry the model's own form in the metadata of resources, so that nothing is lost when a
    /// proxy of this project reads them. Envoys receive and keep it too: each endpoint is several times as
    /// large, and every client can read the whole configuration of a cluster or destination. Default:
    /// false.
    pub carry_source: bool,
}

impl Default for BridgeOptions {
    fn default() -> Self {
        Self {
            ports: vec![80, 443, 8080],
            https: false,
            trusted_ca: "/etc/ssl/certs/ca-certificates.crt".into(),
            connect_timeout: Duration::from_secs(5),
            carry_source: false,
        }
    }
}

impl BridgeOptions {
    /// Sets [`ports`](Self::ports).
    #[must_use]
    pub fn with_ports(mut self, ports: impl IntoIterator<Item = u16>) -> Self {
        self.ports = ports.into_iter().collect();
        self
    }

    /// Sets [`https`](Self::https).
    #[must_use]
    pub fn with_https(mut self, https: bool) -> Self {
        self.https = https;
        self
    }

    /// Sets [`trusted_ca`](Self::trusted_ca).
    #[must_use]
    pub fn with_trusted_ca(mut self, path: impl Into<Arc<str>>) -> Self {
        self.trusted_ca = path.into();
        self
    }

    /// Sets [`connect_timeout`](Self::connect_timeout).
    #[must_use]
    pub fn with_connect_timeout(mut self, timeout: Duration) -> Self {
        self.connect_timeout = timeout;
        self
    }

    /// Sets [`carry_source`](Self::carry_source).
    #[must_use]
    pub fn with_carried_source(mut self, carry: bool) -> Self {
        self.carry_source = carry;
        self
    }
}
