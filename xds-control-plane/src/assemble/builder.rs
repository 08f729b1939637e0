use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::accepted::Accepted;
use super::claims::{Claims, Holders};
use super::outcome::{BuiltResources, Quarantined, Reason, Warning};
use super::services::{Owner, ServiceResources};
use super::validate::{reserved_names, validate};
use super::{ResourceOptions, encode};
use crate::snapshot::{Resource, ResourceSet, ResourceType, Snapshot};

/// Assembles snapshots one after the other, processing only changes.
///
/// A service that is equal to the one before, or the same `Arc`, is neither checked nor encoded again. A
/// service with resources that Envoy would reject is quarantined: it is served in its last known good form,
/// if it has one, with endpoints that may be newer, and all other services are served normally.
#[derive(Debug, Default)]
pub struct ResourceBuilder {
    options: ResourceOptions,
    services: BTreeMap<Owner, HeldService>,
    /// Number of services that are no longer known, but stay.
    stayed: usize,
    /// The owners of the served endpoints.
    endpoint_owners: BTreeMap<Arc<str>, Owner>,
    /// The owners of names, domains and addresses.
    holders: Holders,
    warnings: Vec<Warning>,
    snapshot: Arc<Snapshot>,
}

/// A service and its state in the served resources.
#[derive(Debug)]
struct HeldService {
    wanted: Arc<ServiceResources>,
    /// The problems of the new resources.
    reasons: Vec<Reason>,
    accepted: Option<Accepted>,
}

impl HeldService {
    /// Returns true if the served and the new resources differ at most in endpoints.
    fn differs_in_endpoints_only(&self, wanted: &ServiceResources) -> bool {
        let before = &self.wanted;
        self.reasons.is_empty()
            && before.clusters == wanted.clusters
            && before.virtual_hosts == wanted.virtual_hosts
            && before.listeners == wanted.listeners
            && before.is_partial == wanted.is_partial
            && before.unknown_endpoints == wanted.unknown_endpoints
            && before.refresh_delay == wanted.refresh_delay
            && self
                .accepted
                .as_ref()
                .is_some_and(|accepted| accepted.has_endpoints_of(wanted))
    }
}

/// Assembles once. For repeated use there is an [`ResourceBuilder`].
#[must_use]
pub fn assemble(services: &[Arc<ServiceResources>], options: ResourceOptions) -> BuiltResources {
    ResourceBuilder::new(options).assemble(services)
}

impl ResourceBuilder {
    /// Creates an assembler without any service.
    #[must_use]
    pub fn new(options: ResourceOptions) -> Self {
        Self {
            options,
            ..Self::default()
        }
    }

    /// Assembles these services, which are all there are. If two have the same owner, the later one counts.
    pub fn assemble(&mut self, services: &[Arc<ServiceResources>]) -> BuiltResources {
        self.assemble_beside(services, |_| false)
    }

    /// Assembles like [`assemble`](Self::assemble), but keeps earlier services that are missing here if
    /// `is_unknown` returns true for them.
    pub fn assemble_beside(
        &mut self,
        services: &[Arc<ServiceResources>],
        is_unknown: impl Fn(&Owner) -> bool,
    ) -> BuiltResources {
        let mut before = std::mem::take(&mut self.services);
        for wanted in services {
            let held = match before.remove(&wanted.owner) {
                Some(held) => self.renew(held, wanted),
                None => self.admit(wanted, None),
            };
            self.services.insert(wanted.owner.clone(), held);
        }
        before.retain(|owner, held| held.accepted.is_some() && is_unknown(owner));
        self.stayed = before.len();
        self.services.append(&mut before);
        self.publish();
        self.assembled()
    }

    /// Takes only newer endpoints of clusters that are served already, which must be fast. All other
    /// changes wait for the next [`assemble`](Self::assemble).
    pub fn update_endpoints(&mut self, services: &[Arc<ServiceResources>]) -> BuiltResources {
        let mut changed: BTreeMap<Arc<str>, Arc<Resource>> = BTreeMap::new();
        for wanted in services {
            let Some(held) = self.services.get_mut(&wanted.owner) else {
                continue;
            };
            if Arc::ptr_eq(&held.wanted, wanted) {
                continue;
            }
            let Some(accepted) = &mut held.accepted else {
                continue;
            };
            for name in accepted.take_endpoints(wanted) {
                let is_served = self.endpoint_owners.get(&name) == Some(&wanted.owner);
                let resource = accepted.endpoints.get(&*name);
                if let Some(endpoints) = resource.filter(|_| is_served) {
                    changed.insert(name, Arc::clone(&endpoints.resource));
                }
            }
        }
        self.serve_endpoints(&changed);
        self.assembled()
    }

    /// Returns clusters whose endpoints stay although no source lists them any more: those of a canary whose share
    /// of the requests has returned to its service. They may be removed when all clients have the new shares.
    #[must_use]
    pub fn lingering(&self) -> BTreeSet<String> {
        let accepted = self
            .services
            .values()
            .filter_map(|held| held.accepted.as_ref());
        accepted.flat_map(Accepted::lingering).cloned().collect()
    }

    /// Removes the [endpoints that were kept](Self::lingering) for a while.
    pub fn let_go(&mut self) -> BuiltResources {
        let mut changed: BTreeMap<Arc<str>, Arc<Resource>> = BTreeMap::new();
        for (owner, held) in &mut self.services {
            let lingering = held
                .accepted
                .as_mut()
                .filter(|accepted| accepted.has_lingering());
            let Some(accepted) = lingering else {
                continue;
            };
            for name in accepted.let_go(&held.wanted) {
                let is_served = self.endpoint_owners.get(&name) == Some(owner);
                let resource = accepted.endpoints.get(&*name);
                if let Some(endpoints) = resource.filter(|_| is_served) {
                    changed.insert(name, Arc::clone(&endpoints.resource));
                }
            }
        }
        self.serve_endpoints(&changed);
        self.assembled()
    }

    fn serve_endpoints(&mut self, changed: &BTreeMap<Arc<str>, Arc<Resource>>) {
        if !changed.is_empty() {
            let served = self.snapshot.resources(ResourceType::Endpoint);
            let renewed = served.iter().map(|resource| {
                let newer = changed.get(resource.name()).unwrap_or(resource);
                Arc::clone(newer)
            });
            let set: ResourceSet = renewed.collect();
            let snapshot = (*self.snapshot).clone();
            self.snapshot = Arc::new(snapshot.with(ResourceType::Endpoint, Arc::new(set)));
        }
    }

    /// Returns true if [`assemble`](Self::assemble) would do more than
    /// [`update_endpoints`](Self::update_endpoints) has done with these services.
    #[must_use]
    pub fn is_behind(&self, services: &[Arc<ServiceResources>]) -> bool {
        let is_done = |wanted: &Arc<ServiceResources>| {
            let held = self.services.get(&wanted.owner);
            held.is_some_and(|held| {
                Arc::ptr_eq(&held.wanted, wanted) || held.differs_in_endpoints_only(wanted)
            })
        };
        services.len() + self.stayed != self.services.len() || !services.iter().all(is_done)
    }

    /// Returns the services in their served form, for a later start.
    #[must_use]
    pub fn kept(&self) -> Vec<ServiceResources> {
        let accepted = self
            .services
            .values()
            .filter_map(|held| held.accepted.as_ref());
        accepted.map(Accepted::current).collect()
    }

    fn renew(&self, held: HeldService, wanted: &Arc<ServiceResources>) -> HeldService {
        if Arc::ptr_eq(&held.wanted, wanted) {
            return held;
        }
        if held.reasons.is_empty() && held.accepted.is_some() && *held.wanted == **wanted {
            // The endpoints may have been others meanwhile.
            let mut held = held;
            if let Some(accepted) = &mut held.accepted {
                accepted.take_endpoints(wanted);
            }
            return HeldService {
                wanted: Arc::clone(wanted),
                ..held
            };
        }
        self.admit(wanted, held.accepted)
    }

    fn admit(&self, wanted: &Arc<ServiceResources>, before: Option<Accepted>) -> HeldService {
        let before = match before {
            Some(mut accepted) if wanted.is_partial && !accepted.clusters.is_empty() => {
                accepted.take_endpoints(wanted);
                return HeldService {
                    wanted: Arc::clone(wanted),
                    reasons: Vec::new(),
                    accepted: Some(accepted),
                };
            }
            before => before,
        };
        let mut reasons = validate(wanted);
        reasons.extend(reserved_names(wanted, &self.options.xds_cluster));
        let accepted = if reasons.is_empty() {
            let resources = Arc::clone(wanted);
            Some(Accepted::new(resources, before.as_ref(), &self.options))
        } else {
            before.map(|mut before| {
                before.take_endpoints(wanted);
                before
            })
        };
        HeldService {
            wanted: Arc::clone(wanted),
            reasons,
            accepted,
        }
    }

    /// Resolves the claims of all services, and makes a snapshot of the result.
    fn publish(&mut self) {
        let accepted = self.services.iter().filter_map(|(owner, held)| {
            let accepted = held.accepted.as_ref()?;
            Some((self.rank(owner), owner, accepted))
        });
        let mut accepted: Vec<_> = accepted.collect();
        accepted.sort_by_key(|(rank, owner, _)| (*rank, *owner));
        let mut claims = Claims::default();
        for (rank, owner, accepted) in &accepted {
            claims.reserve(owner, *rank, accepted, &self.holders);
        }
        for (rank, owner, accepted) in accepted {
            claims.claim(owner, rank, accepted);
        }
        let holders = claims.holders();
        let Claims {
            served, warnings, ..
        } = claims;
        let routes = encode::route_configuration(&self.options.route_config, served.hosts.iter());
        let mut snapshot = (*self.snapshot).clone();
        for (kind, resources) in [
            (ResourceType::Cluster, served.clusters),
            (ResourceType::Endpoint, served.endpoints),
            (ResourceType::Listener, served.listeners),
            (ResourceType::Route, vec![Arc::new(routes)]),
        ] {
            let set: ResourceSet = resources.into_iter().collect();
            if snapshot.resources(kind).version() != set.version() {
                snapshot = snapshot.with(kind, Arc::new(set));
            }
        }
        if snapshot != *self.snapshot {
            self.snapshot = Arc::new(snapshot);
        }
        self.endpoint_owners = served.endpoint_owners;
        self.holders = holders;
        self.warnings = warnings;
    }

    fn rank(&self, owner: &Owner) -> usize {
        let mut precedence = self.options.precedence.iter();
        let listed = precedence.position(|source| *source == owner.source);
        listed.unwrap_or(usize::MAX)
    }

    fn assembled(&self) -> BuiltResources {
        let bad = self
            .services
            .iter()
            .filter(|(_, held)| !held.reasons.is_empty());
        let quarantined = bad.map(|(owner, held)| Quarantined {
            owner: owner.clone(),
            reasons: held.reasons.clone(),
            serves_last_known_good: held.accepted.is_some(),
        });
        BuiltResources {
            snapshot: Arc::clone(&self.snapshot),
            quarantined: quarantined.collect(),
            warnings: self.warnings.clone(),
        }
    }
}
