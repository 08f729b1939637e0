//! The tags of public addresses, which name their owners.

use std::collections::BTreeSet;

use crate::config::{Config, Edition};
use crate::resources::PublicIpAddress;
use crate::service::ServiceKey;

const SERVICE: &str = "k8s-azure-service";
const OLD_SERVICE: &str = "service";
const CLUSTER: &str = "k8s-azure-cluster-name";
const OLD_CLUSTER: &str = "kubernetes-cluster-name";
const LABEL_HOLDER: &str = "k8s-azure-dns-label-service";
/// The tag with the cluster's resource group, on addresses in other groups. It distinguishes clusters of the
/// same name.
const HOME: &str = "azure-loadbalancer-cluster-group";

/// The owners of a public address, from its tags. An address without the tag belongs to a user, and is
/// neither tagged nor deleted.
#[derive(Debug)]
pub(super) struct Owners {
    pub(super) services: BTreeSet<ServiceKey>,
    /// The parts of the tag that are no services, which are kept.
    pub(super) strangers: Vec<String>,
    pub(super) cluster: Option<String>,
    /// The resource group of the cluster, if the address is in another one.
    pub(super) home: Option<String>,
    key: &'static str,
}

impl Owners {
    pub(super) fn of(address: &PublicIpAddress) -> Option<Self> {
        let (key, value) = [SERVICE, OLD_SERVICE]
            .into_iter()
            .find_map(|key| Some((key, address.tag(key)?)))?;
        let mut services = BTreeSet::new();
        let mut strangers = Vec::new();
        for part in value
            .split(',')
            .map(str::trim)
            .filter(|part| !part.is_empty())
        {
            match part.parse() {
                Ok(service) => {
                    services.insert(service);
                }
                Err(_) => strangers.push(part.to_owned()),
            }
        }
        let cluster = address.tag(CLUSTER).or_else(|| address.tag(OLD_CLUSTER));
        let cluster = cluster
            .map(str::to_owned)
            .filter(|cluster| !cluster.is_empty());
        (!services.is_empty()).then_some(Self {
            services,
            strangers,
            cluster,
            home: address.tag(HOME).map(str::to_owned),
            key,
        })
    }

    /// Returns true unless a tag names another cluster.
    pub(super) fn may_be_of(&self, config: &Config) -> bool {
        let is = |tag: &Option<String>, own: &str| {
            tag.as_ref().is_none_or(|tag| tag.eq_ignore_ascii_case(own))
        };
        is(&self.cluster, &config.cluster_name) && is(&self.home, &config.resource_group)
    }

    /// Returns true if the tags name this cluster, whatever the resource group.
    pub(super) fn are_certainly_of(&self, config: &Config) -> bool {
        self.cluster.is_some() && self.home.is_some() && self.may_be_of(config)
    }
}

/// Returns true if the tags of a public address name this cluster, whatever the resource group.
pub(crate) fn is_certainly_of(config: &Config, address: &PublicIpAddress) -> bool {
    Owners::of(address).is_some_and(|owners| owners.are_certainly_of(config))
}

/// Tags an address in another resource group with the cluster's own group, so that it is found there in any
/// case.
pub(super) fn write_home(config: &Config, address: &mut PublicIpAddress, group: Option<&str>) {
    let is_elsewhere =
        group.is_some_and(|group| !group.eq_ignore_ascii_case(&config.resource_group));
    if is_elsewhere && address.tag(HOME).is_none() {
        put(address, HOME, config.resource_group.clone());
    }
}

/// Tags a new public address.
pub(super) fn write_owners(
    config: &Config,
    address: &mut PublicIpAddress,
    services: &BTreeSet<ServiceKey>,
) {
    let (service, cluster) = match config.edition {
        Edition::Note => (OLD_SERVICE, OLD_CLUSTER),
        Edition::Current => (SERVICE, CLUSTER),
    };
    put(address, service, joined(services, &[]));
    put(address, cluster, config.cluster_name.clone());
}

/// Changes the existing tag of a public address, under its present key.
pub(super) fn rewrite_owners(
    address: &mut PublicIpAddress,
    owners: &Owners,
    services: &BTreeSet<ServiceKey>,
) {
    put(address, owners.key, joined(services, &owners.strangers));
}

/// Returns the service whose DNS label the address has.
pub(super) fn label_holder(address: &PublicIpAddress) -> Option<ServiceKey> {
    address.tag(LABEL_HOLDER)?.parse().ok()
}

pub(super) fn write_label_holder(address: &mut PublicIpAddress, holder: &ServiceKey) {
    put(address, LABEL_HOLDER, holder.to_string());
}

pub(super) fn remove_label_holder(address: &mut PublicIpAddress) {
    address
        .tags
        .retain(|key, _| !key.eq_ignore_ascii_case(LABEL_HOLDER));
}

fn joined(services: &BTreeSet<ServiceKey>, strangers: &[String]) -> String {
    let services = services.iter().map(ServiceKey::to_string);
    services
        .chain(strangers.iter().cloned())
        .collect::<Vec<_>>()
        .join(",")
}

/// Sets a tag. Keys are case-insensitive.
fn put(address: &mut PublicIpAddress, key: &str, value: String) {
    match address
        .tags
        .iter_mut()
        .find(|(existing, _)| existing.eq_ignore_ascii_case(key))
    {
        Some((_, existing)) => *existing = value,
        None => {
            address.tags.insert(key.to_owned(), value);
        }
    }
}
