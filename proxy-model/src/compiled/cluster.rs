//! Compiled clusters.

use std::sync::Arc;
use std::time::Duration;

use super::affinity::SessionAffinity;
use super::destination::{Destination, DestinationAddress, DestinationIndex};
use super::source::ClusterSource;
use super::tls_files::TlsFiles;
use super::web_proxy::WebProxy;
use crate::config::{ClusterConfig, HttpVersion, VersionPolicy};
use crate::id::{ClusterId, DestinationId, same_id};

/// Position of a cluster in its snapshot's list, which is in the order of the configuration.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ClusterIndex(pub u32);

/// A group of destinations that serve the same thing, and how they are used.
#[derive(Clone, Debug)]
pub struct Cluster {
    pub(crate) source: ClusterSource,
    pub(crate) balancing: BalancingPolicy,
    pub(crate) availability: AvailabilityPolicy,
    pub(crate) affinity: Option<Box<SessionAffinity>>,
    pub(crate) active: Option<ActiveCheck>,
    pub(crate) passive: Option<PassiveCheck>,
    pub(crate) agent: Option<Box<AgentCheck>>,
    pub(crate) upstream: Upstream,
    pub(crate) destinations: Vec<Destination>,
}

impl Cluster {
    /// The cluster's id, unique in the snapshot.
    pub fn id(&self) -> &ClusterId {
        self.source.id()
    }

    /// The configuration that it was made from.
    pub fn config(&self) -> &ClusterConfig {
        self.source.config()
    }

    /// The policy that picks a destination.
    pub fn balancing(&self) -> &BalancingPolicy {
        &self.balancing
    }

    /// The policy that selects the available destinations.
    pub fn availability(&self) -> &AvailabilityPolicy {
        &self.availability
    }

    /// Session affinity, if it is on.
    pub fn affinity(&self) -> Option<&SessionAffinity> {
        self.affinity.as_deref()
    }

    /// Probes, if they are on.
    pub fn active_check(&self) -> Option<&ActiveCheck> {
        self.active.as_ref()
    }

    /// Passive checks, if they are on.
    pub fn passive_check(&self) -> Option<&PassiveCheck> {
        self.passive.as_ref()
    }

    /// Agent checks, if they are on.
    pub fn agent_check(&self) -> Option<&AgentCheck> {
        self.agent.as_deref()
    }

    /// The settings of connections and requests to the destinations.
    pub fn upstream(&self) -> &Upstream {
        &self.upstream
    }

    /// The destinations in the order of the configuration.
    pub fn destinations(&self) -> &[Destination] {
        &self.destinations
    }

    /// The destination called `id`, and its position.
    pub fn destination(&self, id: &DestinationId) -> Option<(DestinationIndex, &Destination)> {
        let position = self.config().destinations.get_index_of(id)?;
        let destination = self.destinations.get(position)?;
        Some((DestinationIndex(u32::try_from(position).ok()?), destination))
    }
}

/// A policy that picks a destination.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub enum BalancingPolicy {
    /// Draws two destinations at random and picks the one with fewer requests in flight, relative to its weight.
    #[default]
    PowerOfTwoChoices,
    /// Picks the destinations in turn, in proportion to their weights.
    RoundRobin,
    /// The one with the fewest requests in flight, relative to its weight.
    LeastRequests,
    /// One at random, in proportion to its weight.
    Random,
    /// The first by id.
    FirstAlphabetical,
    /// A policy that the program registered, by its name.
    Custom(Arc<str>),
}

impl BalancingPolicy {
    /// The name in the configuration.
    pub fn name(&self) -> &str {
        match self {
            Self::PowerOfTwoChoices => "PowerOfTwoChoices",
            Self::RoundRobin => "RoundRobin",
            Self::LeastRequests => "LeastRequests",
            Self::Random => "Random",
            Self::FirstAlphabetical => "FirstAlphabetical",
            Self::Custom(name) => name,
        }
    }
}

/// A policy that selects the available destinations.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub enum AvailabilityPolicy {
    /// Destinations that are not known to be unhealthy, or all destinations if there is none.
    #[default]
    HealthyOrPanic,
    /// Destinations that are not known to be unhealthy.
    HealthyAndUnknown,
    /// A policy that the program registered, by its name.
    Custom(Arc<str>),
}

impl AvailabilityPolicy {
    /// The name in the configuration.
    pub fn name(&self) -> &str {
        match self {
            Self::HealthyOrPanic => "HealthyOrPanic",
            Self::HealthyAndUnknown => "HealthyAndUnknown",
            Self::Custom(name) => name,
        }
    }
}

/// Probes that the proxy sends.
#[derive(Clone, Debug, PartialEq)]
pub struct ActiveCheck {
    pub(crate) interval: Duration,
    pub(crate) timeout: Duration,
    pub(crate) policy: Arc<str>,
    pub(crate) path: String,
    pub(crate) query: String,
    pub(crate) threshold: f64,
    pub(crate) rise: u32,
    pub(crate) fast_interval: Duration,
    pub(crate) probe: ProbeKind,
}

/// A kind of probe.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub enum ProbeKind {
    /// A `GET`. A 2xx status means healthy.
    #[default]
    Http,
    /// A connection.
    Tcp,
    /// A call of the gRPC health checking protocol for this service. `SERVING` means healthy.
    Grpc(Arc<str>),
}

impl ActiveCheck {
    /// The time from the end of one round to the start of the next.
    pub fn interval(&self) -> Duration {
        self.interval
    }

    /// The time limit of one probe.
    pub fn timeout(&self) -> Duration {
        self.timeout
    }

    /// The policy for probes: `ConsecutiveFailures`, or one that the program registered.
    pub fn policy(&self) -> &str {
        &self.policy
    }

    /// Percent-encoded path to append to the base path of a destination's health address, unless the
    /// destination has its own. May be empty.
    pub fn path(&self) -> &str {
        &self.path
    }

    /// Returns the percent-encoded path to append to the base path of this destination's health address: its
    /// own, else the cluster's. It may be empty.
    pub fn path_at<'a>(&'a self, destination: &'a Destination) -> &'a str {
        destination.health_path().unwrap_or(&self.path)
    }

    /// Query with its `?`; may be empty.
    pub fn query(&self) -> &str {
        &self.query
    }

    /// Failures in a row that make a destination unhealthy: metadata `ConsecutiveFailuresHealthPolicy.Threshold`,
    /// else 2.
    pub fn threshold(&self) -> f64 {
        self.threshold
    }

    /// Successes in a row that make an unhealthy destination healthy.
    pub fn rise(&self) -> u32 {
        self.rise
    }

    /// The interval while the result of a destination's last probe differs from its health.
    pub fn fast_interval(&self) -> Duration {
        self.fast_interval
    }

    /// The kind of probe.
    pub fn probe(&self) -> &ProbeKind {
        &self.probe
    }
}

/// Conclusions from the requests that the proxy forwards.
#[derive(Clone, Debug, PartialEq)]
pub struct PassiveCheck {
    pub(crate) policy: Arc<str>,
    pub(crate) reactivation: Duration,
    pub(crate) rate_limit: f64,
    pub(crate) window: Duration,
    pub(crate) least: u32,
}

impl PassiveCheck {
    /// The policy for forwarded requests: `TransportFailureRate`, or one that the program registered.
    pub fn policy(&self) -> &str {
        &self.policy
    }

    /// The time for which an unhealthy destination is left out before it is retried.
    pub fn reactivation(&self) -> Duration {
        self.reactivation
    }

    /// Share of failed requests, from 0 to 1, that makes a destination unhealthy: metadata
    /// `TransportFailureRateHealthPolicy.RateLimit`, else 0.3.
    pub fn rate_limit(&self) -> f64 {
        self.rate_limit
    }

    /// The time for which requests count: metadata `TransportFailureRateHealthPolicy.DetectionWindowSize`, else 60 s.
    pub fn window(&self) -> Duration {
        self.window
    }

    /// The number of requests in the window from which on their share of failures counts: metadata
    /// `TransportFailureRateHealthPolicy.MinimalTotalCountThreshold`, else 10.
    pub fn least(&self) -> u32 {
        self.least
    }
}

/// Words of agents on the destinations.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AgentCheck {
    pub(crate) port: Option<u16>,
    pub(crate) send: Arc<str>,
    pub(crate) interval: Duration,
    pub(crate) timeout: Duration,
}

impl AgentCheck {
    /// The key of a destination's metadata that has the port of its agent.
    pub(crate) const PORT: &str = "AgentCheck.Port";

    /// The port of the agent of a destination: that of its metadata, else that of the cluster.
    pub fn port_at(&self, destination: &Destination) -> Option<u16> {
        let mut metadata = destination.config().metadata.iter().flatten();
        let own = metadata.find(|(key, _)| same_id(key, Self::PORT));
        match own.map(|(_, port)| port.trim().parse()) {
            Some(Ok(port)) if port > 0 => Some(port),
            _ => self.port,
        }
    }

    /// The text to send to an agent as soon as it is connected. May be empty.
    pub fn send(&self) -> &str {
        &self.send
    }

    /// The time from the end of one check to the start of the next.
    pub fn interval(&self) -> Duration {
        self.interval
    }

    /// The time limit of one check.
    pub fn timeout(&self) -> Duration {
        self.timeout
    }
}

/// The settings of connections and requests to a cluster's destinations.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Upstream {
    pub(crate) version: HttpVersion,
    pub(crate) version_policy: VersionPolicy,
    pub(crate) activity_timeout: Duration,
    pub(crate) max_connections: Option<u32>,
    pub(crate) limited_by_agents: bool,
    pub(crate) multiple_http2_connections: bool,
    pub(crate) accept_any_certificate: bool,
    pub(crate) tls12: bool,
    pub(crate) tls13: bool,
    pub(crate) tls_files: Option<Arc<TlsFiles>>,
    pub(crate) server_name: Option<Arc<str>>,
    pub(crate) web_proxy: Option<Arc<WebProxy>>,
    pub(crate) sends_proxy_protocol: bool,
    pub(crate) connector: Option<Arc<str>>,
}

impl Upstream {
    /// The requested HTTP version.
    pub fn version(&self) -> HttpVersion {
        self.version
    }

    /// The policy for other HTTP versions than [`version`](Self::version).
    pub fn version_policy(&self) -> VersionPolicy {
        self.version_policy
    }

    /// The longest time that a request may be idle in both directions.
    pub fn activity_timeout(&self) -> Duration {
        self.activity_timeout
    }

    /// The most connections to one destination at a time.
    pub fn max_connections(&self) -> Option<u32> {
        self.max_connections
    }

    /// Returns true if connections may be limited: by [`max_connections`](Self::max_connections), or by agents on the
    /// destinations.
    pub fn is_limited(&self) -> bool {
        self.max_connections.is_some() || self.limited_by_agents
    }

    /// Returns true if agents on the destinations may limit connections.
    pub fn is_limited_by_agents(&self) -> bool {
        self.limited_by_agents
    }

    /// Returns true if a further HTTP/2 connection is opened when all streams of the first are in use.
    pub fn multiple_http2_connections(&self) -> bool {
        self.multiple_http2_connections
    }

    /// Returns true if any certificate is trusted.
    pub fn accepts_any_certificate(&self) -> bool {
        self.accept_any_certificate
    }

    /// Returns true if TLS 1.2 is enabled.
    pub fn tls12(&self) -> bool {
        self.tls12
    }

    /// Returns true if TLS 1.3 is enabled.
    pub fn tls13(&self) -> bool {
        self.tls13
    }

    /// The files with certificates of the cluster's own, if it has any.
    pub fn tls_files(&self) -> Option<&Arc<TlsFiles>> {
        self.tls_files.as_ref()
    }

    /// The name in the TLS handshake (SNI), which certificates must have, in place of that of the address.
    pub fn server_name(&self) -> Option<&str> {
        self.server_name.as_deref()
    }

    /// The connector of the program that opens the connections, if it is not the proxy.
    pub fn connector(&self) -> Option<&str> {
        self.connector.as_deref()
    }

    /// Returns true if each connection begins with a header of the PROXY protocol that names the client.
    pub fn sends_proxy_protocol(&self) -> bool {
        self.sends_proxy_protocol
    }

    /// The forward proxy through which this address is reached, if it is not reached directly.
    pub fn web_proxy(&self, address: &DestinationAddress) -> Option<&Arc<WebProxy>> {
        self.web_proxy
            .as_ref()
            .filter(|proxy| !proxy.bypasses(address))
    }
}
