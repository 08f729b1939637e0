//! Resources that reject invalid writes and fill in defaults like the resource manager.

use std::collections::{BTreeSet, HashMap, HashSet};

use azure_loadbalancer::plan::{Action, Operation, Reads};
use azure_loadbalancer::resources::{
    AllocationMethod, ArmId, LoadBalancer, NetworkInterface, NetworkSecurityGroup, PublicIpAddress,
    ScaleSet, Sku, SkuName, SubResource,
};
use azure_loadbalancer::{Config, Node, Plan, Service, Snapshot, plan};

use super::Echo;

/// The existing resources, and the writes.
#[derive(Clone, Debug, Default)]
pub(crate) struct Azure {
    pub(crate) snapshot: Snapshot,
    /// The writes, each as two words and a name.
    pub(crate) log: Vec<String>,
    pub(crate) echo: Echo,
    allocated: u32,
    version: u64,
}

impl Azure {
    pub(crate) fn of(snapshot: Snapshot) -> Self {
        Self {
            snapshot,
            ..Self::default()
        }
    }

    /// Plans and executes until no work is left, in at most four rounds. Returns the last plan, and the
    /// writes.
    pub(crate) fn converge(
        &mut self,
        config: &Config,
        services: &[Service],
        nodes: &[Node],
    ) -> (Plan, Vec<String>) {
        let from = self.log.len();
        for round in 0..5 {
            let plan = plan(config, services, nodes, &self.read(config, services));
            if plan.actions.is_empty() {
                assert!(
                    plan.deferred.is_empty(),
                    "nothing to do, but {:?}",
                    plan.deferred
                );
                return (plan, self.log[from..].to_vec());
            }
            assert!(
                round < 4,
                "not done after four rounds: {:#?}",
                summary(&plan)
            );
            self.execute(&plan);
        }
        unreachable!("the last round returns or fails");
    }

    /// Returns the snapshot as a reader sees it: the same content in another order and case.
    pub(crate) fn seen(&mut self) -> Snapshot {
        self.echo.of(&self.snapshot)
    }

    /// Returns the part of the resources that is read for a plan of these services.
    pub(crate) fn read(&mut self, config: &Config, services: &[Service]) -> Snapshot {
        let mut seen = self.seen();
        let reads = Reads::of(config, services, &seen.load_balancers);
        seen.public_ips
            .retain(|address| reads.keeps(config, address));
        seen
    }

    pub(crate) fn execute(&mut self, plan: &Plan) {
        for edge in &plan.edges {
            assert!(
                edge.before < edge.after && edge.after < plan.actions.len(),
                "{edge:?}"
            );
        }
        let mut targets = BTreeSet::new();
        for action in &plan.actions {
            let new = targets.insert((action.operation.verb(), action.operation.target().cloned()));
            assert!(new, "written twice in one plan: {}", action.operation);
            assert!(
                !action.reasons.is_empty(),
                "no reason: {}",
                action.operation
            );
            self.apply(action)
                .unwrap_or_else(|why| panic!("{}: {why}\n{:#?}", action.operation, summary(plan)));
        }
    }

    pub(crate) fn apply(&mut self, action: &Action) -> Result<(), String> {
        self.version += 1;
        match &action.operation {
            Operation::PutPublicIp { resource, if_match } => {
                self.put_public_ip(resource, if_match.as_deref())
            }
            Operation::DeletePublicIp { id, .. } => self.delete_public_ip(id),
            Operation::PutLoadBalancer { resource, if_match } => {
                self.put_load_balancer(resource, if_match.as_deref())
            }
            Operation::DeleteLoadBalancer { id, .. } => self.delete_load_balancer(id),
            Operation::PutSecurityGroup { resource, if_match } => {
                self.put_security_group(resource, if_match.as_deref())
            }
            Operation::PutNetworkInterface { resource, .. } => self.put_interface(resource),
            Operation::PutPool { resource, .. } => {
                let id = resource.id.clone().ok_or("a pool without an id")?;
                let balancer = id.parent().ok_or("a pool of nobody")?;
                let mut changed = self.balancer(&balancer).ok_or("no load balancer")?.clone();
                let mut pools = changed.properties.backend_address_pools.iter_mut();
                let pool = pools
                    .find(|pool| pool.is_named(&resource.name))
                    .ok_or("no such pool")?;
                pool.properties = resource.properties.clone();
                let etag = changed.etag.clone();
                self.put_load_balancer(&changed, etag.as_deref())
            }
            Operation::PutScaleSet { resource, .. } => self.put_scale_set(resource),
            Operation::UpgradeScaleSetInstances { id, instance_ids } => {
                self.upgrade(id, instance_ids)
            }
        }?;
        self.log.push(action.operation.to_string());
        Ok(())
    }

    fn balancer(&self, id: &ArmId) -> Option<&LoadBalancer> {
        self.snapshot
            .load_balancers
            .iter()
            .find(|balancer| balancer.id.as_ref() == Some(id))
    }

    fn etag(&self) -> Option<String> {
        Some(format!("W/\"{}\"", self.version))
    }

    fn put_public_ip(
        &mut self,
        resource: &PublicIpAddress,
        if_match: Option<&str>,
    ) -> Result<(), String> {
        let id = resource.id.clone().ok_or("no id")?;
        let existing = self
            .snapshot
            .public_ips
            .iter()
            .position(|ip| ip.id.as_ref() == Some(&id));
        let mut resource = resource.clone();
        resource.etag = self.etag();
        resource
            .sku
            .get_or_insert_with(|| Sku::named(SkuName::Basic));
        match existing {
            Some(at) => {
                let old = &self.snapshot.public_ips[at];
                matches(if_match, old.etag.as_deref())?;
                resource
                    .properties
                    .ip_address
                    .clone_from(&old.properties.ip_address);
                resource
                    .properties
                    .ip_configuration
                    .clone_from(&old.properties.ip_configuration);
                self.snapshot.public_ips[at] = resource;
            }
            None => {
                matches(if_match, None)?;
                self.allocated += 1;
                let address = format!("20.0.{}.{}", self.allocated / 250, self.allocated % 250 + 1);
                resource.properties.ip_address = Some(address);
                self.snapshot.public_ips.push(resource);
            }
        }
        Ok(())
    }

    fn delete_public_ip(&mut self, id: &ArmId) -> Result<(), String> {
        let used = self.snapshot.load_balancers.iter().any(|balancer| {
            let frontends = &balancer.properties.frontend_ip_configurations;
            frontends.iter().any(|frontend| {
                SubResource::leads_to(frontend.properties.public_ip_address.as_ref(), id)
            })
        });
        if used {
            return Err("PublicIPAddressCannotBeDeleted".to_owned());
        }
        self.snapshot
            .public_ips
            .retain(|ip| ip.id.as_ref() != Some(id));
        Ok(())
    }

    fn put_load_balancer(
        &mut self,
        resource: &LoadBalancer,
        if_match: Option<&str>,
    ) -> Result<(), String> {
        let id = resource.id.clone().ok_or("no id")?;
        let mut resource = resource.clone();
        matches(
            if_match,
            self.balancer(&id).and_then(|old| old.etag.as_deref()),
        )?;
        resource.etag = self.etag();
        resource
            .sku
            .get_or_insert_with(|| Sku::named(SkuName::Basic));
        self.check(&resource, &id)?;
        self.fill_in(&mut resource, &id);
        self.snapshot
            .load_balancers
            .retain(|balancer| balancer.id.as_ref() != Some(&id));
        self.snapshot.load_balancers.push(resource);
        self.refer_back();
        Ok(())
    }

    /// Fills in defaults, and the addresses that the resource manager chooses.
    fn fill_in(&mut self, resource: &mut LoadBalancer, id: &ArmId) {
        let etag = resource.etag.clone();
        let properties = &mut resource.properties;
        for frontend in &mut properties.frontend_ip_configurations {
            frontend.id = Some(id.child("frontendIPConfigurations", &frontend.name));
            frontend.etag.clone_from(&etag);
            let inner = &mut frontend.properties;
            inner
                .private_ip_allocation_method
                .get_or_insert(AllocationMethod::Dynamic);
            if inner.subnet.is_some() && inner.private_ip_address.is_none() {
                self.allocated += 1;
                let address = format!(
                    "10.0.{}.{}",
                    100 + self.allocated / 250,
                    self.allocated % 250 + 1
                );
                inner.private_ip_address = Some(address);
            }
        }
        for pool in &mut properties.backend_address_pools {
            pool.id = Some(id.child("backendAddressPools", &pool.name));
            pool.etag.clone_from(&etag);
        }
        for probe in &mut properties.probes {
            probe.id = Some(id.child("probes", &probe.name));
            probe.properties.number_of_probes.get_or_insert(1);
            probe.properties.probe_threshold.get_or_insert(1);
        }
        for rule in &mut properties.load_balancing_rules {
            rule.id = Some(id.child("loadBalancingRules", &rule.name));
            rule.properties.idle_timeout_in_minutes.get_or_insert(4);
            rule.properties.enable_tcp_reset.get_or_insert(false);
            rule.properties.disable_outbound_snat.get_or_insert(false);
        }
    }

    fn delete_load_balancer(&mut self, id: &ArmId) -> Result<(), String> {
        let model = |set: &ScaleSet| {
            let profile = &set.properties.virtual_machine_profile.network_profile;
            serde_json::to_string(profile)
                .unwrap_or_default()
                .to_lowercase()
        };
        let name = format!("{}/", id.as_str().to_lowercase());
        if self
            .snapshot
            .scale_sets
            .iter()
            .any(|set| model(set).contains(&name))
        {
            return Err("LoadBalancerInUseByVirtualMachineScaleSet".to_owned());
        }
        self.snapshot
            .load_balancers
            .retain(|balancer| balancer.id.as_ref() != Some(id));
        for interface in &mut self.snapshot.network_interfaces {
            for configuration in &mut interface.properties.ip_configurations {
                configuration
                    .properties
                    .load_balancer_backend_address_pools
                    .retain(|pool| !pool.id.as_ref().is_some_and(|pool| pool.is_within(id)));
            }
        }
        self.refer_back();
        Ok(())
    }

    /// Updates the references from public addresses to the frontends that use them.
    fn refer_back(&mut self) {
        let mut users: HashMap<ArmId, ArmId> = HashMap::new();
        for balancer in &self.snapshot.load_balancers {
            for frontend in &balancer.properties.frontend_ip_configurations {
                let public = frontend
                    .properties
                    .public_ip_address
                    .as_ref()
                    .and_then(|r| r.id.clone());
                if let (Some(public), Some(own)) = (public, frontend.id.clone()) {
                    users.insert(public, own);
                }
            }
        }
        let ours = |id: &ArmId| id.as_str().to_lowercase().contains("/loadbalancers/");
        for public in &mut self.snapshot.public_ips {
            let own = public.id.as_ref().and_then(|id| users.get(id)).cloned();
            let stranger = public
                .properties
                .ip_configuration
                .as_ref()
                .and_then(|r| r.id.clone());
            if own.is_some() || stranger.as_ref().is_some_and(ours) {
                public.properties.ip_configuration = own.map(SubResource::to);
            }
        }
    }

    fn put_security_group(
        &mut self,
        resource: &NetworkSecurityGroup,
        if_match: Option<&str>,
    ) -> Result<(), String> {
        let old = self
            .snapshot
            .security_group
            .as_ref()
            .ok_or("never created")?;
        matches(if_match, old.etag.as_deref())?;
        let mut names = HashSet::new();
        let mut priorities = HashSet::new();
        for rule in &resource.properties.security_rules {
            let inner = &rule.properties;
            if rule.name.len() > 80 || !names.insert(rule.name.to_lowercase()) {
                return Err(format!("InvalidResourceName {}", rule.name));
            }
            if !priorities.insert((inner.direction.clone(), inner.priority)) {
                return Err(format!("SecurityRuleConflict {}", rule.name));
            }
            let one_of = [
                (
                    inner.source_address_prefix.is_some(),
                    inner.source_address_prefixes.is_empty(),
                ),
                (
                    inner.destination_address_prefix.is_some(),
                    inner.destination_address_prefixes.is_empty(),
                ),
                (
                    inner.destination_port_range.is_some(),
                    inner.destination_port_ranges.is_empty(),
                ),
            ];
            if one_of.iter().any(|(single, no_list)| single != no_list) {
                return Err(format!("one text or a list: {}", rule.name));
            }
        }
        if resource.properties.security_rules.len() > 1000 {
            return Err("SecurityRuleCountLimitReached".to_owned());
        }
        let mut resource = resource.clone();
        resource.etag = self.etag();
        self.snapshot.security_group = Some(resource);
        Ok(())
    }

    fn put_interface(&mut self, resource: &NetworkInterface) -> Result<(), String> {
        for configuration in &resource.properties.ip_configurations {
            for pool in &configuration.properties.load_balancer_backend_address_pools {
                self.check_pool(pool)?;
            }
        }
        let interfaces = &mut self.snapshot.network_interfaces;
        let old = interfaces
            .iter_mut()
            .find(|old| old.id == resource.id)
            .ok_or("no such interface")?;
        *old = resource.clone();
        Ok(())
    }

    fn check_pool(&self, pool: &SubResource) -> Result<(), String> {
        let id = pool.id.as_ref().ok_or("a pool without an id")?;
        let balancer = id
            .parent()
            .and_then(|of| self.balancer(&of))
            .ok_or_else(|| format!("no balancer of {id}"))?;
        let mut pools = balancer.properties.backend_address_pools.iter();
        if pools.any(|pool| pool.is_named(id.name())) {
            Ok(())
        } else {
            Err(format!("no pool {id}"))
        }
    }

    fn put_scale_set(&mut self, resource: &ScaleSet) -> Result<(), String> {
        for interface in &resource
            .properties
            .virtual_machine_profile
            .network_profile
            .network_interface_configurations
        {
            for configuration in &interface.properties.ip_configurations {
                for pool in &configuration.properties.load_balancer_backend_address_pools {
                    self.check_pool(pool)?;
                }
            }
        }
        let sets = &mut self.snapshot.scale_sets;
        let old = sets
            .iter_mut()
            .find(|old| old.id == resource.id)
            .ok_or("no such scale set")?;
        *old = resource.clone();
        Ok(())
    }

    fn upgrade(&mut self, id: &ArmId, instances: &BTreeSet<String>) -> Result<(), String> {
        let set = self
            .snapshot
            .scale_sets
            .iter()
            .find(|set| set.id.as_ref() == Some(id))
            .ok_or("no set")?;
        let model = set
            .properties
            .virtual_machine_profile
            .network_profile
            .clone();
        for instance in &mut self.snapshot.scale_set_instances {
            let own = instance.id.as_ref().is_some_and(|own| own.is_within(id));
            if own
                && instance
                    .id
                    .as_ref()
                    .is_some_and(|own| instances.contains(own.name()))
            {
                instance.properties.network_profile_configuration = Some(model.clone());
                instance.properties.latest_model_applied = Some(true);
            }
        }
        Ok(())
    }
}

fn matches(if_match: Option<&str>, etag: Option<&str>) -> Result<(), String> {
    if if_match == etag {
        Ok(())
    } else {
        Err(format!("PreconditionFailed: {if_match:?} is not {etag:?}"))
    }
}

pub(crate) fn summary(plan: &Plan) -> Vec<String> {
    let actions = plan
        .actions
        .iter()
        .map(|action| format!("{}: {:?}", action.operation, action.reasons));
    let errors = plan
        .services
        .iter()
        .filter_map(|(key, o)| Some(format!("{key}: {}", o.error.as_ref()?)));
    actions
        .chain(errors)
        .chain(plan.deferred.iter().map(|d| format!("deferred {d:?}")))
        .collect()
}
