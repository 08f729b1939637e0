//! Members and their tags as services with instances.
//!
//! [`ServiceCatalog::build`] is a pure function of what an agent lists: the order of members makes no difference, and nothing
//! that a member says of itself can make it fail or touch another service. What is wrong is told beside the catalog, with
//! pointers such as `/members/{node}/tags/http-port`.
//!
//! | tag | is | when it is missing or blank | when it cannot be used |
//! |---|---|---|---|
//! | `service` | the service's name | the node is no part of a service | the node is left out |
//! | `http-port` | 1 to 65535, in digits | the node is left out | the node is left out |
//! | `scheme` | `http` or `https` | `http` | the node is left out |
//! | `host` | the host that requests name | `route-path` decides | as if it were missing |
//! | `route-path` | a route template for the paths of requests | see [`RouteHint`] | as if it were missing |
//! | `health-path` | the path of health probes | `/health` | as if it were missing |
//! | `weight` | 0 to 1000; 0 gets no requests, unless all have it: then all are equal | 1 | 1, or 1000 for more than that |
//! | `version`, `region` | any text | none | – |
//! | `instance` | the destination's id | `ip:port` | as if it were missing |
//!
//! `host` and `route-path` are of the service: of instances that disagree, the one whose key comes first decides, and all
//! stay destinations.

mod gathering;
mod hints;
mod keys;
mod options;
mod said;
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
    /// The service `backend` without instances, while no member has the tag `service`: [`CatalogOptions::legacy_backend`].
    /// `None` if there are no members either.
    pub legacy: Option<Service>,
    /// Whether a member has the tag `service`, be it alive or not: an outage does not bring the legacy service back. Those
    /// that the options shut out do not count.
    pub exposes_services: bool,
    /// How many services the cluster has: those with a member that is an instance, or would be one had it not gone without
    /// having said so. A service that has crashed counts, so that nobody else gets its requests.
    pub listed_services: usize,
    /// Services that have members but cannot be served, and why, as far as there is something to be mended.
    pub unusable: BTreeMap<Arc<str>, Problems>,
    /// The members that are no destination, by name.
    pub left_out: Vec<LeftOut>,
    /// What is wrong with members that belong to no service, and between services.
    pub problems: Problems,
}

/// A service.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Service {
    /// Its instances, in the byte order of their keys.
    pub instances: Vec<ServiceInstance>,
    /// How requests for it are told from others.
    pub hint: RouteHint,
    /// What is wrong with its members.
    pub problems: Problems,
}

/// How requests for a service are told from others.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum RouteHint {
    /// Its members do not say. It gets all requests if it is the only service, else none.
    #[default]
    None,
    /// What they say cannot be used. It gets none: a slip in a host must not open it to all.
    Unusable,
    /// By the host that they name.
    Host(String),
    /// By their path.
    Path(String),
}

/// A member as a destination of a service.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ServiceInstance {
    /// Its id, unique in the service even if case is ignored: the tag `instance`, or `ip:port`.
    pub key: String,
    /// The node.
    pub member: Arc<str>,
    /// How it is spoken to.
    pub scheme: Scheme,
    /// Where it listens.
    pub socket: SocketAddr,
    /// The host that it wants its service to be known by.
    pub host: Option<String>,
    /// The path that it wants its service to be known by, as a route template that begins with `/`.
    pub route_path: Option<String>,
    /// The path of its health probes, which begins with `/`.
    pub health_path: Option<String>,
    /// Its share of the requests, from 0 to 1000.
    pub weight: u32,
    /// What it runs.
    pub version: Option<String>,
    /// Where it runs.
    pub region: Option<String>,
}

impl ServiceInstance {
    /// Its URL: `http://10.0.0.1:8080`, `https://[fd00::2]:8443`.
    pub fn address(&self) -> String {
        format!("{}://{}", self.scheme, self.socket)
    }
}

/// A member that is no destination.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub struct LeftOut {
    /// The node.
    pub member: Arc<str>,
    /// The service that it says it belongs to.
    pub service: Option<Arc<str>>,
    /// Why, in a few words that read well after the node's name: `is failed`.
    pub reason: String,
}

impl ServiceCatalog {
    /// The services of these members.
    ///
    /// The same members in another order give the same catalog. Takes time in proportion to the members, but for sorting
    /// them.
    pub fn build(members: &[Member], options: &CatalogOptions) -> Self {
        gathering::gather(members, options)
    }

    /// The service that gets all requests that nobody else asks for, if it does not say which ones it wants: the only one
    /// of the cluster.
    pub(crate) fn only_service(&self) -> Option<&Arc<str>> {
        let (only, _) = self.services.first_key_value()?;
        (self.services.len() == 1 && self.listed_services <= 1).then_some(only)
    }
}
