//! Services of the registry, with their branches.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::clusters::{ClusterSettings, cluster};
use super::endpoints::Live;
use super::model::{Branch, CatalogService, Limits, Protocol, Provides, RegistryService};
use super::names::{cluster_name, domain_of, with_ports};
use super::routes::{BranchTarget, HostSettings, branch_header, registry_host};
use super::translator::Surroundings;
use super::{REGISTRY, TranslateOptions, Translated};
use crate::assemble::{Owner, ServiceResources};

/// A cluster of a service: of itself or of a branch.
struct Target<'s> {
    cluster: Arc<str>,
    branch: Option<&'s Branch>,
    provides: &'s Provides,
}

impl Target<'_> {
    fn key<'t>(&'t self, service: &'t RegistryService) -> (&'t str, Option<&'t str>, &'t str) {
        let branch = self.branch.map(|branch| &*branch.name);
        (&service.name, branch, &self.provides.name)
    }
}

/// The names of the clusters of a service: those whose instances are looked for in the catalog.
pub(super) fn cluster_names(service: &RegistryService, owned: &Owned) -> Vec<Arc<str>> {
    let targets = own_targets(service, owned);
    targets.map(|target| target.cluster).collect()
}

/// The owners of the joined names: service, branch and provides. The branch `api` of `shop` may not take
/// the name of the service `shop-api`, nor the branch `b` of `shop-a` that of the branch `a-b` of `shop`.
pub(super) type Owned = BTreeMap<Arc<str>, OwnerKey>;

type OwnerKey = (Arc<str>, Option<Arc<str>>, Arc<str>);

/// Returns the owners of the names of all running services. Services come before branches, and then the
/// first by name.
pub(super) fn owned(services: &[Arc<RegistryService>]) -> Owned {
    let mut owned = Owned::new();
    for are_branches in [false, true] {
        for service in services {
            for target in targets(service) {
                if target.branch.is_some() == are_branches {
                    let (name, branch, provides) = target.key(service);
                    let key = (name.into(), branch.map(Arc::from), provides.into());
                    owned.entry(target.cluster).or_insert(key);
                }
            }
        }
    }
    owned
}

/// The service and its running branches, each with the protocols it provides.
fn targets(service: &RegistryService) -> Vec<Target<'_>> {
    if !service.is_running {
        return Vec::new();
    }
    let of = |branch: Option<&'_ Branch>, provides: &'_ Provides| {
        let branch = branch.map(|branch| &*branch.name);
        cluster_name(&service.name, branch, &provides.name)
    };
    let main = service.provides.iter().map(|provides| Target {
        cluster: of(None, provides),
        branch: None,
        provides,
    });
    let mut branches: Vec<_> = service
        .branches
        .iter()
        .filter(|branch| branch.is_running)
        .collect();
    branches.sort_by(|a, b| a.name.cmp(&b.name));
    let branches = branches.into_iter().flat_map(|branch| {
        let provided = branch.provides.as_ref().unwrap_or(&service.provides);
        provided.iter().map(move |provides| Target {
            cluster: of(Some(branch), provides),
            branch: Some(branch),
            provides,
        })
    });
    main.chain(branches).collect()
}

/// Returns true if it runs and provides anything.
pub(super) fn is_served(service: &RegistryService) -> bool {
    !targets(service).is_empty()
}

/// Returns its targets whose names belong to no other owner.
fn own_targets<'s>(
    service: &'s RegistryService,
    owned: &Owned,
) -> impl Iterator<Item = Target<'s>> {
    let all = targets(service).into_iter();
    all.filter(move |target| owner_of(target, service, owned).is_none())
}

/// Returns the other owner of a target's name, if there is one.
fn owner_of<'o>(
    target: &Target<'_>,
    service: &RegistryService,
    owned: &'o Owned,
) -> Option<&'o OwnerKey> {
    let owner = owned.get(&target.cluster)?;
    let (name, branch, provides) = owner;
    let is_own = target.key(service) == (&**name, branch.as_deref(), &**provides);
    (!is_own).then_some(owner)
}

pub(super) fn translate(
    service: &RegistryService,
    instances: &[Option<Arc<CatalogService>>],
    owned: &Owned,
    known: &Surroundings,
    options: &TranslateOptions,
) -> Translated {
    let owner = Owner::new(REGISTRY, Arc::clone(&service.name));
    let mut out = Translated::new(ServiceResources::new(owner));
    out.resources.refresh_delay = Some(known.defaults.refresh_delay);
    for target in targets(service) {
        let Some((owner, branch, _)) = owner_of(&target, service, owned) else {
            continue;
        };
        let whose = match branch {
            Some(branch) => format!("the branch {branch} of {owner}"),
            None => format!("the service {owner}"),
        };
        let (code, of) = match target.branch {
            Some(_) => ("branch_name_taken", "a branch"),
            None => ("service_name_taken", "this service"),
        };
        let message = format!(
            "the name {} of {of} is that of {whose}; {of} is not served there",
            target.cluster
        );
        out.warn(code, message);
    }
    let targets: Vec<_> = own_targets(service, owned).collect();
    let lives: Vec<_> = (0..targets.len())
        .map(|at| Live::of(instances.get(at).and_then(|service| service.as_deref())))
        .collect();
    for (target, live) in targets.iter().zip(&lives) {
        for (code, message) in &live.problems {
            out.warn(code, message.clone());
        }
        // Tags and limits of the instances are for services that the registry does not know.
        let settings = ClusterSettings {
            name: &target.cluster,
            protocol: target.provides.protocol,
            connect_timeout: None,
            limits: Limits::default(),
        };
        out.resources
            .clusters
            .push(cluster(&settings, &known.defaults, options));
        out.assign(&target.cluster, live, &known.own);
        if target.provides.protocol == Protocol::Tcp {
            continue;
        }
        let same: Vec<_> = match target.branch {
            Some(_) => Vec::new(),
            None => branches_of(&targets, &lives, target).collect(),
        };
        let mut branches = Vec::with_capacity(same.len());
        for (branch, other, _) in &same {
            let Some(header) = branch_header(&branch.name, options) else {
                let message = format!(
                    "the name of the branch {} is too long for an expression that Envoys take; nothing is routed to it by that name",
                    discovery_core::text::shortened(&branch.name, 100)
                );
                out.warn("branch_name_too_long", message);
                continue;
            };
            branches.push(BranchTarget {
                header,
                cluster: Arc::clone(&other.cluster),
                operation: domain_of(&other.cluster, options),
            });
        }
        let weights = weights(target, &same, &mut out);
        let domain = domain_of(&target.cluster, options);
        let settings = HostSettings {
            name: &target.cluster,
            domains: with_ports(&domain, options).collect(),
            operation: &domain,
            timeout: options.registry_timeout,
        };
        let host = registry_host(settings, &branches, &weights, options);
        out.resources.virtual_hosts.push(host);
    }
    out
}

/// The branches that provide the same, by name.
fn branches_of<'t>(
    targets: &'t [Target<'t>],
    live: &'t [Live],
    main: &'t Target<'t>,
) -> impl Iterator<Item = (&'t Branch, &'t Target<'t>, &'t Live)> {
    let others = targets.iter().zip(live);
    others.filter_map(|(other, live)| {
        let branch = other.branch?;
        (other.provides.name == main.provides.name).then_some((branch, other, live))
    })
}

/// Returns the service's own weight, then those of its canaries, 100 together.
///
/// Canaries get their shares in the order of their names until 100 is used up. One without a live instance
/// gets no share: it stays with the service, which can handle the requests.
fn weights(
    main: &Target<'_>,
    branches: &[(&Branch, &Target<'_>, &Live)],
    out: &mut Translated,
) -> Vec<(Arc<str>, u32)> {
    let mut left = 100_u32;
    let mut canaries = Vec::new();
    for (branch, target, live) in branches {
        let wanted = branch.canary_percent;
        if wanted == 0 {
            continue;
        }
        if live.is_empty() {
            let message = format!(
                "the canary {} has no live instance; its {wanted} % stay with {}",
                target.cluster, main.cluster
            );
            out.warn("canary_without_instances", message);
            continue;
        }
        let given = wanted.min(left);
        if given < wanted {
            let message = format!(
                "the canaries of {} are more than 100 % together; {} gets {given} % of its {wanted}",
                main.cluster, target.cluster
            );
            out.warn("canaries_over_100", message);
        }
        if given > 0 {
            left -= given;
            canaries.push((Arc::clone(&target.cluster), given));
        }
    }
    let mut weights = vec![(Arc::clone(&main.cluster), left)];
    weights.append(&mut canaries);
    weights
}
