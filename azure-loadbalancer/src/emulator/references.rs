//! The references between resources.

use std::collections::BTreeMap;

use serde_json::Value;

use super::json::{children, id_of, key, name};
use super::path::Kind;
use super::store::{Store, StoredResource};

/// The ids that refer to each resource or part, by its key.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct References {
    sources: BTreeMap<String, Vec<String>>,
    /// The pools in the models of scale sets, independently of their instances.
    models: BTreeMap<String, Vec<String>>,
}

impl References {
    /// Collects all references of the store.
    pub(super) fn of(store: &Store) -> Self {
        let mut found = Self::default();
        for resource in store.all() {
            match resource.place.kind {
                Kind::LoadBalancer => found.add_balancer(resource),
                Kind::Interface => found.add_interface(resource),
                Kind::VirtualNetwork => found.add_network(resource),
                Kind::ScaleSet => found.add_scale_set(resource),
                Kind::PublicIp | Kind::SecurityGroup | Kind::Machine => {}
            }
        }
        found
    }

    /// Returns the ids that refer to a resource or part.
    pub(super) fn to(&self, key: &str) -> &[String] {
        self.sources.get(key).map_or(&[], Vec::as_slice)
    }

    /// Returns the scale sets whose models have a pool of a load balancer.
    pub(super) fn models_with_pools_of(&self, balancer: &str) -> Vec<&str> {
        let prefix = format!("{balancer}/");
        let below = self.models.range(prefix.clone()..);
        let below = below.take_while(|(key, _)| key.starts_with(&prefix));
        below.flat_map(|(_, ids)| ids).map(String::as_str).collect()
    }

    /// Returns the references from elsewhere to a resource or its parts.
    pub(super) fn below<'a>(
        &'a self,
        resource: &'a str,
    ) -> impl Iterator<Item = (&'a str, &'a String)> {
        let range = self.sources.range(resource.to_owned()..);
        range
            .take_while(move |(target, _)| target.starts_with(resource))
            .filter(move |(target, _)| {
                let rest = &target[resource.len()..];
                rest.is_empty() || rest.starts_with('/')
            })
            .flat_map(|(target, sources)| sources.iter().map(move |id| (target.as_str(), id)))
            .filter(move |(_, id)| !key(id).starts_with(&format!("{resource}/")))
    }

    /// Returns the resources whose references from others differ between `self` and `other`.
    pub(super) fn changed(&self, other: &Self) -> Vec<String> {
        let mut changed: Vec<String> = Vec::new();
        for target in self.sources.keys().chain(other.sources.keys()) {
            if self.to(target) != other.to(target) {
                changed.push(owner(target).to_owned());
            }
        }
        changed.sort_unstable();
        changed.dedup();
        changed
    }

    fn add(&mut self, target: &Value, source: &str) {
        if let Some(id) = id_of(target) {
            self.sources
                .entry(key(id))
                .or_default()
                .push(source.to_owned());
        }
    }

    fn add_balancer(&mut self, resource: &StoredResource) {
        for frontend in children(&resource.body, "frontendIPConfigurations") {
            let id = resource.child_id("frontendIPConfigurations", name(frontend));
            let properties = &frontend["properties"];
            self.add(&properties["publicIPAddress"], &id);
            self.add(&properties["subnet"], &id);
        }
        for pool in children(&resource.body, "backendAddressPools") {
            let id = resource.child_id("backendAddressPools", name(pool));
            self.add(&pool["properties"]["virtualNetwork"], &id);
        }
    }

    fn add_interface(&mut self, resource: &StoredResource) {
        let id = resource.place.id();
        self.add(&resource.body["properties"]["networkSecurityGroup"], &id);
        for configuration in children(&resource.body, "ipConfigurations") {
            let id = resource.child_id("ipConfigurations", name(configuration));
            self.add_configuration(&configuration["properties"], &id);
        }
    }

    fn add_configuration(&mut self, properties: &Value, id: &str) {
        self.add(&properties["subnet"], id);
        self.add(&properties["publicIPAddress"], id);
        for pool in properties["loadBalancerBackendAddressPools"]
            .as_array()
            .into_iter()
            .flatten()
        {
            self.add(pool, id);
        }
    }

    fn add_network(&mut self, resource: &StoredResource) {
        for subnet in children(&resource.body, "subnets") {
            let id = resource.child_id("subnets", name(subnet));
            self.add(&subnet["properties"]["networkSecurityGroup"], &id);
        }
    }

    fn add_scale_set(&mut self, resource: &StoredResource) {
        let id = resource.place.id();
        for (_, configuration) in super::kinds::scale_set::configurations(
            &resource.body["properties"]["virtualMachineProfile"],
        ) {
            for pool in configuration["properties"]["loadBalancerBackendAddressPools"]
                .as_array()
                .into_iter()
                .flatten()
            {
                if let Some(pool) = id_of(pool) {
                    self.models.entry(key(pool)).or_default().push(id.clone());
                }
            }
        }
        for instance in super::kinds::scale_set::instances(resource) {
            let instance_id = instance["instanceId"].as_str().unwrap_or_default();
            for (interface, configuration) in
                super::kinds::scale_set::configurations(&instance["properties"])
            {
                let id = format!(
                    "{id}/virtualMachines/{instance_id}/networkInterfaces/{interface}/ipConfigurations/{}",
                    name(configuration)
                );
                self.add_configuration(&configuration["properties"], &id);
            }
        }
    }
}

/// Returns the key of the resource that a key denotes, or is a part of.
pub(super) fn owner(target: &str) -> &str {
    // /subscriptions/s/resourcegroups/g/providers/p/type/name
    const SEGMENTS: usize = 8;
    let end = target
        .match_indices('/')
        .nth(SEGMENTS)
        .map_or(target.len(), |(at, _)| at);
    &target[..end]
}
