//! The requested services and the existing resources, shared by all stages of a plan.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::time::Duration;

use super::machines;
use super::tags::Owners;
use super::{PlanError, Request, Snapshot};
use crate::annotations::{self, Intent};
use crate::config::{Config, OrphanPolicy, PoolMembership};
use crate::naming;
use crate::node::Node;
use crate::resources::{
    ArmId, BackendAddress, FrontendIpConfiguration, LoadBalancer, LoadBalancingRule,
    PublicIpAddress,
};
use crate::service::{Service, ServiceKey};

/// A service: an index into [`ClusterState::subjects`].
pub(super) type SubjectIndex = usize;

/// The plan for a service's resources.
#[derive(Clone, Debug)]
pub(super) enum Standing {
    /// The resources are changed to match the request.
    Requested(Box<Intent>),
    /// The resources are removed.
    Unwanted,
    /// The resources stay as they are, because the request cannot be met or is out of scope.
    Held,
}

/// A service, as the planner sees it.
#[derive(Debug)]
pub(super) struct Subject<'a> {
    pub(super) service: &'a Service,
    pub(super) prefix: String,
    pub(super) standing: Standing,
}

impl Subject<'_> {
    pub(super) fn key(&self) -> &ServiceKey {
        &self.service.key
    }

    pub(super) fn intent(&self) -> Option<&Intent> {
        match &self.standing {
            Standing::Requested(intent) => Some(intent),
            Standing::Unwanted | Standing::Held => None,
        }
    }

    pub(super) fn is_held(&self) -> bool {
        matches!(self.standing, Standing::Held)
    }

    pub(super) fn is_wanted(&self) -> bool {
        matches!(self.standing, Standing::Requested(_))
    }
}

/// The owner of a name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Owner {
    /// A service.
    Subject(SubjectIndex),
    /// A service that no longer exists.
    Orphan,
    /// The name does not belong to this cluster.
    Foreign,
}

/// The requested services and the existing resources.
#[derive(Debug)]
pub(super) struct ClusterState<'a> {
    pub(super) config: &'a Config,
    pub(super) request: &'a Request,
    pub(super) nodes: Vec<&'a Node>,
    pub(super) snapshot: &'a Snapshot,
    /// The services, ordered by key.
    pub(super) subjects: Vec<Subject<'a>>,
    /// The services with duplicate keys. Only the first of each by UID counts.
    pub(super) repeated: BTreeMap<&'a ServiceKey, Vec<&'a Service>>,
    by_prefix: HashMap<String, SubjectIndex>,
    by_key: HashMap<&'a ServiceKey, SubjectIndex>,
    /// The services in the tags of this cluster's public addresses.
    tagged: HashSet<ServiceKey>,
    /// Public addresses by id.
    public_ips: HashMap<&'a ArmId, &'a PublicIpAddress>,
    /// The frontends that refer to each public address.
    referrers: HashMap<&'a ArmId, (&'a LoadBalancer, &'a FrontendIpConfiguration)>,
    /// The frontends by the lower-case prefix of their owner.
    frontends: HashMap<String, Vec<(&'a LoadBalancer, &'a FrontendIpConfiguration)>>,
    /// The frontends of other owners that a service's rules lead to.
    borrowed: HashMap<SubjectIndex, Vec<(&'a LoadBalancer, &'a FrontendIpConfiguration)>>,
}

impl<'a> ClusterState<'a> {
    /// Collects the inputs of a plan. `failures` are the services whose request cannot be met, to which new
    /// ones are added.
    pub(super) fn new(
        config: &'a Config,
        request: &'a Request,
        services: &'a [Service],
        nodes: &'a [Node],
        snapshot: &'a Snapshot,
        failures: &mut BTreeMap<ServiceKey, PlanError>,
    ) -> Self {
        // Sorted input makes the plan independent of the order of services.
        let mut sorted: Vec<_> = services.iter().collect();
        sorted.sort_by(|a, b| (&a.key, &a.uid).cmp(&(&b.key, &b.uid)));
        let mut repeated: BTreeMap<_, Vec<&Service>> = BTreeMap::new();
        sorted.dedup_by(|a, b| {
            let (a, b) = (*a, *b);
            let is_same = a.key == b.key;
            if is_same {
                repeated.entry(&b.key).or_insert_with(|| vec![b]).push(a);
            }
            is_same
        });
        let mut by_prefix: HashMap<String, SubjectIndex> = HashMap::new();
        let mut subjects: Vec<Subject<'a>> = Vec::with_capacity(sorted.len());
        let mut copies = Vec::new();
        for service in sorted {
            let uid = service.uid_in(&config.cluster_name);
            let prefix = naming::prefix(&uid);
            if let Some(first) = by_prefix.get(&prefix.to_ascii_lowercase()) {
                // It is unknown which one is the copy, so both stay as they are.
                let mut fail = |of: &ServiceKey, other: &ServiceKey| {
                    let error = PlanError::DuplicateUid {
                        uid: uid.clone().into_owned(),
                        other: other.clone(),
                    };
                    failures.entry(of.clone()).or_insert(error);
                };
                if let Some(subject) = subjects.get_mut(*first) {
                    subject.standing = Standing::Held;
                    fail(&service.key, subject.key());
                    fail(subject.key(), &service.key);
                }
                copies.push((&service.key, *first));
                continue;
            }
            // Names are compared ignoring case, as by the resource manager.
            by_prefix.insert(prefix.to_ascii_lowercase(), subjects.len());
            let standing = standing(config, request, service, failures);
            subjects.push(Subject {
                service,
                prefix,
                standing,
            });
        }
        let by_key = subjects
            .iter()
            .enumerate()
            .map(|(index, subject)| (&subject.service.key, index))
            .chain(copies)
            .collect();
        // Of two nodes of the same name, the first in this order counts: a ready one.
        let mut nodes: Vec<_> = nodes.iter().collect();
        nodes.sort_by(|a, b| {
            (&a.name, a.readiness, &a.addresses).cmp(&(&b.name, b.readiness, &b.addresses))
        });
        nodes.dedup_by(|a, b| a.name == b.name);
        let mut world = Self {
            config,
            request,
            nodes,
            snapshot,
            subjects,
            repeated,
            by_prefix,
            by_key,
            tagged: HashSet::new(),
            public_ips: HashMap::new(),
            referrers: HashMap::new(),
            frontends: HashMap::new(),
            borrowed: HashMap::new(),
        };
        world.index(snapshot);
        world
    }

    fn index(&mut self, snapshot: &'a Snapshot) {
        for address in &snapshot.public_ips {
            if let Some(id) = &address.id {
                self.public_ips.insert(id, address);
            }
        }
        for balancer in &snapshot.load_balancers {
            for frontend in &balancer.properties.frontend_ip_configurations {
                let reference = frontend.properties.public_ip_address.as_ref();
                if let Some(id) = reference.and_then(|reference| reference.id.as_ref()) {
                    self.referrers.insert(id, (balancer, frontend));
                }
                // A frontend on another cluster's load balancer may have a name like ours.
                if !self.may_be_ours(balancer) {
                    continue;
                }
                let owner = naming::owner_of(&frontend.name);
                self.frontends
                    .entry(owner)
                    .or_default()
                    .push((balancer, frontend));
            }
        }
        self.borrowed = self.find_borrowed(snapshot);
        // The order of Azure's lists is arbitrary and must not influence the plan.
        for own in self
            .frontends
            .values_mut()
            .chain(self.borrowed.values_mut())
        {
            own.sort_by_cached_key(|(balancer, frontend)| {
                [&balancer.name, &frontend.name].map(|name| name.to_ascii_lowercase())
            });
        }
        let addresses = snapshot.public_ips.iter();
        let owned = addresses
            .filter_map(|address| Some((address.id.as_ref()?, Owners::of(address)?)))
            .filter(|(id, owners)| self.owns(id, owners));
        self.tagged = owned.flat_map(|(_, owners)| owners.services).collect();
    }

    /// Returns the frontends of other owners that services' rules lead to.
    fn find_borrowed(
        &self,
        snapshot: &'a Snapshot,
    ) -> HashMap<SubjectIndex, Vec<(&'a LoadBalancer, &'a FrontendIpConfiguration)>> {
        let mut borrowed = HashMap::<_, Vec<(&LoadBalancer, &FrontendIpConfiguration)>>::new();
        let ours = snapshot.load_balancers.iter();
        for balancer in ours.filter(|balancer| self.may_be_ours(balancer)) {
            let is_ours = self.is_ours(balancer);
            for rule in &balancer.properties.load_balancing_rules {
                let Owner::Subject(index) = self.owner(&rule.name, is_ours) else {
                    continue;
                };
                let Some(frontend) = frontend_of(balancer, rule) else {
                    continue;
                };
                let is_own = self.owner(&frontend.name, is_ours) == Owner::Subject(index);
                let list = borrowed.entry(index).or_default();
                let is_known = list.iter().any(|(_, known)| std::ptr::eq(*known, frontend));
                if !is_own && !is_known {
                    list.push((balancer, frontend));
                }
            }
        }
        borrowed
    }

    /// Returns true if a public address with these tags is this cluster's.
    ///
    /// In another resource group the cluster's name is not enough: clusters in other groups may have it as
    /// well, and most are called `kubernetes`. There the tag with the cluster's own group counts, or that a
    /// service of ours names the group or is reached there.
    pub(super) fn owns(&self, id: &ArmId, owners: &Owners) -> bool {
        let group = id.resource_group().unwrap_or_default();
        if !owners.may_be_of(self.config) {
            return false;
        }
        if group.eq_ignore_ascii_case(&self.config.resource_group)
            || owners.are_certainly_of(self.config)
        {
            return true;
        }
        // An address that one of this cluster's frontends uses is in use by this cluster, whatever its group.
        if let Some((balancer, frontend)) = self.referrer(id)
            && self.may_be_ours(balancer)
            && self.owner(&frontend.name, self.is_ours(balancer)) != Owner::Foreign
        {
            return true;
        }
        // Without such a proof, a tagged address counts if a service names its group, and its name fits the
        // service.
        let generated = naming::owner_of_public_ip(id.name());
        let mut subjects = owners
            .services
            .iter()
            .filter_map(|key| self.subjects.get(self.subject(key)?));
        subjects.any(|subject| {
            annotations::resource_group(subject.service)
                .is_some_and(|annotated| annotated.eq_ignore_ascii_case(group))
                && generated
                    .as_ref()
                    .is_none_or(|prefix| subject.prefix.eq_ignore_ascii_case(prefix))
        })
    }

    pub(super) fn subject(&self, key: &ServiceKey) -> Option<SubjectIndex> {
        self.by_key.get(key).copied()
    }

    /// Returns the services that request a load balancer, ordered by key.
    pub(super) fn wanted(&self) -> impl Iterator<Item = (SubjectIndex, &Subject<'a>, &Intent)> {
        self.subjects
            .iter()
            .enumerate()
            .filter_map(|(index, subject)| Some((index, subject, subject.intent()?)))
    }

    /// Returns true if a load balancer may have parts of this cluster: it has the cluster's pool or, before
    /// that exists, one of its names. Another cluster in the same resource group may have services with the
    /// same UIDs. Basic load balancers are named after sets of machines, which are not always known.
    pub(super) fn may_be_ours(&self, balancer: &LoadBalancer) -> bool {
        let cluster = &self.config.cluster_name;
        !self.config.is_standard()
            || self.is_ours(balancer)
            || [false, true]
                .iter()
                .any(|internal| balancer.is_named(&naming::load_balancer(cluster, None, *internal)))
    }

    /// Returns the owner of a name on a load balancer that may belong to this cluster. `ours` is true if it
    /// certainly does.
    pub(super) fn owner(&self, name: &str, ours: bool) -> Owner {
        let prefix = naming::owner_of(name);
        match self.by_prefix.get(&prefix) {
            Some(index) => Owner::Subject(*index),
            None if ours && naming::is_prefix_of_uuid(&prefix) => Owner::Orphan,
            None => Owner::Foreign,
        }
    }

    /// Returns true if a load balancer has the pool that this cluster creates on each of its own.
    pub(super) fn is_ours(&self, balancer: &LoadBalancer) -> bool {
        let mut pools = balancer.properties.backend_address_pools.iter();
        pools.any(|pool| pool.is_named(&self.config.cluster_name))
    }

    /// Returns true if resources of no service are removed.
    pub(super) fn sweeps(&self) -> bool {
        self.request.only.is_none()
            && !self.request.keeps_orphans
            && self.config.orphans == OrphanPolicy::Remove
    }

    pub(super) fn balancer(&self, name: &str) -> Option<&'a LoadBalancer> {
        self.snapshot
            .load_balancers
            .iter()
            .find(|balancer| balancer.is_named(name))
    }

    pub(super) fn public_ip(&self, id: &ArmId) -> Option<&'a PublicIpAddress> {
        self.public_ips.get(id).copied()
    }

    /// Returns true if a public address of this cluster is tagged with a service.
    pub(super) fn is_tagged(&self, service: &ServiceKey) -> bool {
        self.tagged.contains(service)
    }

    /// Returns the frontend that refers to a public address now.
    pub(super) fn referrer(
        &self,
        public_ip: &ArmId,
    ) -> Option<(&'a LoadBalancer, &'a FrontendIpConfiguration)> {
        self.referrers.get(public_ip).copied()
    }

    /// Returns the frontends that a service has now, on any load balancer, ordered by name.
    pub(super) fn frontends_of(
        &self,
        subject: SubjectIndex,
    ) -> &[(&'a LoadBalancer, &'a FrontendIpConfiguration)] {
        self.subjects
            .get(subject)
            .and_then(|subject| self.frontends.get(&subject.prefix.to_ascii_lowercase()))
            .map_or(&[], Vec::as_slice)
    }

    /// Returns the frontends of other owners that a service's rules lead to now: it shares their addresses.
    pub(super) fn borrowed_by(
        &self,
        subject: SubjectIndex,
    ) -> &[(&'a LoadBalancer, &'a FrontendIpConfiguration)] {
        self.borrowed.get(&subject).map_or(&[], Vec::as_slice)
    }

    /// Returns the rules that lead to a frontend now, each with its owner.
    pub(super) fn rules_at(
        &self,
        balancer: &'a LoadBalancer,
        frontend: &'a FrontendIpConfiguration,
    ) -> impl Iterator<Item = (Owner, &'a LoadBalancingRule)> {
        let is_ours = self.is_ours(balancer);
        let rules = balancer.properties.load_balancing_rules.iter();
        rules
            .filter(move |rule| {
                frontend_of(balancer, rule).is_some_and(|leads_to| std::ptr::eq(leads_to, frontend))
            })
            .map(move |rule| (self.owner(&rule.name, is_ours), rule))
    }

    /// Returns the address of a frontend, if it is known now.
    pub(super) fn address_of(&self, frontend: &'a FrontendIpConfiguration) -> Option<&'a str> {
        let properties = &frontend.properties;
        let address = match &properties.public_ip_address {
            Some(reference) => {
                let public = self.public_ip(reference.id.as_ref()?)?;
                public.properties.ip_address.as_deref()
            }
            None => properties.private_ip_address.as_deref(),
        };
        address.filter(|address| !address.is_empty())
    }

    /// Returns all addresses that provably belong to this cluster: of its frontends, public addresses and
    /// members of pools.
    pub(super) fn addresses(&self) -> impl Iterator<Item = String> {
        let ours = self.snapshot.load_balancers.iter();
        let ours = ours.filter(|balancer| self.is_ours(balancer));
        let frontends = ours.flat_map(|balancer| &balancer.properties.frontend_ip_configurations);
        let frontends = frontends.filter(|frontend| match self.owner(&frontend.name, true) {
            Owner::Subject(index) => {
                let subject = self.subjects.get(index);
                subject.is_some_and(|subject| self.config.serves(subject.service))
            }
            Owner::Orphan => true,
            Owner::Foreign => false,
        });
        let public = self.snapshot.public_ips.iter().filter(|address| {
            let owners = Owners::of(address).filter(|owners| owners.cluster.is_some());
            let known = address.id.as_ref().zip(owners);
            known.is_some_and(|(id, owners)| self.owns(id, &owners))
        });
        let public = public.filter_map(|address| address.properties.ip_address.as_deref());
        let addresses = frontends.filter_map(|frontend| self.address_of(frontend));
        let addresses = addresses.chain(public).map(str::to_owned);
        addresses.chain(self.members())
    }

    /// Returns the addresses in the cluster's own pools.
    pub(super) fn members(&self) -> impl Iterator<Item = String> {
        self.member_entries()
            .filter_map(|entry| entry.properties.ip_address.clone())
    }

    /// Returns the entries of the cluster's own pools.
    pub(super) fn member_entries(&self) -> impl Iterator<Item = &'a BackendAddress> {
        let pools = self
            .snapshot
            .load_balancers
            .iter()
            .flat_map(|balancer| &balancer.properties.backend_address_pools)
            .filter(|pool| pool.is_named(&self.config.cluster_name));
        pools.flat_map(|pool| {
            pool.properties
                .load_balancer_backend_addresses
                .iter()
                .flatten()
        })
    }

    /// Returns true if pools keep their members although no node takes part, because none is known or none is
    /// ready.
    pub(super) fn keeps_last_members(&self) -> bool {
        let may_be_empty =
            self.request.empties_pools || self.config.empty_grace == Some(Duration::ZERO);
        !may_be_empty && !self.nodes.iter().any(|node| self.can_be_member(node))
    }

    /// Returns true if a node may be a member of a pool. The membership of interfaces is not checked here.
    fn can_be_member(&self, node: &Node) -> bool {
        let name = naming::backend_address(&node.name);
        let is_member = self.config.backend_pool_type == PoolMembership::NetworkInterface
            || self.member_entries().any(|entry| entry.is_named(&name));
        machines::can_be_member(self.config, node, is_member)
    }

    /// Returns the lower-case names of the pool entries that stay as they are: those of nodes that cannot be
    /// read or have no address, and those that a write was rejected for. While no node takes part, also all
    /// entries except those of excluded nodes.
    pub(super) fn kept_members(&self) -> BTreeSet<String> {
        if self.keeps_last_members() {
            let leave = self.nodes.iter();
            let leave = leave.filter(|node| !machines::takes_part(self.config, node));
            let leave: BTreeSet<_> = leave
                .map(|node| naming::backend_address(&node.name).to_ascii_lowercase())
                .collect();
            let entries = self.member_entries();
            let entries = entries.map(|entry| entry.name.to_ascii_lowercase());
            return entries
                .filter(|name| !leave.contains(name) || self.request.held_members.contains(name))
                .collect();
        }
        let nodes = self.nodes.iter();
        let nodes = nodes.filter(|node| {
            (node.unreadable.is_some() && machines::takes_part(self.config, node))
                || machines::has_no_address(self.config, node)
        });
        let names = nodes.map(|node| naming::backend_address(&node.name).to_ascii_lowercase());
        names
            .chain(self.request.held_members.iter().cloned())
            .collect()
    }

    /// Returns all current addresses of a service: its own, and those that it shares with others of this
    /// cluster.
    pub(super) fn addresses_of(&self, subject: SubjectIndex) -> BTreeSet<&'a str> {
        let frontends = self.frontends_of(subject).iter();
        let borrowed = self.borrowed_by(subject).iter();
        let of_ours = borrowed.filter(|(balancer, frontend)| {
            self.owner(&frontend.name, self.is_ours(balancer)) != Owner::Foreign
        });
        frontends
            .chain(of_ours)
            .filter_map(|(_, frontend)| self.address_of(frontend))
            .collect()
    }
}

/// Returns the frontend that a rule leads to.
fn frontend_of<'a>(
    balancer: &'a LoadBalancer,
    rule: &LoadBalancingRule,
) -> Option<&'a FrontendIpConfiguration> {
    let reference = rule.properties.frontend_ip_configuration.as_ref()?;
    let name = ArmId::name(reference.id.as_ref()?);
    let mut frontends = balancer.properties.frontend_ip_configurations.iter();
    frontends.find(|frontend| frontend.is_named(name))
}

/// Returns the addresses of a cluster with these services, to which its security rules may lead.
pub(crate) fn addresses_of_cluster(
    config: &Config,
    services: &[Service],
    snapshot: &Snapshot,
) -> BTreeSet<String> {
    let request = Request::EVERYTHING;
    let world = ClusterState::new(
        config,
        &request,
        services,
        &[],
        snapshot,
        &mut BTreeMap::new(),
    );
    world.addresses().collect()
}

fn standing(
    config: &Config,
    request: &Request,
    service: &Service,
    failures: &mut BTreeMap<ServiceKey, PlanError>,
) -> Standing {
    // Such a service belongs to another controller.
    if !config.serves(service) {
        return Standing::Held;
    }
    if failures.contains_key(&service.key) || request.held.contains(&service.key) {
        return Standing::Held;
    }
    let wanted = match &request.only {
        None => service.is_wanted(),
        Some(only) if only.key == service.key => only.want,
        Some(_) => return Standing::Held,
    };
    if !wanted {
        return Standing::Unwanted;
    }
    if let Some(why) = &service.unreadable {
        failures.insert(service.key.clone(), PlanError::Unreadable(why.clone()));
        return Standing::Held;
    }
    match Intent::of(service, config) {
        Ok(intent) => Standing::Requested(Box::new(intent)),
        Err(error) => {
            failures.insert(service.key.clone(), error.into());
            Standing::Held
        }
    }
}
