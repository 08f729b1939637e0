//! The translation of the sources' data into the [resources of
//! services](crate::assemble::ServiceResources).
//!
//! | of | becomes |
//! |---|---|
//! | a running service of the registry | clusters and virtual hosts, named `<service>-<provides>` |
//! | a running branch of it | the same, named `<service>-<branch>-<provides>` |
//! | a service of Consul with a tag `domain-<name>` | a cluster, and a virtual host for `<name>` |
//! | a service of the static file | a cluster, and a virtual host if it has domains |
//! | a listener of the static file | a listener |
//! | the instances of Consul's service with the name of the cluster | endpoints, those of the own datacenter first |
//!
//! Services and branches of the registry have one cluster and one virtual host for each port that they
//! provide. A branch also has a route in the service's virtual host: for requests with its name in the header
//! `x-branch-name`, and for its canary share of all others. A tag `domain-<name>` only counts for services
//! that the registry does not know.
//!
//! Equal data gives an equal result, in any order.

mod clusters;
mod defaults;
mod endpoints;
mod listeners;
mod model;
mod names;
mod options;
mod others;
mod registry;
mod routes;
mod tags;
#[cfg(test)]
mod tests;
mod translator;

use self::translator::Translated;

pub use self::defaults::Defaults;
pub use self::model::{
    Branch, Catalog, CatalogService, HttpListener, Instance, Known, Limits, ListenerKind, Protocol,
    Provides, RegistryService, StaticConfig, StaticEndpoint, StaticListener, StaticService,
    TcpListener, UNLISTED,
};
pub use self::options::{HealthCheckKind, TranslateOptions};
pub use self::translator::{Translation, Translator};

/// The source of services that the registry knows, as in [`Owner::source`](crate::assemble::Owner::source).
pub const REGISTRY: &str = "registry";

/// The source of services that opt in by tags.
pub const CONSUL: &str = "consul";

/// The source of services and listeners that the static file has.
pub const STATIC: &str = "static";
