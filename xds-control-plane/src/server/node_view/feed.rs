use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use prost::Message;
use tokio::time::Instant;
use xds_types::pb::envoy::config::endpoint::v3::ClusterLoadAssignment;

use super::late::Late;
use super::{NodeView, Resources, Served};
use crate::snapshot::{Bodies, Resource, ResourceSet, ResourceType, Snapshot, Subscription};

/// Makes per-node views of snapshots, and keeps removed resources for their grace period. Has no I/O and no clock.
#[derive(Debug)]
pub(crate) struct Feed {
    grace: Duration,
    late: Late,
    last: Option<Arc<NodeView>>,
    retained: BTreeMap<Arc<str>, Retained>,
}

/// A removed cluster.
#[derive(Debug)]
struct Retained {
    cluster: Arc<Resource>,
    endpoints: Option<Arc<Resource>>,
    until: Instant,
}

impl Feed {
    /// Creates a feed. Removed clusters are held for `grace`, and new ones are `lead` ahead of the
    /// resources that refer to them.
    pub(crate) fn new(grace: Duration, lead: Duration) -> Self {
        Self {
            grace,
            late: Late::new(lead),
            last: None,
            retained: BTreeMap::new(),
        }
    }

    /// Returns the view of a new snapshot.
    pub(crate) fn publish(&mut self, snapshot: Arc<Snapshot>, now: Instant) -> Arc<NodeView> {
        let mut adds = false;
        if let Some(last) = self.last.clone() {
            adds = self.adds_clusters(&last, &snapshot);
            self.retain_removed(&last, &snapshot, now);
        }
        self.late.publish(&snapshot, adds, now);
        let clusters = snapshot.resources(ResourceType::Cluster);
        self.retained
            .retain(|name, retained| clusters.get(name).is_none() && retained.until > now);
        self.view(snapshot)
    }

    /// Returns a view without the resources that were held long enough, if there are any.
    pub(crate) fn expire(&mut self, now: Instant) -> Option<Arc<NodeView>> {
        let before = self.retained.len();
        self.retained.retain(|_, retained| retained.until > now);
        let is_late = self.late.expire(now);
        let last = self.last.as_ref()?;
        (is_late || self.retained.len() < before)
            .then(|| Arc::clone(last.snapshot()))
            .map(|snapshot| self.view(snapshot))
    }

    /// Returns the time at which to call [`Feed::expire`].
    pub(crate) fn deadline(&self) -> Option<Instant> {
        let retained = self.retained.values().map(|retained| retained.until);
        retained.chain(self.late.deadline()).min()
    }

    /// Returns true if there are clusters that no client has yet.
    fn adds_clusters(&self, last: &NodeView, snapshot: &Snapshot) -> bool {
        let before = last.snapshot.resources(ResourceType::Cluster);
        let mut clusters = snapshot.resources(ResourceType::Cluster).iter();
        clusters.any(|cluster| {
            let name = cluster.name();
            before.get(name).is_none() && !self.retained.contains_key(name)
        })
    }

    fn retain_removed(&mut self, last: &NodeView, snapshot: &Snapshot, now: Instant) {
        let clusters = snapshot.resources(ResourceType::Cluster);
        for cluster in last.snapshot.resources(ResourceType::Cluster).iter() {
            if clusters.get(cluster.name()).is_none() {
                let endpoints = last.endpoints.set().get(cluster.name());
                self.retained.insert(
                    Arc::clone(cluster.name()),
                    Retained {
                        cluster: Arc::clone(cluster),
                        endpoints: endpoints.map(Arc::clone),
                        until: now + self.grace,
                    },
                );
            }
        }
    }

    fn view(&mut self, snapshot: Arc<Snapshot>) -> Arc<NodeView> {
        let nothing = Served::default();
        let last = self.last.as_deref();
        let after = |resource_type, subscription, set| {
            let last = last.map(|view| view.served(resource_type, subscription));
            Served::after(last.unwrap_or(&nothing), set)
        };
        let same = |resource_type| {
            let set = snapshot.resources(resource_type);
            after(resource_type, Subscription::Aggregated, Arc::clone(set))
        };
        let late = self.late.shown().cloned().unwrap_or_default();
        let endpoints = self.endpoints(&snapshot);
        let retained: Resources = self
            .retained
            .iter()
            .map(|(name, retained)| (Arc::clone(name), Arc::clone(&retained.cluster)))
            .collect();
        let view = Arc::new(NodeView {
            clusters: same(ResourceType::Cluster),
            endpoints: after(ResourceType::Endpoint, Subscription::Aggregated, endpoints),
            listeners: same(ResourceType::Listener),
            routes: same(ResourceType::Route),
            late_listeners: after(
                ResourceType::Listener,
                Subscription::Separate,
                late.listeners,
            ),
            late_routes: after(ResourceType::Route, Subscription::Separate, late.routes),
            retained: Arc::new(retained),
            snapshot,
        });
        self.last = Some(Arc::clone(&view));
        view
    }

    /// The assignments of the snapshot, of retained clusters, and empty ones for clusters without.
    fn endpoints(&self, snapshot: &Snapshot) -> Arc<ResourceSet> {
        let given = snapshot.resources(ResourceType::Endpoint);
        let retained = self
            .retained
            .iter()
            .filter(|(name, _)| given.get(name).is_none())
            .filter_map(|(_, retained)| retained.endpoints.as_ref().map(Arc::clone));
        let clusters = snapshot.resources(ResourceType::Cluster).iter();
        let empty = clusters
            .filter(|cluster| given.get(cluster.name()).is_none())
            .map(|cluster| self.empty_assignment(cluster.name()));
        let mut others = retained.chain(empty).peekable();
        if others.peek().is_none() {
            return Arc::clone(given);
        }
        Arc::new(given.iter().cloned().chain(others).collect())
    }

    fn empty_assignment(&self, name: &Arc<str>) -> Arc<Resource> {
        let assignment = ClusterLoadAssignment {
            cluster_name: name.to_string(),
            ..Default::default()
        };
        let body = Bytes::from(assignment.encode_to_vec());
        Arc::new(Resource::new(Arc::clone(name), Bodies::Same(body)))
    }
}

#[cfg(test)]
mod tests {
    use super::super::super::fixtures::{clusters, endpoints, routes, snapshot};
    use super::*;

    const GRACE: Duration = Duration::from_secs(30);
    const LEAD: Duration = Duration::from_secs(3);

    fn names(view: &NodeView, resource_type: ResourceType) -> String {
        let set = view.served(resource_type, Subscription::Aggregated).set();
        let names: Vec<_> = set.iter().map(|resource| &**resource.name()).collect();
        names.join(" ")
    }

    fn retained(view: &NodeView) -> String {
        let names: Vec<_> = view.retained.keys().map(|name| &**name).collect();
        names.join(" ")
    }

    #[test]
    fn a_removed_cluster_is_held_with_its_endpoints_until_its_time_is_over() {
        let mut feed = Feed::new(GRACE, LEAD);
        let start = Instant::now();
        let both = snapshot(&[clusters(&["a=1", "b=1"]), endpoints(&["a=1", "b=1"])]);
        let view = feed.publish(both, start);
        assert_eq!(retained(&view), "");
        let one = snapshot(&[clusters(&["a=1"]), endpoints(&["a=1"])]);
        let view = feed.publish(one, start);
        assert_eq!(retained(&view), "b");
        assert_eq!(names(&view, ResourceType::Cluster), "a");
        assert_eq!(names(&view, ResourceType::Endpoint), "a b");
        assert_eq!(feed.deadline(), Some(start + GRACE));
        assert!(feed.expire(start + GRACE / 2).is_none());
        let view = feed.expire(start + GRACE).unwrap();
        assert_eq!(retained(&view), "");
        assert_eq!(names(&view, ResourceType::Endpoint), "a");
        assert_eq!(feed.deadline(), None);
    }

    #[test]
    fn a_cluster_that_comes_back_is_not_removed_later() {
        let mut feed = Feed::new(GRACE, LEAD);
        let start = Instant::now();
        feed.publish(snapshot(&[clusters(&["a=1"])]), start);
        feed.publish(snapshot(&[]), start);
        let view = feed.publish(snapshot(&[clusters(&["a=2"])]), start);
        assert_eq!(retained(&view), "");
        assert_eq!(feed.deadline(), None);
    }

    #[test]
    fn removals_at_different_times_end_at_different_times() {
        let mut feed = Feed::new(GRACE, LEAD);
        let start = Instant::now();
        feed.publish(snapshot(&[clusters(&["a=1", "b=1"])]), start);
        feed.publish(snapshot(&[clusters(&["b=1"])]), start);
        let view = feed.publish(snapshot(&[]), start + GRACE / 2);
        assert_eq!(retained(&view), "a b");
        let view = feed.expire(start + GRACE).unwrap();
        assert_eq!(retained(&view), "b");
    }

    #[test]
    fn a_cluster_without_endpoints_has_an_empty_assignment_that_nobody_published() {
        let mut feed = Feed::new(GRACE, LEAD);
        let view = feed.publish(
            snapshot(&[clusters(&["a=1", "b=1"]), endpoints(&["b=1"])]),
            Instant::now(),
        );
        assert_eq!(names(&view, ResourceType::Endpoint), "a b");
        let empty = view
            .get(ResourceType::Endpoint, Subscription::Aggregated, "a")
            .unwrap();
        let body = empty.body(Subscription::Aggregated);
        let assignment = ClusterLoadAssignment::decode(body.clone()).unwrap();
        assert_eq!(assignment.cluster_name, "a");
        assert_eq!(assignment.endpoints, []);
        let all: Vec<_> = view
            .all(ResourceType::Endpoint, Subscription::Rest)
            .collect();
        assert_eq!(all.len(), 1);
    }

    #[test]
    fn the_way_from_the_last_view_is_known_and_any_other_is_found() {
        let mut feed = Feed::new(GRACE, LEAD);
        let first = feed.publish(snapshot(&[endpoints(&["a=1", "b=1"])]), Instant::now());
        let second = feed.publish(snapshot(&[endpoints(&["a=2", "b=1"])]), Instant::now());
        let third = feed.publish(snapshot(&[endpoints(&["a=2"])]), Instant::now());
        let served = third.served(ResourceType::Endpoint, Subscription::Aggregated);
        let since = |view: &NodeView| {
            served
                .changed_since(
                    view.served(ResourceType::Endpoint, Subscription::Aggregated)
                        .set(),
                )
                .join(" ")
        };
        assert_eq!(since(&second), "b");
        assert_eq!(since(&first), "a b");
        assert_eq!(since(&third), "");
    }

    #[test]
    fn routes_to_new_clusters_come_later_to_who_has_no_aggregated_stream() {
        let mut feed = Feed::new(GRACE, LEAD);
        let start = Instant::now();
        let shown = |view: &NodeView, subscription| {
            let set = view.served(ResourceType::Route, subscription).set();
            let route = set.get("r").unwrap();
            String::from_utf8_lossy(route.body(subscription)).into_owned()
        };
        let late = |view: &NodeView| shown(view, Subscription::Separate);
        let state = |cluster: &[&str], route: &str| {
            snapshot(&[clusters(cluster), routes(&[&format!("r={route}")])])
        };
        // At first no client has anything.
        let view = feed.publish(state(&["a=1"], "a"), start);
        assert_eq!(late(&view), "a");
        let view = feed.publish(state(&["a=1", "b=1"], "a+b"), start);
        assert_eq!(shown(&view, Subscription::Aggregated), "a+b");
        assert_eq!(late(&view), "a");
        assert_eq!(feed.deadline(), Some(start + LEAD));
        // What comes after that keeps its place, and is not put off by it.
        let view = feed.publish(state(&["a=2", "b=1"], "b"), start + LEAD / 2);
        assert_eq!(late(&view), "a");
        let view = feed.expire(start + LEAD).unwrap();
        assert_eq!(late(&view), "b");
        // Without new clusters there is nothing to wait for.
        let view = feed.publish(state(&["b=1"], "none"), start + LEAD);
        assert_eq!(late(&view), "none");
        // A cluster that is still held is not new.
        let view = feed.publish(state(&["a=1", "b=1"], "both"), start + LEAD);
        assert_eq!(late(&view), "both");
    }
}
