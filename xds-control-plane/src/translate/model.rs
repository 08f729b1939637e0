//! What the sources know, in the form in which it is translated.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use super::defaults::Defaults;

/// A service of the registry.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RegistryService {
    /// Its name.
    pub name: Arc<str>,
    /// Whether it runs. One that does not is not served, nor are its branches.
    pub is_running: bool,
    /// What it offers.
    pub provides: Vec<Provides>,
    /// Its branches, whether they run or not.
    pub branches: Vec<Branch>,
}

/// A named port of a service.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Provides {
    /// Its name, the last part of the cluster's.
    pub name: Arc<str>,
    /// What is spoken there.
    pub protocol: Protocol,
}

/// What instances speak.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Protocol {
    /// HTTP/1.1.
    #[default]
    Http,
    /// HTTP/2, for gRPC.
    Grpc,
    /// Bytes.
    Tcp,
}

/// A variant of a service that runs beside it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Branch {
    /// Its name, the middle part of the cluster's.
    pub name: Arc<str>,
    /// Whether it runs.
    pub is_running: bool,
    /// What it offers; `None`: the same as its service.
    pub provides: Option<Vec<Provides>>,
    /// The share of the service's requests that it gets, in percent. 0: none.
    pub canary_percent: u32,
}

/// Stands for all datacenters but the own one, where it is not known which there are.
pub const UNLISTED: &str = "*";

/// The instances of all services in all datacenters.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Catalog {
    /// The control plane's own datacenter.
    pub own: Arc<str>,
    /// By name.
    pub services: BTreeMap<Arc<str>, Arc<CatalogService>>,
    /// What is known of a service that is not among them, if datacenters were not read yet that may have it. `None`: it is in
    /// no datacenter. What stays the same should stay the same `Arc`.
    pub unlisted: Option<Arc<CatalogService>>,
}

/// The instances of one service in all datacenters that know it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct CatalogService {
    /// By name.
    pub datacenters: BTreeMap<Arc<str>, Arc<[Instance]>>,
    /// The datacenters that list it and have not said yet which instances it has there, or whether any.
    pub unknown: BTreeSet<Arc<str>>,
    /// The datacenters that were not read yet, so that nobody can say whether they list it. [`UNLISTED`] stands for those that
    /// are not known by name.
    pub unread: BTreeSet<Arc<str>>,
}

/// An instance of a service.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Instance {
    /// The node that it is on.
    pub node: Arc<str>,
    /// Its id, unique on its node.
    pub id: Arc<str>,
    /// Where it is: an IP address, or something that is of no use here.
    pub address: Arc<str>,
    /// Its port; 0: none.
    pub port: u16,
    /// Its tags.
    pub tags: Vec<Arc<str>>,
    /// Whether it may get requests.
    pub is_live: bool,
}

/// What the static file says.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct StaticConfig {
    /// Its listeners.
    pub listeners: Vec<StaticListener>,
    /// Its services.
    pub services: Vec<StaticService>,
}

/// A listener of the static file.
#[derive(Debug, Clone, PartialEq)]
pub struct StaticListener {
    /// Its name.
    pub name: Arc<str>,
    /// The address to listen on.
    pub address: IpAddr,
    /// The port to listen on.
    pub port: u16,
    /// What becomes of what it accepts.
    pub kind: ListenerKind,
}

/// What becomes of what a listener accepts.
#[derive(Debug, Clone, PartialEq)]
pub enum ListenerKind {
    /// Bytes, for one cluster.
    Tcp(TcpListener),
    /// Requests, for the route configuration.
    Http(HttpListener),
}

/// A listener for bytes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TcpListener {
    /// The cluster that they are for.
    pub cluster: Arc<str>,
    /// How long a connection may be silent. `None`: Envoy's own 1 h.
    pub idle_timeout: Option<Duration>,
    /// How many endpoints are tried. `None`: one.
    pub max_connect_attempts: Option<u32>,
}

/// A listener for requests.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct HttpListener {
    /// How long a stream may be silent. `None`: Envoy's own 5 min.
    pub stream_idle_timeout: Option<Duration>,
    /// How long a request may take to arrive. `None`: for ever.
    pub request_timeout: Option<Duration>,
    /// Whether the client's address is that of the connection, as at the edge, and not what `X-Forwarded-For` says.
    pub use_remote_address: bool,
}

/// A service of the static file.
#[derive(Debug, Clone, PartialEq)]
pub struct StaticService {
    /// Its name, and that of its cluster.
    pub name: Arc<str>,
    /// What its instances speak.
    pub protocol: Protocol,
    /// The values of `Host` that are for it. None: nothing is routed to it, as for listeners of TCP.
    pub domains: Vec<String>,
    /// How long a request may take. `None`: as by the defaults.
    pub timeout: Option<Duration>,
    /// How long a connection may take. `None`: as by the defaults.
    pub connect_timeout: Option<Duration>,
    /// Its limits; those that are `None` are as by the defaults.
    pub limits: Limits,
    /// Its instances. `None`: those of the catalog's service of this name.
    pub endpoints: Option<Vec<StaticEndpoint>>,
    /// The service of the catalog that its instances are of. `None`: that of its name.
    pub catalog_service: Option<Arc<str>>,
}

/// An instance of a service of the static file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StaticEndpoint {
    /// Where it is.
    pub address: IpAddr,
    /// Its port.
    pub port: u16,
    /// The datacenter that it is in. `None`: the own one.
    pub zone: Option<Arc<str>>,
}

/// What differs from the default limits.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Limits {
    /// Connections.
    pub max_connections: Option<u32>,
    /// Requests that wait for a connection.
    pub max_pending_requests: Option<u32>,
    /// Requests at the same time.
    pub max_requests: Option<u32>,
    /// Retries at the same time.
    pub max_retries: Option<u32>,
}

/// What all sources know. What a source does not know is empty.
#[derive(Debug, Clone, Default)]
pub struct Known {
    /// The registry's services. Those that stay the same should stay the same `Arc`.
    pub registry: Vec<Arc<RegistryService>>,
    /// The instances. Those that stay the same should stay the same `Arc`.
    pub catalog: Arc<Catalog>,
    /// The settings of all clusters.
    pub defaults: Arc<Defaults>,
    /// The static file.
    pub fixed: Arc<StaticConfig>,
}
