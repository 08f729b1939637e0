//! The validation of load balancers by the resource manager.

use std::collections::HashSet;

use azure_loadbalancer::resources::{ArmId, LoadBalancer, SubResource};

use super::Azure;

impl Azure {
    pub(super) fn check(&self, resource: &LoadBalancer, id: &ArmId) -> Result<(), String> {
        let properties = &resource.properties;
        let frontends = &properties.frontend_ip_configurations;
        if frontends.is_empty() {
            return Err("a load balancer needs a frontend".to_owned());
        }
        let others: HashSet<&ArmId> = self
            .snapshot
            .load_balancers
            .iter()
            .filter(|balancer| balancer.id.as_ref() != Some(id))
            .flat_map(|balancer| &balancer.properties.frontend_ip_configurations)
            .filter_map(|frontend| frontend.properties.public_ip_address.as_ref()?.id.as_ref())
            .collect();
        let mut used = HashSet::new();
        let mut addresses = HashSet::new();
        for frontend in frontends {
            let inner = &frontend.properties;
            match (&inner.public_ip_address, &inner.subnet) {
                (Some(public), None) => {
                    let public = public.id.as_ref().ok_or("a reference without an id")?;
                    let found = self
                        .snapshot
                        .public_ips
                        .iter()
                        .find(|ip| ip.id.as_ref() == Some(public));
                    let found = found.ok_or_else(|| format!("no public address {public}"))?;
                    if found.sku.as_ref().and_then(|sku| sku.name.clone())
                        != resource.sku.as_ref().and_then(|s| s.name.clone())
                    {
                        return Err("PublicIPAndLBSkuDoNotMatch".to_owned());
                    }
                    if others.contains(public) || !used.insert(public) {
                        return Err(format!("PublicIPReferencedByMultipleIPConfigs {public}"));
                    }
                }
                (None, Some(subnet)) => {
                    let known = self
                        .snapshot
                        .virtual_network
                        .iter()
                        .flat_map(|n| &n.properties.subnets);
                    if !known.into_iter().any(|known| known.id == subnet.id) {
                        return Err("no such subnet".to_owned());
                    }
                    if let Some(address) = &inner.private_ip_address
                        && !addresses.insert(address)
                    {
                        return Err(format!("PrivateIPAddressInUse {address}"));
                    }
                }
                _ => return Err("a frontend is of one kind".to_owned()),
            }
        }
        if !used.is_empty() && frontends.iter().any(|f| f.properties.subnet.is_some()) {
            return Err("frontends of both kinds".to_owned());
        }
        let within = |kind: &str, names: Vec<&String>| -> HashSet<ArmId> {
            names.into_iter().map(|name| id.child(kind, name)).collect()
        };
        let known_frontends = within(
            "frontendIPConfigurations",
            frontends.iter().map(|f| &f.name).collect(),
        );
        let known_pools = within(
            "backendAddressPools",
            properties
                .backend_address_pools
                .iter()
                .map(|p| &p.name)
                .collect(),
        );
        let known_probes = within(
            "probes",
            properties.probes.iter().map(|p| &p.name).collect(),
        );
        let mut ports = HashSet::new();
        let mut backends = HashSet::new();
        let mut names = HashSet::new();
        for rule in &properties.load_balancing_rules {
            let inner = &rule.properties;
            let has = |reference: &Option<SubResource>, known: &HashSet<ArmId>| {
                reference
                    .as_ref()
                    .and_then(|r| r.id.as_ref())
                    .is_some_and(|id| known.contains(id))
            };
            if !has(&inner.frontend_ip_configuration, &known_frontends)
                || !has(&inner.backend_address_pool, &known_pools)
                || (inner.probe.is_some() && !has(&inner.probe, &known_probes))
            {
                return Err(format!("InvalidResourceReference {}", rule.name));
            }
            let frontend = inner
                .frontend_ip_configuration
                .as_ref()
                .and_then(|r| r.id.clone());
            if !ports.insert((frontend, inner.protocol.clone(), inner.frontend_port)) {
                return Err(format!("RulesUseSameFrontendPort {}", rule.name));
            }
            let pool = inner
                .backend_address_pool
                .as_ref()
                .and_then(|r| r.id.clone());
            if inner.enable_floating_ip != Some(true)
                && !backends.insert((pool, inner.protocol.clone(), inner.backend_port))
            {
                return Err(format!(
                    "RulesUseSameBackendPortProtocolAndPool {}",
                    rule.name
                ));
            }
            names.insert(&rule.name);
        }
        let all = frontends
            .iter()
            .map(|f| &f.name)
            .chain(names)
            .chain(properties.probes.iter().map(|p| &p.name));
        for name in all {
            if name.len() > 80 || name.is_empty() {
                return Err(format!("InvalidResourceName {name:?}"));
            }
        }
        Ok(())
    }
}
