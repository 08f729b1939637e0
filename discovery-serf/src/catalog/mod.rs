//! Members and their tags as services with instances.
//!
//! [`ServiceCatalog::build`] is a pure function of the members that an agent lists: their order makes no
//! difference, and no tag of a member can make it fail or affect another service. Problems are reported
//! beside the catalog, with pointers such as `/members/{node}/tags/http-port`.
//!
//! | tag | is | when it is missing or blank | when it cannot be used |
//! |---|---|---|---|
//! | `service` | the service's name | the node is no part of a service | the node is left out |
//! | `http-port` | 1 to 65535, in digits | the node is left out | the node is left out |
//! | `scheme` | `http` or `https` | `http` | the node is left out |
//! | `host` | the host that requests name | `route-path` decides | as if it were missing |
//! | `route-path` | a route template for the paths of requests | see [`RouteHint`] | as if it were missing |
//! | `health-path` | the path of health probes | `/health` | as if it were missing |
//! | `weight` | 0 to 1000; 0 gets no requests, unless all have it | 1 | 1, or 1000 for more than that |
//! | `version`, `region` | any text | none | – |
//! | `instance` | the destination's id | `ip:port` | as if it were missing |
//!
//! Instances share the requests equally if all of a service have the weight 0.
//!
//! `host` and `route-path` belong to the service: if instances disagree, the one whose key comes first
//! decides, and all stay destinations.

mod collected_problems;
mod gathering;
mod hints;
mod keys;
mod options;
pub(crate) mod shown;
pub(crate) mod tags;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::Arc;

use proxy_model::Problems;

pub use self::options::CatalogOptions;
pub use self::tags::{Scheme, TagError};
use crate::member::Member;

/// The services of a cluster.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct ServiceCatalog {
    /// The services by name. Each has an instance, unless [`CatalogOptions::keep_empty_services`] keeps it.
    pub services: BTreeMap<Arc<str>, Service>,
    /// The service `backend` without instances, while no member has the tag `service`:
    /// [`CatalogOptions::legacy_backend`]. `None` if there are no members at all.
    pub legacy: Option<Service>,
    /// True if a member has the tag `service`, alive or not, so that an outage does not bring the legacy
    /// service back. Members that the options exclude do not count.
    pub exposes_services: bool,
    /// Number of services in the cluster: those with a member that is an instance, or would be one if it
    /// had not disappeared without notice. A crashed service counts, so that no other service gets its
    /// requests.
    pub listed_services: usize,
    /// Services that have members but cannot be served, with the problems that can be corrected.
    pub unusable: BTreeMap<Arc<str>, Problems>,
    /// The members that are not destinations, by name.
    pub left_out: Vec<LeftOut>,
    /// Problems of members that belong to no service, and problems between services.
    pub problems: Problems,
}

/// A service.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Service {
    /// The service's instances, in the byte order of their keys.
    pub instances: Vec<ServiceInstance>,
    /// The hint how to route requests to this service.
    pub hint: RouteHint,
    /// Problems of its members.
    pub problems: Problems,
}

/// A hint how requests for a service differ from others.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum RouteHint {
    /// No hint. The service gets all requests if it is the only service, otherwise none.
    #[default]
    None,
    /// An unusable hint. The service gets no requests, since a typing error in a host must not open it to
    /// all requests.
    Unusable,
    /// The host of the requests.
    Host(String),
    /// The path of the requests.
    Path(String),
}

/// A member as a destination of a service.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ServiceInstance {
    /// The instance's id, unique in the service even if case is ignored: the tag `instance`, or `ip:port`.
    pub key: String,
    /// The node.
    pub member: Arc<str>,
    /// The scheme of its URL.
    pub scheme: Scheme,
    /// The address and port at which it listens.
    pub socket: SocketAddr,
    /// The host of the requests that its service should get.
    pub host: Option<String>,
    /// The path of the requests that its service should get, as a route template that begins with `/`.
    pub route_path: Option<String>,
    /// The path of its health probes, which begins with `/`.
    pub health_path: Option<String>,
    /// The instance's share of the requests, from 0 to 1000.
    pub weight: u32,
    /// The version that it runs.
    pub version: Option<String>,
    /// The region in which it runs.
    pub region: Option<String>,
}

impl ServiceInstance {
    /// Returns the URL of the instance: `http://10.0.0.1:8080`, `https://[fd00::2]:8443`.
    pub fn address(&self) -> String {
        format!("{}://{}", self.scheme, self.socket)
    }
}

/// A member that is not a destination.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub struct LeftOut {
    /// The node.
    pub member: Arc<str>,
    /// The service in its tags.
    pub service: Option<Arc<str>>,
    /// The reason, in a few words that follow the node's name: `is failed`.
    pub reason: String,
}

impl ServiceCatalog {
    /// Builds the services of these members.
    ///
    /// The order of members makes no difference. Takes time in proportion to the number of members, except
    /// for sorting them.
    pub fn build(members: &[Member], options: &CatalogOptions) -> Self {
        gathering::gather(members, options)
    }

    /// The service that gets all requests without another taker, if it has no route hint: the only service
    /// of the cluster.
    pub(crate) fn only_service(&self) -> Option<&Arc<str>> {
        let (only, _) = self.services.first_key_value()?;
        (self.services.len() == 1 && self.listed_services <= 1).then_some(only)
    }
}
