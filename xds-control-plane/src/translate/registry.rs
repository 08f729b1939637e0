//! Services of the registry, with their branches.

use std::collections::BTreeSet;
use std::sync::Arc;

use super::clusters::{ClusterSettings, cluster};
use super::endpoints::Live;
use super::model::{Branch, CatalogService, Known, Limits, Protocol, Provides, RegistryService};
use super::names::{cluster_name, domain_of, with_ports};
use super::routes::{BranchTarget, HostSettings, registry_host};
use super::{REGISTRY, TranslateOptions, Translated};
use crate::assemble::{Owner, ServiceResources};

/// A cluster of a service: of itself or of a branch.
struct Target<'s> {
    cluster: Arc<str>,
    branch: Option<&'s Branch>,
    provides: &'s Provides,
}

/// The names of the clusters of a service: those whose instances are looked for in the catalog.
pub(super) fn cluster_names(service: &RegistryService, own: &Owned) -> Vec<Arc<str>> {
    let targets = targets(service, own).into_iter();
    targets.map(|target| target.cluster).collect()
}

/// The clusters of the services themselves: the branch `api` of `shop` may not take the name of the service `shop-api`.
pub(super) type Owned = BTreeSet<Arc<str>>;

/// The names of the clusters of all services that run, without their branches.
pub(super) fn owned(services: &[Arc<RegistryService>]) -> Owned {
    let running = services.iter().filter(|service| service.is_running);
    let names = running.flat_map(|service| {
        let provides = service.provides.iter();
        provides.map(|provides| cluster_name(&service.name, None, &provides.name))
    });
    names.collect()
}

/// Itself and its branches that run, each with what it provides.
fn targets<'s>(service: &'s RegistryService, own: &Owned) -> Vec<Target<'s>> {
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
    let free = branches.filter(|target| !own.contains(&target.cluster));
    main.chain(free).collect()
}

/// The names of its branches' clusters that are those of services.
fn taken(service: &RegistryService, own: &Owned) -> Vec<Arc<str>> {
    let all = targets(service, &Owned::new()).into_iter();
    let branches = all.filter(|target| target.branch.is_some());
    branches
        .map(|target| target.cluster)
        .filter(|cluster| own.contains(cluster))
        .collect()
}

pub(super) fn translate(
    service: &RegistryService,
    instances: &[Option<Arc<CatalogService>>],
    own: &Owned,
    known: &Known,
    options: &TranslateOptions,
) -> Translated {
    let owner = Owner::new(REGISTRY, Arc::clone(&service.name));
    let mut out = Translated::new(ServiceResources::new(owner));
    out.resources.refresh_delay = Some(known.defaults.refresh_delay);
    let targets = targets(service, own);
    for cluster in taken(service, own) {
        let message = format!(
            "the name {cluster} of a branch is that of a service; the branch is not served there"
        );
        out.warn("branch_name_taken", message);
    }
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
        let assignment = live.assignment(&target.cluster, &known.catalog.own);
        out.resources.assignments.push(assignment);
        if target.provides.protocol == Protocol::Tcp {
            continue;
        }
        let same: Vec<_> = match target.branch {
            Some(_) => Vec::new(),
            None => branches_of(&targets, &lives, target).collect(),
        };
        let branches = same.iter().map(|(branch, other, _)| BranchTarget {
            branch: Arc::clone(&branch.name),
            cluster: Arc::clone(&other.cluster),
            operation: domain_of(&other.cluster, options),
        });
        let branches: Vec<_> = branches.collect();
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

/// The service's own weight, then those of its canaries, 100 together.
///
/// Canaries are served in the order of their names until 100 is given away. One without a live instance gets nothing: its
/// share stays with the service, where it is answered.
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
