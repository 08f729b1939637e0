//! The sources' data, in the form in which it is translated.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use super::defaults::Defaults;

/// A service of the registry.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RegistryService {
    /// The service's name.
    pub name: Arc<str>,
    /// True if it runs. Otherwise it is not served, nor are its branches.
    pub is_running: bool,
    /// The ports that it provides.
    pub provides: Vec<Provides>,
    /// The service's branches, running or not.
    pub branches: Vec<Branch>,
}

/// A named port of a service.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Provides {
    /// The name, which is the last part of the cluster's.
    pub name: Arc<str>,
    /// The protocol of the port.
    pub protocol: Protocol,
}

/// The protocol of instances.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Protocol {
    /// HTTP/1.1.
    #[default]
    Http,
    /// HTTP/2, for gRPC.
    Grpc,
    /// Raw bytes over TCP.
    Tcp,
}

/// A variant of a service that runs beside it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Branch {
    /// The branch's name, which is the middle part of the cluster's.
    pub name: Arc<str>,
    /// True if it runs.
    pub is_running: bool,
    /// The ports that it provides. `None` for those of its service.
    pub provides: Option<Vec<Provides>>,
    /// The share of the service's requests that it gets, in percent.
    pub canary_percent: u32,
}

/// The name that stands for all datacenters but the own one, while their list is unknown.
pub const UNLISTED: &str = "*";

/// The instances of all services in all datacenters.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Catalog {
    /// The control plane's own datacenter.
    pub own: Arc<str>,
    /// The services, by name.
    pub services: BTreeMap<Arc<str>, Arc<CatalogService>>,
    /// The state of services that are not listed, if unread datacenters may have them. `None` if such a
    /// service is in no datacenter. Unchanged values should keep the same `Arc`.
    pub unlisted: Option<Arc<CatalogService>>,
}

/// The instances of one service in all datacenters that know it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct CatalogService {
    /// The instances, by datacenter.
    pub datacenters: BTreeMap<Arc<str>, Arc<[Instance]>>,
    /// The datacenters that list it, but whose instances of it are not known yet.
    pub unknown: BTreeSet<Arc<str>>,
    /// The datacenters that were not read yet, so that it is unknown if they list it. [`UNLISTED`] stands
    /// for those whose names are unknown.
    pub unread: BTreeSet<Arc<str>>,
}

/// An instance of a service.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Instance {
    /// The node that it is on.
    pub node: Arc<str>,
    /// The instance's id, unique on its node.
    pub id: Arc<str>,
    /// The instance's address: an IP address, or a text that is not usable here.
    pub address: Arc<str>,
    /// The instance's port. 0 if it has none.
    pub port: u16,
    /// The instance's tags.
    pub tags: Vec<Arc<str>>,
    /// True if the instance may get requests.
    pub is_live: bool,
}

/// The content of the static file.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct StaticConfig {
    /// The configured listeners.
    pub listeners: Vec<StaticListener>,
    /// The configured services.
    pub services: Vec<StaticService>,
}

/// A listener of the static file.
#[derive(Debug, Clone, PartialEq)]
pub struct StaticListener {
    /// The listener's name.
    pub name: Arc<str>,
    /// The address to listen on.
    pub address: IpAddr,
    /// The port to listen on.
    pub port: u16,
    /// The handling of accepted connections.
    pub kind: ListenerKind,
}

/// The handling of a listener's accepted connections.
#[derive(Debug, Clone, PartialEq)]
pub enum ListenerKind {
    /// Raw bytes, sent to one cluster.
    Tcp(TcpListener),
    /// Requests, routed by the route configuration.
    Http(HttpListener),
}

/// A listener for bytes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TcpListener {
    /// The cluster that the bytes are sent to.
    pub cluster: Arc<str>,
    /// The idle time limit of a connection. `None` for Envoy's default of 1 h.
    pub idle_timeout: Option<Duration>,
    /// Number of endpoints to try. `None` for one.
    pub max_connect_attempts: Option<u32>,
}

/// A listener for requests.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct HttpListener {
    /// The idle time limit of a stream. `None` for Envoy's default of 5 min.
    pub stream_idle_timeout: Option<Duration>,
    /// The time limit for receiving a request. `None` for no limit.
    pub request_timeout: Option<Duration>,
    /// True if the client's address is that of the connection, as at the edge, instead of the one in
    /// `X-Forwarded-For`.
    pub use_remote_address: bool,
}

/// A service of the static file.
#[derive(Debug, Clone, PartialEq)]
pub struct StaticService {
    /// The name of the service and of its cluster.
    pub name: Arc<str>,
    /// The protocol of its instances.
    pub protocol: Protocol,
    /// The values of `Host` that are routed to it. Empty to route nothing to it, as for TCP listeners.
    pub domains: Vec<String>,
    /// The time limit of a request. `None` for the default.
    pub timeout: Option<Duration>,
    /// The time limit for connecting. `None` for the default.
    pub connect_timeout: Option<Duration>,
    /// The service's limits. `None` for each stands for the default.
    pub limits: Limits,
    /// The service's instances. `None` for those of the catalog's service.
    pub endpoints: Option<Vec<StaticEndpoint>>,
    /// The service of the catalog that has its instances. `None` for the one of the same name.
    pub catalog_service: Option<Arc<str>>,
}

/// An instance of a service of the static file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StaticEndpoint {
    /// The endpoint's IP address.
    pub address: IpAddr,
    /// The endpoint's port.
    pub port: u16,
    /// The datacenter of the instance. `None` for the own one.
    pub zone: Option<Arc<str>>,
}

/// The limits that differ from the defaults.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Limits {
    /// Maximum number of connections.
    pub max_connections: Option<u32>,
    /// Maximum number of requests that wait for a connection.
    pub max_pending_requests: Option<u32>,
    /// Maximum number of concurrent requests.
    pub max_requests: Option<u32>,
    /// Maximum number of concurrent retries.
    pub max_retries: Option<u32>,
}

/// The data of all sources. A missing source has empty data.
#[derive(Debug, Clone, Default)]
pub struct Known {
    /// The registry's services. Unchanged services should keep the same `Arc`.
    pub registry: Vec<Arc<RegistryService>>,
    /// The instances. Unchanged values should keep the same `Arc`.
    pub catalog: Arc<Catalog>,
    /// The settings of all clusters.
    pub defaults: Arc<Defaults>,
    /// The static file.
    pub fixed: Arc<StaticConfig>,
}
