//! Discovery of the services behind a load balancer's rules.

use std::collections::{BTreeMap, BTreeSet};

use async_trait::async_trait;
use discovery_core::{DiscoverError, DiscoveredService, Discoverer, Discovery};
use proxy_model::Problem;
use proxy_model::config::DestinationConfig;

use crate::arm::{ArmClient, ArmError};
use crate::resources::{
    ArmId, BackendAddressPool, LoadBalancer, LoadBalancingRule, NetworkInterface, TransportProtocol,
};

/// A discoverer that reads one load balancer, and reports a service for each of its TCP rules, with the name
/// of the rule.
///
/// The destinations are the members of the rule's pool at the backend port, so that a proxy reaches them
/// without the load balancer. The labels are the load balancer's tags. A tag whose key begins with the rule's
/// name and a colon (`web:proxy.enable`) is a label of that rule alone, and takes precedence.
///
/// A rule with a floating address is not enabled: its nodes respond at the load balancer's address only.
///
/// It costs one read, or two if members are network interfaces and not addresses. These are searched in the
/// resource group of the load balancer.
#[derive(Debug)]
pub struct LoadBalancerDiscoverer {
    client: ArmClient,
    load_balancer: ArmId,
    scheme: &'static str,
}

impl LoadBalancerDiscoverer {
    /// Creates a discoverer of this load balancer. Destinations use plain HTTP.
    pub fn new(client: ArmClient, load_balancer: ArmId) -> Self {
        Self {
            client,
            load_balancer,
            scheme: "http",
        }
    }

    /// Uses HTTPS for destinations.
    #[must_use]
    pub fn with_https(mut self) -> Self {
        self.scheme = "https";
        self
    }

    async fn read(&self) -> Result<(LoadBalancer, Vec<NetworkInterface>), ArmError> {
        let Some(balancer) = self.client.get::<LoadBalancer>(&self.load_balancer).await? else {
            return Ok((LoadBalancer::default(), Vec::new()));
        };
        // A pool lists addresses, or only the interfaces that have them.
        let by_interface = |pool: &BackendAddressPool| {
            let members = pool.properties.other.get("backendIPConfigurations");
            addresses(pool).is_empty()
                && members
                    .and_then(|list| list.as_array())
                    .is_some_and(|list| !list.is_empty())
        };
        let mut interfaces = Vec::new();
        // The list costs another read, so it is made only for pools of interfaces.
        if balancer
            .properties
            .backend_address_pools
            .iter()
            .any(by_interface)
        {
            let subscription = self
                .load_balancer
                .segment("subscriptions")
                .unwrap_or_default();
            let group = self.load_balancer.resource_group().unwrap_or_default();
            let path = format!(
                "/subscriptions/{subscription}/resourceGroups/{group}/providers/Microsoft.Network/networkInterfaces"
            );
            interfaces = self.client.list(&path).await?;
        }
        Ok((balancer, interfaces))
    }
}

#[async_trait]
impl Discoverer for LoadBalancerDiscoverer {
    fn name(&self) -> &str {
        "azure-loadbalancer"
    }

    async fn discover(&self) -> Result<Discovery, DiscoverError> {
        let (balancer, interfaces) = self.read().await.map_err(|error| {
            let message = format!("load balancer {} cannot be read", self.load_balancer);
            let failed = match error.is_of_credentials() {
                true => DiscoverError::rejected(message),
                _ if error.is_retriable() => DiscoverError::transient(message),
                _ => DiscoverError::permanent(message),
            };
            let failed = match error.retry_after() {
                Some(wait) => failed.with_retry_after(wait),
                None => failed,
            };
            failed.with_source(error)
        })?;
        if balancer.id.is_none() {
            let message = format!("load balancer {} does not exist", self.load_balancer);
            return Err(DiscoverError::permanent(message));
        }
        let members = members(&self.load_balancer, &balancer, &interfaces);
        let rules = balancer.properties.load_balancing_rules.iter();
        Ok(rules
            // Discovered services speak HTTP, which needs TCP.
            .filter(|rule| rule.properties.protocol == Some(TransportProtocol::Tcp))
            .map(|rule| service(&balancer, rule, &members, self.scheme))
            .collect())
    }
}

/// The addresses of the members of each pool.
type MemberAddresses = BTreeMap<ArmId, BTreeSet<String>>;

fn members(
    id: &ArmId,
    balancer: &LoadBalancer,
    interfaces: &[NetworkInterface],
) -> MemberAddresses {
    let mut members = MemberAddresses::new();
    for pool in &balancer.properties.backend_address_pools {
        members.insert(id.child("backendAddressPools", &pool.name), addresses(pool));
    }
    let configurations = interfaces
        .iter()
        .flat_map(|interface| &interface.properties.ip_configurations);
    for configuration in configurations {
        let properties = &configuration.properties;
        let Some(address) = &properties.private_ip_address else {
            continue;
        };
        for pool in &properties.load_balancer_backend_address_pools {
            if let Some(known) = pool.id.as_ref().and_then(|pool| members.get_mut(pool)) {
                known.insert(address.clone());
            }
        }
    }
    members
}

fn addresses(pool: &BackendAddressPool) -> BTreeSet<String> {
    let entries = pool
        .properties
        .load_balancer_backend_addresses
        .iter()
        .flatten();
    entries
        .filter_map(|entry| entry.properties.ip_address.clone())
        .collect()
}

fn service(
    balancer: &LoadBalancer,
    rule: &LoadBalancingRule,
    members: &MemberAddresses,
    scheme: &str,
) -> DiscoveredService {
    let properties = &rule.properties;
    if properties.enable_floating_ip == Some(true) {
        let message =
            "its nodes answer at the load balancer's address only, since that is a floating one";
        let problem = Problem::warning("", "floating_address", message);
        return DiscoveredService::not_enabled(rule.name.as_str()).with_problem(problem);
    }
    let own = format!("{}:", rule.name);
    let (of_rule, of_all): (Vec<_>, Vec<_>) = balancer
        .tags
        .iter()
        .partition(|(key, _)| key.starts_with(&own));
    // A tag with a colon belongs to the rule that is named before it.
    let labels = of_all.into_iter().filter(|(key, _)| !key.contains(':'));
    let labels = labels
        .map(|(key, value)| (key.as_str(), value.as_str()))
        .chain(
            of_rule
                .into_iter()
                .map(|(key, value)| (key.get(own.len()..).unwrap_or_default(), value.as_str())),
        );
    let pool = properties
        .backend_address_pool
        .as_ref()
        .and_then(|pool| pool.id.as_ref());
    let addresses = pool
        .and_then(|pool| members.get(pool))
        .into_iter()
        .flatten();
    let destinations = addresses.map(|address| {
        let address = format!("{scheme}://{address}:{}", properties.backend_port);
        let config = DestinationConfig {
            address: address.clone(),
            ..DestinationConfig::default()
        };
        (address, config)
    });
    DiscoveredService::labelled(rule.name.as_str(), labels, destinations)
}
