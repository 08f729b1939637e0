//! A snapshot in its served form: with resources that are retained for a while, and with the changes since
//! the previous one.

mod feed;
mod late;
mod narrow;

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

pub(crate) use self::feed::Feed;
use self::narrow::Narrowed;
pub(crate) use self::narrow::names_any;
use crate::snapshot::{Resource, ResourceSet, ResourceType, Snapshot, Subscription, Version};

/// Resources by name.
pub(crate) type Resources = BTreeMap<Arc<str>, Arc<Resource>>;

/// The resources that all streams and calls respond with, until the next view.
#[derive(Debug, Clone)]
pub(crate) struct NodeView {
    snapshot: Arc<Snapshot>,
    clusters: Served,
    endpoints: Served,
    listeners: Served,
    routes: Served,
    /// Listeners, delayed for clients that do not report when their clusters are warm.
    late_listeners: Served,
    late_routes: Served,
    retained: Arc<Resources>,
}

impl NodeView {
    /// The published snapshot.
    pub(crate) fn snapshot(&self) -> &Arc<Snapshot> {
        &self.snapshot
    }

    /// Returns the served resources of a type. There are more load assignments than in the snapshot: those
    /// of retained clusters, and an empty one for each cluster without, so that the cluster does not wait
    /// for it. Listeners and routes are delayed for clients without an aggregated stream.
    pub(crate) fn served(
        &self,
        resource_type: ResourceType,
        subscription: Subscription,
    ) -> &Served {
        match (resource_type, subscription) {
            (ResourceType::Cluster, _) => &self.clusters,
            (ResourceType::Endpoint, _) => &self.endpoints,
            (ResourceType::Listener, Subscription::Aggregated) => &self.listeners,
            (ResourceType::Listener, _) => &self.late_listeners,
            (ResourceType::Route, Subscription::Aggregated) => &self.routes,
            (ResourceType::Route, _) => &self.late_routes,
        }
    }

    /// Resources that were removed a short while ago and may still be referred to: only clusters have such.
    pub(crate) fn retained(&self, resource_type: ResourceType) -> Option<&Resources> {
        (resource_type == ResourceType::Cluster && !self.retained.is_empty())
            .then_some(&*self.retained)
    }

    /// The resource of that name, retained or not.
    pub(crate) fn get(
        &self,
        resource_type: ResourceType,
        subscription: Subscription,
        name: &str,
    ) -> Option<&Arc<Resource>> {
        let served = self.served(resource_type, subscription).set().get(name);
        served.or_else(|| self.retained(resource_type)?.get(name))
    }

    /// Returns all resources of a type, except for assignments that were not published.
    pub(crate) fn all(
        &self,
        resource_type: ResourceType,
        subscription: Subscription,
    ) -> impl Iterator<Item = &Arc<Resource>> {
        let published = match resource_type {
            ResourceType::Endpoint => self.snapshot.resources(resource_type),
            ResourceType::Cluster | ResourceType::Listener | ResourceType::Route => {
                self.served(resource_type, subscription).set()
            }
        };
        let retained = self.retained(resource_type);
        let retained = retained.into_iter().flat_map(BTreeMap::values);
        published.iter().chain(retained)
    }

    /// A name as the resources have it, so that subscriptions of many streams share one allocation.
    pub(crate) fn intern(&self, resource_type: ResourceType, name: &str) -> Arc<str> {
        self.get(resource_type, Subscription::Aggregated, name)
            .map_or_else(|| Arc::from(name), |resource| Arc::clone(resource.name()))
    }
}

/// The resources of one type, with the changes since the previous state.
#[derive(Debug, Clone, Default)]
pub(crate) struct Served {
    set: Arc<ResourceSet>,
    /// The last step, computed once, since nearly all streams need it.
    step: Option<Step>,
    /// Route configurations reduced to the clusters that a client has.
    narrowed: Arc<Narrowed>,
}

#[derive(Debug, Clone)]
struct Step {
    from: Version,
    changed: Arc<[Arc<str>]>,
}

impl Served {
    /// Creates the view of `set` after `before`.
    pub(crate) fn after(before: &Self, set: Arc<ResourceSet>) -> Self {
        if set.version() == before.set.version() {
            return before.clone();
        }
        let step = Step {
            from: before.set.version(),
            changed: set.changed_since(&before.set).into(),
        };
        Self {
            set,
            step: Some(step),
            narrowed: Arc::default(),
        }
    }

    /// Returns the route configurations without the routes to these clusters.
    pub(crate) fn without_routes_to(&self, clusters: &BTreeSet<Arc<str>>) -> Self {
        Self {
            set: self.narrowed.of(&self.set, clusters),
            ..Self::default()
        }
    }

    pub(crate) fn set(&self) -> &Arc<ResourceSet> {
        &self.set
    }

    pub(crate) fn version(&self) -> Version {
        self.set.version()
    }

    /// Returns the sorted names of the resources that differ between `older` and this view.
    pub(crate) fn changed_since(&self, older: &ResourceSet) -> Cow<'_, [Arc<str>]> {
        if older.version() == self.version() {
            return Cow::Borrowed(&[]);
        }
        match &self.step {
            Some(step) if step.from == older.version() => Cow::Borrowed(&step.changed),
            _ => Cow::Owned(self.set.changed_since(older)),
        }
    }
}
