//! The last accepted configuration of a provider, item by item. It continues to serve where the provider's
//! newest configuration is bad.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use proxy_model::config::{ClusterConfig, ProxyConfig};
use proxy_model::{ClusterId, CompileOptions, Problem, RouteId, Snapshot, pointer_to};

use super::combine::{LeftOut, Named};
use super::prepare::Prepared;
use crate::discovery::Destinations;
use crate::endpoints::with_destinations;
use crate::timestamp::Timestamp;

/// A route or a cluster of one provider.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) enum Item {
    Route(RouteId),
    Cluster(ClusterId),
}

/// The older form in which an item serves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Form {
    /// The settings of a cluster that were last accepted, with the destinations that it has now.
    Settings,
    /// The whole last accepted form.
    Whole,
}

/// An item that serves in an older form than the provider has.
#[derive(Clone, Debug)]
pub(super) struct Kept {
    form: Form,
    /// The problem that reports it. It is made once, so that a growing age does not look like a change.
    pub(super) problem: Problem,
}

/// The last accepted configuration of a provider whose items are accepted one by one.
#[derive(Debug)]
pub(super) struct Accepted {
    pub(super) config: Arc<ProxyConfig>,
    /// The time of acceptance.
    at: Timestamp,
    kept: HashMap<Item, Kept>,
}

/// The ids that a provider lists, in its order, and where its clusters are now.
pub(super) struct Listed {
    routes: Vec<RouteId>,
    clusters: Vec<(ClusterId, Option<Destinations>)>,
}

impl Listed {
    pub(super) fn of(config: &ProxyConfig) -> Self {
        Self {
            routes: config.routes.keys().cloned().collect(),
            clusters: config
                .clusters
                .keys()
                .map(|id| (id.clone(), None))
                .collect(),
        }
    }

    /// Records the destinations that filters left of the clusters that they accepted, unless these serve
    /// already.
    pub(super) fn note_destinations(&mut self, filtered: &ProxyConfig, usable: &ProxyConfig) {
        let unusable = |id: &ClusterId| !usable.clusters.contains_key(id);
        for (id, destinations) in self.clusters.iter_mut().filter(|(id, _)| unusable(id)) {
            let cluster = filtered.clusters.get(id);
            *destinations = cluster.map(|cluster| cluster.destinations.clone());
        }
    }

    /// The clusters that the provider lists and `config` does not have.
    pub(super) fn clusters_not_in(&self, config: &ProxyConfig) -> HashSet<ClusterId> {
        let ids = self.clusters.iter().map(|(id, _)| id);
        let lost = ids.filter(|id| !config.clusters.contains_key(*id));
        lost.cloned().collect()
    }
}

impl Accepted {
    /// Returns the newly accepted configuration: the prepared one, with older forms of the items that
    /// validators held back and without those that they rejected.
    pub(super) fn now(
        prepared: &Prepared,
        before: Option<&Self>,
        position: usize,
        left_out: &LeftOut,
    ) -> Self {
        let mut config = Arc::clone(&prepared.config);
        let mut kept = prepared.kept.clone();
        let held = left_out.held.iter();
        for (named, &form) in held.filter(|(n, _)| n.owner() == position) {
            let Some(before) = before else { continue };
            before.give_form(named, form, Arc::make_mut(&mut config));
            kept.insert(named.item(), before.kept(&named.item(), form));
        }
        let rejected = config.routes.keys().any(|id| left_out.routes.contains(id))
            || config
                .clusters
                .keys()
                .any(|id| left_out.clusters.contains(id));
        if rejected {
            let config = Arc::make_mut(&mut config);
            config.routes.retain(|id, _| !left_out.routes.contains(id));
            config
                .clusters
                .retain(|id, _| !left_out.clusters.contains(id));
        }
        Self {
            config,
            at: Timestamp::now(),
            kept,
        }
    }

    /// Returns true if the item differs from the one in `newest`.
    pub(super) fn has_another(&self, named: &Named, newest: &ProxyConfig) -> bool {
        match named {
            Named::Route(id, _) => {
                let old = self.config.routes.get(id);
                old.is_some() && old != newest.routes.get(id)
            }
            Named::Cluster(id, _) => {
                let old = self.config.clusters.get(id);
                old.is_some() && old != newest.clusters.get(id)
            }
        }
    }

    /// Returns true if the settings of the cluster differ from those in `newest`.
    pub(super) fn has_other_settings(&self, named: &Named, newest: &ProxyConfig) -> bool {
        let Named::Cluster(id, _) = named else {
            return false;
        };
        let (Some(old), Some(new)) = (self.config.clusters.get(id), newest.clusters.get(id)) else {
            return false;
        };
        let mut moved = old.clone();
        moved.destinations.clone_from(&new.destinations);
        moved != *new
    }

    /// The accepted form of the cluster, which is now `current`.
    pub(super) fn cluster(
        &self,
        id: &ClusterId,
        current: &ClusterConfig,
        form: Form,
    ) -> Option<ClusterConfig> {
        let mut cluster = self.config.clusters.get(id)?.clone();
        if form == Form::Settings {
            cluster.destinations.clone_from(&current.destinations);
        }
        Some(cluster)
    }

    /// Puts the accepted form of the item into a configuration that has it.
    fn give_form(&self, named: &Named, form: Form, config: &mut ProxyConfig) {
        match named {
            Named::Route(id, _) => {
                if let (Some(old), Some(form)) =
                    (self.config.routes.get(id), config.routes.get_mut(id))
                {
                    form.clone_from(old);
                }
            }
            Named::Cluster(id, _) => {
                if let Some(current) = config.clusters.get_mut(id)
                    && let Some(old) = self.cluster(id, current, form)
                {
                    *current = old;
                }
            }
        }
    }

    /// The report that the item continues to serve in this accepted form.
    pub(super) fn kept(&self, item: &Item, form: Form) -> Kept {
        let kept = self.kept.get(item).filter(|kept| kept.form == form);
        kept.cloned().unwrap_or_else(|| Kept {
            form,
            problem: serves_on(item, form, self.at),
        })
    }

    /// Adds routes and clusters that the provider still lists but that are missing in `config`, as long as the
    /// result compiles.
    pub(super) fn complete(
        &self,
        listed: &Listed,
        config: Arc<ProxyConfig>,
        compile: &CompileOptions,
    ) -> (Arc<ProxyConfig>, HashMap<Item, Kept>) {
        let mut kept = HashMap::new();
        let mut complete = ProxyConfig {
            policies: Arc::clone(&config.policies),
            ..ProxyConfig::default()
        };
        for (id, destinations) in &listed.clusters {
            if let Some(cluster) = config.clusters.get(id) {
                complete.clusters.insert(id.clone(), cluster.clone());
            } else if let Some(cluster) = self.config.clusters.get(id) {
                let live = destinations
                    .as_ref()
                    .and_then(|now| with_destinations(cluster, now, compile));
                let (cluster, form) = match live {
                    Some(live) => (live, Form::Settings),
                    None => (cluster.clone(), Form::Whole),
                };
                complete.clusters.insert(id.clone(), cluster);
                let item = Item::Cluster(id.clone());
                kept.insert(item.clone(), self.kept(&item, form));
            }
        }
        for id in &listed.routes {
            if let Some(route) = config.routes.get(id) {
                complete.routes.insert(id.clone(), route.clone());
            } else if let Some(route) = self.config.routes.get(id) {
                complete.routes.insert(id.clone(), route.clone());
                let item = Item::Route(id.clone());
                kept.insert(item.clone(), self.kept(&item, Form::Whole));
            }
        }
        if kept.is_empty() {
            return (config, kept);
        }
        // Older forms may not fit together with the new ones, and are then left out again.
        let (snapshot, _) = Snapshot::compile_isolated(complete, compile);
        let complete = Arc::clone(snapshot.shared_config());
        kept.retain(|item, _| match item {
            Item::Route(id) => complete.routes.contains_key(id),
            Item::Cluster(id) => complete.clusters.contains_key(id),
        });
        (complete, kept)
    }
}

fn serves_on(item: &Item, form: Form, accepted: Timestamp) -> Problem {
    let (pointer, what) = match item {
        Item::Route(id) => (
            pointer_to("/Routes", id.as_str()),
            format!("the route `{id}`"),
        ),
        Item::Cluster(id) => (
            pointer_to("/Clusters", id.as_str()),
            format!("the cluster `{id}`"),
        ),
    };
    let age = accepted.age().as_secs();
    let serves = match form {
        Form::Settings => format!(
            "its last known good settings, accepted {age} s before, continue to serve with its current destinations"
        ),
        Form::Whole => {
            format!("its last known good form, accepted {age} s before, continues to serve")
        }
    };
    let message = format!("{what} cannot serve as it is now; {serves}");
    Problem::warning(pointer, "last_good_serves", message)
}
