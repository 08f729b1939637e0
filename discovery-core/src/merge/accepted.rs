//! What was last accepted of a provider, item by item, and serves on where the provider's newest form is bad.

use std::collections::HashMap;
use std::sync::Arc;

use proxy_model::config::ProxyConfig;
use proxy_model::{ClusterId, CompileOptions, Problem, RouteId, Snapshot, pointer_to};

use super::combine::{LeftOut, Named};
use super::prepare::Prepared;
use crate::moment::Moment;

/// A route or a cluster of one provider.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) enum Item {
    Route(RouteId),
    Cluster(ClusterId),
}

/// What was last accepted of a provider whose items are judged one by one.
#[derive(Debug)]
pub(super) struct Accepted {
    pub(super) config: Arc<ProxyConfig>,
    /// When.
    at: Moment,
    /// Items that serve in an older form than the provider has, each with the problem that says so. It is made once, so
    /// that an age that grows does not look like news.
    kept: HashMap<Item, Problem>,
}

/// The ids that a provider lists, in its order.
pub(super) struct Listed {
    routes: Vec<RouteId>,
    clusters: Vec<ClusterId>,
}

impl Listed {
    pub(super) fn of(config: &ProxyConfig) -> Self {
        Self {
            routes: config.routes.keys().cloned().collect(),
            clusters: config.clusters.keys().cloned().collect(),
        }
    }
}

impl Accepted {
    /// What is accepted now: what was prepared, with older forms of the items that validators held back and without
    /// those that they refused.
    pub(super) fn now(
        prepared: &Prepared,
        before: Option<&Self>,
        position: usize,
        left_out: &LeftOut,
    ) -> Self {
        let mut config = Arc::clone(&prepared.config);
        let mut kept = prepared.kept.clone();
        for named in left_out.held.iter().filter(|n| n.owner() == position) {
            let Some(before) = before else { continue };
            before.give_form(named, Arc::make_mut(&mut config));
            kept.insert(named.item(), before.kept(&named.item()));
        }
        let refused = config.routes.keys().any(|id| left_out.routes.contains(id))
            || config
                .clusters
                .keys()
                .any(|id| left_out.clusters.contains(id));
        if refused {
            let config = Arc::make_mut(&mut config);
            config.routes.retain(|id, _| !left_out.routes.contains(id));
            config
                .clusters
                .retain(|id, _| !left_out.clusters.contains(id));
        }
        Self {
            config,
            at: Moment::now(),
            kept,
        }
    }

    /// Whether there is another form of the item than in `newest`.
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

    /// Puts the accepted form of the item into a configuration that has it.
    fn give_form(&self, named: &Named, config: &mut ProxyConfig) {
        match named {
            Named::Route(id, _) => {
                if let (Some(old), Some(form)) =
                    (self.config.routes.get(id), config.routes.get_mut(id))
                {
                    form.clone_from(old);
                }
            }
            Named::Cluster(id, _) => {
                if let (Some(old), Some(form)) =
                    (self.config.clusters.get(id), config.clusters.get_mut(id))
                {
                    form.clone_from(old);
                }
            }
        }
    }

    /// How the item is told to serve on in its accepted form.
    pub(super) fn kept(&self, item: &Item) -> Problem {
        let kept = self.kept.get(item).cloned();
        kept.unwrap_or_else(|| serves_on(item, self.at))
    }

    /// Adds what the provider still lists and `config` has lost, as long as it compiles.
    pub(super) fn complete(
        &self,
        listed: &Listed,
        config: Arc<ProxyConfig>,
        compile: &CompileOptions,
    ) -> (Arc<ProxyConfig>, HashMap<Item, Problem>) {
        let mut kept = HashMap::new();
        let mut complete = ProxyConfig::default();
        for id in &listed.clusters {
            if let Some(cluster) = config.clusters.get(id) {
                complete.clusters.insert(id.clone(), cluster.clone());
            } else if let Some(cluster) = self.config.clusters.get(id) {
                complete.clusters.insert(id.clone(), cluster.clone());
                let item = Item::Cluster(id.clone());
                kept.insert(item.clone(), self.kept(&item));
            }
        }
        for id in &listed.routes {
            if let Some(route) = config.routes.get(id) {
                complete.routes.insert(id.clone(), route.clone());
            } else if let Some(route) = self.config.routes.get(id) {
                complete.routes.insert(id.clone(), route.clone());
                let item = Item::Route(id.clone());
                kept.insert(item.clone(), self.kept(&item));
            }
        }
        if kept.is_empty() {
            return (config, kept);
        }
        let (snapshot, _) = Snapshot::compile_isolated(complete, compile);
        let complete = Arc::clone(snapshot.shared_config());
        kept.retain(|item, _| match item {
            Item::Route(id) => complete.routes.contains_key(id),
            Item::Cluster(id) => complete.clusters.contains_key(id),
        });
        (complete, kept)
    }
}

fn serves_on(item: &Item, accepted: Moment) -> Problem {
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
    let message = format!(
        "{what} cannot serve as it is now; its last good form, accepted {age} s before, serves on"
    );
    Problem::warning(pointer, "last_good_serves", message)
}
