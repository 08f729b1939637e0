//! The options that limit the members and services of a catalog.

use std::collections::BTreeSet;
use std::net::IpAddr;

use ipnet::IpNet;

/// The options that limit the members and services of a catalog.
///
/// Any node in the gossip can claim to be any service. If not all of them are trusted, the first two
/// options limit the effect of such a claim.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct CatalogOptions {
    /// The allowed services, by their exact names. Others are left out. `None` to allow all. Default:
    /// `None`.
    pub allowed_services: Option<BTreeSet<String>>,
    /// The networks in which instances may be. Instances elsewhere are left out. Empty to allow all.
    /// Default: empty.
    pub allowed_networks: Vec<IpNet>,
    /// True to keep the cluster and route of a service without usable members. The cluster then has no
    /// destinations, and requests get 503 instead of 404. Default: false.
    pub keep_empty_services: bool,
    /// True to keep a cluster without destinations and a route for all requests for the service `backend`,
    /// while no member of the cluster has the tag `service`. Requests then get 503 instead of 404. Members
    /// without the tag are never destinations. Default: true.
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
    /// Sets the allowed services.
    #[must_use]
    pub fn with_allowed_services<I>(mut self, services: I) -> Self
    where
        I: IntoIterator,
        I::Item: Into<String>,
    {
        self.allowed_services = Some(services.into_iter().map(Into::into).collect());
        self
    }

    /// Sets the networks in which instances may be.
    #[must_use]
    pub fn with_allowed_networks(mut self, networks: impl IntoIterator<Item = IpNet>) -> Self {
        self.allowed_networks = networks.into_iter().collect();
        self
    }

    /// Enables or disables clusters and routes of services without instances.
    #[must_use]
    pub fn with_keep_empty_services(mut self, keep: bool) -> Self {
        self.keep_empty_services = keep;
        self
    }

    /// Enables or disables the empty service `backend` while no member has the tag `service`.
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
