//! Which members may be a part of which services.

use std::collections::BTreeSet;
use std::net::IpAddr;

use ipnet::IpNet;

/// Which members may be a part of which services.
///
/// Anybody in the gossip can claim to be any service. Where not everybody in it is trusted, the first two options limit
/// what such a claim can do.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct CatalogOptions {
    /// The services that there may be, by their exact names; others are left out. Unset, which is the default: any.
    pub allowed_services: Option<BTreeSet<String>>,
    /// Where instances may be; those elsewhere are left out. Empty, which is the default: anywhere.
    pub allowed_networks: Vec<IpNet>,
    /// Whether a service whose every listed member is out of order keeps its cluster, without destinations, and its route:
    /// requests then get 503 instead of 404. Default false.
    pub keep_empty_services: bool,
    /// Whether the service `backend` keeps a cluster without destinations and a route for all requests as long as no member
    /// of the cluster has the tag `service`: requests then get 503 instead of 404. Members without the tag are never
    /// destinations. Default true.
    pub legacy_backend: bool,
}

impl Default for CatalogOptions {
    fn default() -> Self {
        Self {
            allowed_services: None,
            allowed_networks: Vec::new(),
            keep_empty_services: false,
            legacy_backend: true,
        }
    }
}

impl CatalogOptions {
    /// Sets which services there may be.
    #[must_use]
    pub fn with_allowed_services<I>(mut self, services: I) -> Self
    where
        I: IntoIterator,
        I::Item: Into<String>,
    {
        self.allowed_services = Some(services.into_iter().map(Into::into).collect());
        self
    }

    /// Sets where instances may be.
    #[must_use]
    pub fn with_allowed_networks(mut self, networks: impl IntoIterator<Item = IpNet>) -> Self {
        self.allowed_networks = networks.into_iter().collect();
        self
    }

    /// Sets whether a service that has no instance left keeps its cluster and route.
    #[must_use]
    pub fn with_keep_empty_services(mut self, keep: bool) -> Self {
        self.keep_empty_services = keep;
        self
    }

    /// Sets whether there is an empty service `backend` as long as no member has the tag `service`.
    #[must_use]
    pub fn with_legacy_backend(mut self, enabled: bool) -> Self {
        self.legacy_backend = enabled;
        self
    }

    pub(super) fn allows_service(&self, name: &str) -> bool {
        let allowed = self.allowed_services.as_ref();
        allowed.is_none_or(|services| services.contains(name))
    }

    pub(super) fn allows_address(&self, address: IpAddr) -> bool {
        self.allowed_networks.is_empty()
            || self
                .allowed_networks
                .iter()
                .any(|network| network.contains(&address))
    }
}
