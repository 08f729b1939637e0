//! The migration from load balancers of SKU Basic to SKU Standard, in stages that are carried out one by one.
//!
//! Azure cannot change the SKU of a load balancer, and can change that of a public address only while it is
//! unused. So the load balancers are deleted, the addresses become Standard, and the load balancers are
//! created again with the same addresses.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use serde::{Serialize, Serializer};
use sha2::{Digest, Sha256};

use super::tags::Owners;
use super::{
    Action, FieldChange, Forecast, Memory, Operation, Plan, Request, Snapshot, forecast_from,
    machines, simulate,
};
use crate::annotations::{self, keys};
use crate::config::{Config, PoolMembership};
use crate::naming;
use crate::node::Node;
use crate::resources::{AllocationMethod, LoadBalancer, PublicIpAddress, Sku, SkuName};
use crate::service::{Service, ServiceKey};

/// The number of characters of a digest.
const DIGEST: usize = 12;

/// The rest of the migration from Basic to Standard.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
#[non_exhaustive]
pub struct Migration {
    /// The remaining stages in order. Empty: everything is Standard.
    pub stages: Vec<MigrationStage>,
    /// The obstacles to the next stage.
    pub obstacles: Vec<String>,
    /// The differences and oddities afterwards.
    pub warnings: Vec<String>,
}

/// A stage of the migration.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct MigrationStage {
    /// The kind of the stage.
    pub kind: StageKind,
    /// The writes of the stage.
    pub writes: Forecast,
}

/// The kinds of stages, in order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum StageKind {
    /// Public addresses become static, so that they keep their values while unused.
    FixAddresses,
    /// The load balancers are deleted.
    TakeDown,
    /// The public addresses become Standard.
    UpgradeAddresses,
    /// The load balancers are created again.
    BuildUp,
}

impl StageKind {
    /// Returns the title of the stage.
    pub const fn title(self) -> &'static str {
        match self {
            Self::FixAddresses => "make public addresses static, so that they keep their values",
            Self::TakeDown => "delete the load balancers of sku Basic",
            Self::UpgradeAddresses => "turn the public addresses into sku Standard",
            Self::BuildUp => "make the load balancers again, of sku Standard",
        }
    }

    /// Returns the effect on traffic.
    pub const fn traffic(self) -> &'static str {
        match self {
            Self::FixAddresses => "goes on",
            Self::TakeDown => {
                "STOPS for all services of these load balancers, until the last stage is done"
            }
            Self::UpgradeAddresses => "is still stopped",
            Self::BuildUp => "comes back when it is done",
        }
    }

    /// Returns the way to roll back.
    pub const fn way_back(self) -> &'static str {
        match self {
            Self::FixAddresses => "none is needed",
            Self::TakeDown => {
                "`apply` with loadBalancerSku basic, which makes them again where Azure still creates that sku: it has retired it"
            }
            Self::UpgradeAddresses => {
                "none: Azure turns no address of sku Standard into Basic; go on"
            }
            Self::BuildUp => "none",
        }
    }
}

impl MigrationStage {
    /// Returns a text that stays the same as long as the stage makes the same writes to the same resources.
    pub fn digest(&self) -> String {
        // Only the operations count, so that a reworded reason keeps the digest.
        let operations: Vec<_> = self
            .writes
            .actions()
            .map(|(_, action)| &action.operation)
            .collect();
        let text = serde_json::to_string(&(self.kind, operations)).unwrap_or_default();
        let hash = Sha256::digest(text.as_bytes());
        let hex = hash.iter().map(|byte| format!("{byte:02x}"));
        hex.collect::<String>().chars().take(DIGEST).collect()
    }

    fn new(kind: StageKind, actions: Vec<Action>) -> Self {
        let plan = Plan {
            actions,
            ..Plan::default()
        };
        let writes = Forecast {
            stages: vec![plan],
            end: Plan::default(),
        };
        Self { kind, writes }
    }
}

impl fmt::Display for StageKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.title())
    }
}

impl Serialize for MigrationStage {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        #[derive(Serialize)]
        #[serde(rename_all = "camelCase")]
        struct MigrationDocument<'a> {
            stage: StageKind,
            digest: String,
            title: &'static str,
            traffic: &'static str,
            way_back: &'static str,
            writes: &'a Forecast,
        }
        MigrationDocument {
            stage: self.kind,
            digest: self.digest(),
            title: self.kind.title(),
            traffic: self.kind.traffic(),
            way_back: self.kind.way_back(),
            writes: &self.writes,
        }
        .serialize(serializer)
    }
}

/// Plans the rest of the migration from Basic to Standard, for a configuration of SKU Standard. Only the
/// first stage is based on the current state; the later ones are a preview.
pub fn migrate_to_standard(
    config: &Config,
    services: &[Service],
    nodes: &[Node],
    current: &Snapshot,
    rounds: u32,
) -> Migration {
    let mut migration = Migration::default();
    if !config.is_standard() {
        migration.obstacles.push(
            "loadBalancerSku is basic; write standard, since that is the sku the services will have"
                .to_owned(),
        );
        return migration;
    }
    let mut snapshot = current.clone();
    let wanted = WantedServices::of(config, services);
    let balancers: Vec<_> = current
        .load_balancers
        .iter()
        .filter(|one| is_basic(one.sku.as_ref()) && is_ours(config, one))
        .collect();
    for balancer in &balancers {
        migration
            .obstacles
            .extend(obstacles(balancer, current, &wanted));
        migration.warnings.extend(moves(balancer, &wanted));
    }
    // Current membership does not matter: the pools are deleted with the load balancers.
    let is_anybody_there = nodes
        .iter()
        .any(|node| machines::can_be_member(config, node, false));
    if !is_anybody_there && balancers.iter().any(|one| !wanted.on(one).is_empty()) {
        migration.obstacles.push(format!(
            "the load balancers would return with empty pools, and their services would not respond: {}",
            machines::nobody(nodes.len())
        ));
    }
    let is_concerned = |address: &PublicIpAddress| {
        is_basic(address.sku.as_ref()) && wanted.uses(config, &balancers, address)
    };
    let basic = |snapshot: &Snapshot| -> Vec<PublicIpAddress> {
        snapshot
            .public_ips
            .iter()
            .filter(|one| is_concerned(one))
            .cloned()
            .collect()
    };
    let mut stages = Vec::new();
    let dynamic = basic(&snapshot)
        .into_iter()
        .filter(|one| one.properties.public_ip_allocation_method != Some(AllocationMethod::Static));
    stages.push((
        StageKind::FixAddresses,
        dynamic.map(fixed).collect::<Vec<_>>(),
    ));
    let gone = balancers.iter().map(|one| taken_down(one, &wanted));
    stages.push((StageKind::TakeDown, gone.collect()));
    for (kind, actions) in stages {
        carry(&mut migration, &mut snapshot, kind, actions);
    }
    // The addresses are read again, since the first stage made them static.
    let upgraded = basic(&snapshot).into_iter().map(upgraded).collect();
    carry(
        &mut migration,
        &mut snapshot,
        StageKind::UpgradeAddresses,
        upgraded,
    );
    // Machines are only needed to find what prevents the deletion of load balancers.
    if config.backend_pool_type == PoolMembership::Address {
        (snapshot.network_interfaces, snapshot.scale_sets) = (Vec::new(), Vec::new());
        snapshot.scale_set_instances = Vec::new();
        snapshot.virtual_machines = Vec::new();
    }
    // The rest is an ordinary plan, without memory: the load balancers are new.
    let (request, memory) = (Request::EVERYTHING, Memory::default());
    let writes = forecast_from(config, &request, services, nodes, snapshot, memory, rounds);
    let failures = writes
        .services()
        .filter_map(|(key, outcome)| Some((key.clone(), outcome.error?)));
    let failures = failures.map(|(key, error)| format!("{key} would not be restored: {error}"));
    migration.obstacles.extend(failures.collect::<Vec<_>>());
    if writes.actions().next().is_some() {
        let odd = writes.warnings();
        let odd = odd.iter().map(|warning| match &warning.service {
            Some(service) => format!("{service}: {}", warning.what),
            None => warning.what.clone(),
        });
        migration.warnings.extend(odd);
        let kind = StageKind::BuildUp;
        migration.stages.push(MigrationStage { kind, writes });
    }
    let is_told = |one: &String| one.contains("securityGroupName");
    if config.security_group_name.is_none() && !migration.warnings.iter().any(is_told) {
        migration.warnings.push(
            "the configuration has no securityGroupName, and a load balancer of sku Standard admits \
             no traffic without one".to_owned(),
        );
    }
    migration
}

fn carry(
    migration: &mut Migration,
    snapshot: &mut Snapshot,
    kind: StageKind,
    actions: Vec<Action>,
) {
    for action in &actions {
        simulate::apply(snapshot, &action.operation);
    }
    if !actions.is_empty() {
        migration.stages.push(MigrationStage::new(kind, actions));
    }
}

fn is_basic(sku: Option<&Sku>) -> bool {
    // A resource without a sku has sku Basic.
    sku.and_then(|sku| sku.name.as_ref())
        .is_none_or(|name| *name == SkuName::Basic)
}

fn is_ours(config: &Config, balancer: &LoadBalancer) -> bool {
    let mut pools = balancer.properties.backend_address_pools.iter();
    pools.any(|pool| pool.is_named(&config.cluster_name))
}

/// The services that request a load balancer, by the prefix of their names.
struct WantedServices<'s> {
    by_prefix: BTreeMap<String, &'s Service>,
}

impl<'s> WantedServices<'s> {
    fn of(config: &Config, services: &'s [Service]) -> Self {
        let wanted = services
            .iter()
            .filter(|one| config.serves(one) && one.is_wanted());
        let by_prefix = wanted.map(|one| {
            let prefix = naming::prefix(&one.uid_in(&config.cluster_name));
            (prefix.to_ascii_lowercase(), one)
        });
        Self {
            by_prefix: by_prefix.collect(),
        }
    }

    fn owner(&self, name: &str) -> Option<&'s Service> {
        self.by_prefix.get(&naming::owner_of(name)).copied()
    }

    fn on(&self, balancer: &LoadBalancer) -> BTreeSet<ServiceKey> {
        let rules = &balancer.properties.load_balancing_rules;
        rules
            .iter()
            .filter_map(|rule| Some(self.owner(&rule.name)?.key.clone()))
            .collect()
    }

    /// Returns true if a frontend of `balancers` uses `address`, or if its tags or a service show that one did until an
    /// earlier stage.
    fn uses(
        &self,
        config: &Config,
        balancers: &[&LoadBalancer],
        address: &PublicIpAddress,
    ) -> bool {
        let frontends = balancers
            .iter()
            .flat_map(|one| &one.properties.frontend_ip_configurations);
        let mut used =
            frontends.filter_map(|one| one.properties.public_ip_address.as_ref()?.id.as_ref());
        if used.any(|id| address.id.as_ref() == Some(id)) {
            return true;
        }
        if address.properties.ip_configuration.is_some() {
            // Another resource uses the address.
            return false;
        }
        let tagged = Owners::of(address).is_some_and(|owners| {
            owners.may_be_of(config)
                && self
                    .by_prefix
                    .values()
                    .any(|one| owners.services.contains(&one.key))
        });
        tagged
            || self
                .by_prefix
                .iter()
                .any(|(prefix, service)| asks_for(config, prefix, service, address))
    }
}

fn asks_for(config: &Config, prefix: &str, service: &Service, address: &PublicIpAddress) -> bool {
    let annotated = |key: &str| service.annotations.get(key).map(String::as_str);
    let name = naming::public_ip(&config.cluster_name, prefix);
    let value = address.properties.ip_address.as_deref();
    let wished = service
        .load_balancer_ip
        .as_deref()
        .or_else(|| annotated(keys::IPV4));
    address.name.eq_ignore_ascii_case(&name)
        || annotated(keys::PUBLIC_IP_NAME)
            .is_some_and(|name| address.name.eq_ignore_ascii_case(name))
        || (wished.is_some() && wished == value)
}

/// Lists the parts that would be lost with a load balancer, and those that prevent its deletion.
fn obstacles(
    balancer: &LoadBalancer,
    current: &Snapshot,
    wanted: &WantedServices<'_>,
) -> Vec<String> {
    let (name, properties) = (&balancer.name, &balancer.properties);
    let mut found = Vec::new();
    let frontends = properties
        .frontend_ip_configurations
        .iter()
        .map(|one| &one.name);
    let rules = properties.load_balancing_rules.iter().map(|one| &one.name);
    let foreign: BTreeSet<_> = frontends
        .chain(rules)
        .filter(|name| wanted.owner(name).is_none())
        .collect();
    found.extend(foreign.iter().map(|part| {
        format!("load balancer {name} has {part}, which belongs to no service and would be lost; remove it first")
    }));
    let others = [
        ("inbound NAT rules", properties.inbound_nat_rules.len()),
        ("inbound NAT pools", properties.inbound_nat_pools.len()),
        ("outbound rules", properties.outbound_rules.len()),
        (
            "other pools",
            properties.backend_address_pools.len().saturating_sub(1),
        ),
    ];
    let others = others.iter().filter(|(_, count)| *count > 0);
    found.extend(others.map(|(what, _)| {
        format!("load balancer {name} has {what}, which would be lost; remove them first, and make them again afterwards")
    }));
    let Some(id) = &balancer.id else {
        return found;
    };
    let pool = format!("{id}/backendAddressPools/").to_ascii_lowercase();
    // A scale set may name the pool anywhere in its model, so the whole text is searched.
    for set in &current.scale_sets {
        let text = serde_json::to_string(set)
            .unwrap_or_default()
            .to_ascii_lowercase();
        if text.contains(&pool) {
            let set = &set.name;
            found.push(format!(
                "scale set {set} has a pool of load balancer {name} in its model, so Azure does not delete that; take the pool out of the model and upgrade the machines first"
            ));
        }
    }
    found
}

/// Lists the internal addresses that will be chosen again, since no service requests them.
fn moves(balancer: &LoadBalancer, wanted: &WantedServices<'_>) -> Vec<String> {
    let frontends = &balancer.properties.frontend_ip_configurations;
    let internal = frontends.iter().filter_map(|one| {
        let service = wanted.owner(&one.name)?;
        let address = one.properties.private_ip_address.as_deref()?;
        let is_asked = service.load_balancer_ip.is_some() || service.annotations.contains_key(keys::IPV4);
        (annotations::is_internal(service) && !is_asked).then(|| {
            let (key, annotation) = (&service.key, keys::IPV4);
            format!("{key} may get another internal address than {address}; to keep it, write {annotation}: \"{address}\" into the service before the load balancer is deleted")
        })
    });
    internal.collect()
}

fn change(path: &str, from: Option<&str>, to: &str) -> FieldChange {
    FieldChange {
        path: path.to_owned(),
        from: from.map(Into::into),
        to: Some(to.into()),
    }
}

fn put(resource: PublicIpAddress, reason: &str, changes: Vec<FieldChange>) -> Action {
    Action {
        services: Owners::of(&resource)
            .map(|owners| owners.services)
            .unwrap_or_default(),
        operation: Operation::PutPublicIp {
            if_match: resource.etag.clone(),
            resource: Box::new(resource),
        },
        reasons: vec![reason.to_owned()],
        changes,
        sweeps: false,
        members: BTreeSet::new(),
    }
}

fn fixed(mut resource: PublicIpAddress) -> Action {
    let before = resource.properties.public_ip_allocation_method.take();
    let before = before.map(|method| method.to_string());
    resource.properties.public_ip_allocation_method = Some(AllocationMethod::Static);
    let path = "publicIPAllocationMethod";
    let changes = vec![change(path, before.as_deref(), "Static")];
    put(
        resource,
        "an address that is not static is lost when its load balancer goes",
        changes,
    )
}

fn upgraded(mut resource: PublicIpAddress) -> Action {
    resource.sku = Some(Sku::named(SkuName::Standard));
    let changes = vec![change("sku.name", Some("Basic"), "Standard")];
    put(
        resource,
        "a load balancer of sku Standard takes no other address",
        changes,
    )
}

fn taken_down(balancer: &LoadBalancer, wanted: &WantedServices<'_>) -> Action {
    let frontends = balancer.properties.frontend_ip_configurations.iter();
    let changes = frontends.map(|one| FieldChange {
        path: format!("frontendIPConfigurations[{}]", one.name),
        from: serde_json::to_value(one).ok(),
        to: None,
    });
    Action {
        operation: Operation::DeleteLoadBalancer {
            id: balancer.id.clone().unwrap_or_default(),
            if_match: balancer.etag.clone(),
        },
        reasons: vec!["Azure turns no load balancer of sku Basic into Standard".to_owned()],
        changes: changes.collect(),
        services: wanted.on(balancer),
        sweeps: false,
        members: BTreeSet::new(),
    }
}
