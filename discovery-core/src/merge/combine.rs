//! Combination of several configurations: on conflict, the first one wins.

use std::collections::hash_map::Entry;
use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use indexmap::IndexMap;
use proxy_model::config::ProxyConfig;
use proxy_model::{ClusterId, Problem, RouteId, pointer_to};

use super::accepted::{Accepted, Form, Item};
use super::prepare::{Prepared, rename_clusters};

/// One provider's part.
#[derive(Clone)]
pub(super) struct Part {
    pub(super) provider: Arc<str>,
    /// The prepared configuration. `None` if the provider has no usable one.
    pub(super) prepared: Option<Arc<Prepared>>,
    /// The last accepted configuration, if items are accepted one by one.
    pub(super) accepted: Option<Arc<Accepted>>,
}

impl Part {
    /// Returns true if an accepted form of an item differs from the prepared one.
    pub(super) fn has_older(&self, named: &Named) -> bool {
        match (&self.accepted, &self.prepared) {
            (Some(accepted), Some(prepared)) => accepted.has_another(named, &prepared.config),
            _ => false,
        }
    }

    /// Returns true if the accepted settings of a cluster differ from the prepared ones.
    pub(super) fn has_older_settings(&self, named: &Named) -> bool {
        match (&self.accepted, &self.prepared) {
            (Some(accepted), Some(prepared)) => {
                accepted.has_other_settings(named, &prepared.config)
            }
            _ => false,
        }
    }
}

/// Routes and clusters that were rejected.
#[derive(Clone, Debug, Default)]
pub(super) struct LeftOut {
    /// Left out.
    pub(super) routes: HashSet<RouteId>,
    pub(super) clusters: HashSet<ClusterId>,
    /// Used in a form that was accepted before.
    pub(super) held: HashMap<Named, Form>,
}

impl LeftOut {
    pub(super) fn insert(&mut self, named: Named) {
        match named {
            Named::Route(id, _) => self.routes.insert(id),
            Named::Cluster(id, _) => self.clusters.insert(id),
        };
    }

    /// Takes the next older form of an object: a cluster's older settings with its current destinations,
    /// then the older form as a whole, then none.
    pub(super) fn object(&mut self, named: Named, has_other_settings: bool) {
        match self.held.entry(named.clone()) {
            Entry::Vacant(entry) if has_other_settings => _ = entry.insert(Form::Settings),
            Entry::Vacant(entry) => _ = entry.insert(Form::Whole),
            Entry::Occupied(mut entry) if *entry.get() == Form::Settings => {
                entry.insert(Form::Whole);
            }
            Entry::Occupied(_) => self.insert(named),
        }
    }

    /// Number of objections. It grows with each new one.
    pub(super) fn len(&self) -> usize {
        let whole = self.held.values().filter(|form| **form == Form::Whole);
        self.routes.len() + self.clusters.len() + self.held.len() + whole.count()
    }
}

/// Several configurations as one.
#[derive(Debug, Default)]
pub(super) struct Combined {
    pub(super) config: Arc<ProxyConfig>,
    /// The owner of each route and cluster: the position of the provider.
    pub(super) route_owners: IndexMap<RouteId, usize>,
    pub(super) cluster_owners: IndexMap<ClusterId, usize>,
    /// Clashes, each with the provider whose part was left out.
    pub(super) clashes: Vec<(usize, Problem)>,
}

/// Combines the parts in their order. Of two routes or clusters with the same id the first one is taken.
///
/// A route whose own provider's cluster does not serve leads nowhere, never to another provider's cluster of that id.
pub(super) fn combine(parts: &[Part], left_out: &LeftOut) -> Combined {
    if let Some((position, whole)) = only_one(parts, left_out) {
        return Combined {
            route_owners: whole
                .routes
                .keys()
                .map(|id| (id.clone(), position))
                .collect(),
            cluster_owners: whole
                .clusters
                .keys()
                .map(|id| (id.clone(), position))
                .collect(),
            config: Arc::clone(whole),
            clashes: Vec::new(),
        };
    }
    let mut combined = Combined::default();
    let mut config = ProxyConfig::default();
    let name = |position: usize| &*parts[position].provider;
    let present = || {
        let parts = parts.iter().enumerate();
        parts.filter_map(|(position, part)| Some((position, part, part.prepared.as_ref()?)))
    };
    for (position, part, prepared) in present() {
        if !prepared.config.policies.is_empty() {
            // Of two policies of a name the first provider's is used, as of routes.
            let policies = Arc::make_mut(&mut config.policies);
            for policy in prepared.config.policies.iter() {
                policies.insert(policy.clone());
            }
        }
        for (id, cluster) in &prepared.config.clusters {
            if left_out.clusters.contains(id) {
                continue;
            }
            if let Some(&owner) = combined.cluster_owners.get(id) {
                let pointer = pointer_to("/Clusters", id.as_str());
                let problem = clash(pointer, "cluster", id.as_str(), name(owner), name(position));
                combined.clashes.push((position, problem));
                continue;
            }
            combined.cluster_owners.insert(id.clone(), position);
            let named = Named::Cluster(id.clone(), position);
            let form = left_out.held.get(&named);
            let old = form.zip(part.accepted.as_ref());
            let old = old.and_then(|(form, accepted)| accepted.cluster(id, cluster, *form));
            let cluster = old.unwrap_or_else(|| cluster.clone());
            config.clusters.insert(id.clone(), cluster);
        }
    }
    for (position, part, prepared) in present() {
        for (id, route) in &prepared.config.routes {
            if left_out.routes.contains(id) {
                continue;
            }
            if let Some(&owner) = combined.route_owners.get(id) {
                let pointer = pointer_to("/Routes", id.as_str());
                let problem = clash(pointer, "route", id.as_str(), name(owner), name(position));
                combined.clashes.push((position, problem));
                continue;
            }
            combined.route_owners.insert(id.clone(), position);
            let named = Named::Route(id.clone(), position);
            let old = part
                .accepted
                .as_ref()
                .filter(|_| left_out.held.contains_key(&named));
            let old = old.and_then(|accepted| accepted.config.routes.get(id));
            let mut route = old.unwrap_or(route).clone();
            rename_clusters(&mut route, |id| {
                let of_another = combined.cluster_owners.get(id)? != &position;
                let own =
                    prepared.config.clusters.contains_key(id) || prepared.unusable.contains(id);
                (of_another && own).then(|| nobodys(id, name(position), &combined))
            });
            config.routes.insert(id.clone(), route);
        }
    }
    config.shrink_to_fit();
    combined.config = Arc::new(config);
    combined
}

/// An id that no cluster has, for a provider's cluster that does not serve because another provider has its id.
fn nobodys(id: &ClusterId, provider: &str, combined: &Combined) -> ClusterId {
    let mut text = format!("{id} of {provider}");
    while combined
        .cluster_owners
        .contains_key(&ClusterId::from(text.as_str()))
    {
        text.push('\'');
    }
    ClusterId::new(text)
}

/// Returns the only configuration that is not empty, and the position of its provider, if it is used
/// unchanged: then it is shared.
fn only_one<'a>(parts: &'a [Part], left_out: &LeftOut) -> Option<(usize, &'a Arc<ProxyConfig>)> {
    if left_out.len() > 0 {
        return None;
    }
    let mut configs = parts.iter().enumerate().filter_map(|(position, part)| {
        let config = &part.prepared.as_ref()?.config;
        let is_empty =
            config.routes.is_empty() && config.clusters.is_empty() && config.policies.is_empty();
        (!is_empty).then_some((position, config))
    });
    let first = configs.next()?;
    configs.next().is_none().then_some(first)
}

fn clash(pointer: String, kind: &str, id: &str, winner: &str, loser: &str) -> Problem {
    let code = match kind {
        "cluster" => "duplicate_cluster",
        _ => "duplicate_route",
    };
    let consequence = match kind {
        "cluster" => "left out, and requests for it get 503",
        _ => "left out",
    };
    let message = format!(
        "the {kind} `{id}` of the provider `{loser}` is {consequence}: the provider `{winner}` has one with this id"
    );
    Problem::error(pointer, code, message)
        .with_suggestion("give one of the providers a prefix for its ids")
}

/// The item that the pointer of a problem names.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) enum Named {
    Route(RouteId, usize),
    Cluster(ClusterId, usize),
}

impl Named {
    pub(super) fn owner(&self) -> usize {
        match self {
            Self::Route(_, owner) | Self::Cluster(_, owner) => *owner,
        }
    }

    pub(super) fn item(&self) -> Item {
        match self {
            Self::Route(id, _) => Item::Route(id.clone()),
            Self::Cluster(id, _) => Item::Cluster(id.clone()),
        }
    }
}

impl Combined {
    /// The route or cluster that a pointer is about.
    pub(super) fn named(&self, pointer: &str) -> Option<Named> {
        let (section, id) = super::state::named(pointer)?;
        match section {
            "Routes" => {
                let id = RouteId::new(id);
                let owner = *self.route_owners.get(&id)?;
                Some(Named::Route(id, owner))
            }
            "Clusters" => {
                let id = ClusterId::new(id);
                let owner = *self.cluster_owners.get(&id)?;
                Some(Named::Cluster(id, owner))
            }
            _ => None,
        }
    }
}
