use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use envoy_types::pb::envoy::config::endpoint::v3::ClusterLoadAssignment;
use prost::Message;
use tokio::time::Instant;

use super::{Resources, Served, View};
use crate::snapshot::{Bodies, Resource, ResourceSet, ResourceType, Snapshot};

/// Makes views of snapshots, and holds what was removed until its time is over. Without I/O and clock.
#[derive(Debug)]
pub(crate) struct Feed {
    grace: Duration,
    last: Option<Arc<View>>,
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
    /// Removed clusters are held for `grace`.
    pub(crate) fn new(grace: Duration) -> Self {
        Self {
            grace,
            last: None,
            retained: BTreeMap::new(),
        }
    }

    /// The view of a new snapshot.
    pub(crate) fn publish(&mut self, snapshot: Arc<Snapshot>, now: Instant) -> Arc<View> {
        if let Some(last) = self.last.clone() {
            self.retain_removed(&last, &snapshot, now);
        }
        let clusters = snapshot.resources(ResourceType::Cluster);
        self.retained
            .retain(|name, retained| clusters.get(name).is_none() && retained.until > now);
        self.view(snapshot)
    }

    /// A view without what has been held long enough, if there is such.
    pub(crate) fn expire(&mut self, now: Instant) -> Option<Arc<View>> {
        let before = self.retained.len();
        self.retained.retain(|_, retained| retained.until > now);
        let last = self.last.as_ref()?;
        (self.retained.len() < before)
            .then(|| Arc::clone(last.snapshot()))
            .map(|snapshot| self.view(snapshot))
    }

    /// When to call [`Feed::expire`].
    pub(crate) fn deadline(&self) -> Option<Instant> {
        self.retained.values().map(|retained| retained.until).min()
    }

    fn retain_removed(&mut self, last: &View, snapshot: &Snapshot, now: Instant) {
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

    fn view(&mut self, snapshot: Arc<Snapshot>) -> Arc<View> {
        let nothing = Served::default();
        let last = self.last.as_deref();
        let after = |resource_type, set| {
            Served::after(
                last.map_or(&nothing, |view| view.served(resource_type)),
                set,
            )
        };
        let same = |resource_type| {
            let set = snapshot.resources(resource_type);
            after(resource_type, Arc::clone(set))
        };
        let endpoints = self.endpoints(&snapshot);
        let retained: Resources = self
            .retained
            .iter()
            .map(|(name, retained)| (Arc::clone(name), Arc::clone(&retained.cluster)))
            .collect();
        let view = Arc::new(View {
            clusters: same(ResourceType::Cluster),
            endpoints: after(ResourceType::Endpoint, endpoints),
            listeners: same(ResourceType::Listener),
            routes: same(ResourceType::Route),
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
    use super::super::super::fixtures::{clusters, endpoints, snapshot};
    use super::*;

    const GRACE: Duration = Duration::from_secs(30);

    fn names(view: &View, resource_type: ResourceType) -> String {
        let set = view.served(resource_type).set();
        let names: Vec<_> = set.iter().map(|resource| &**resource.name()).collect();
        names.join(" ")
    }

    fn retained(view: &View) -> String {
        let names: Vec<_> = view.retained.keys().map(|name| &**name).collect();
        names.join(" ")
    }

    #[test]
    fn a_removed_cluster_is_held_with_its_endpoints_until_its_time_is_over() {
        let mut feed = Feed::new(GRACE);
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
        let mut feed = Feed::new(GRACE);
        let start = Instant::now();
        feed.publish(snapshot(&[clusters(&["a=1"])]), start);
        feed.publish(snapshot(&[]), start);
        let view = feed.publish(snapshot(&[clusters(&["a=2"])]), start);
        assert_eq!(retained(&view), "");
        assert_eq!(feed.deadline(), None);
    }

    #[test]
    fn removals_at_different_times_end_at_different_times() {
        let mut feed = Feed::new(GRACE);
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
        let mut feed = Feed::new(GRACE);
        let view = feed.publish(
            snapshot(&[clusters(&["a=1", "b=1"]), endpoints(&["b=1"])]),
            Instant::now(),
        );
        assert_eq!(names(&view, ResourceType::Endpoint), "a b");
        let empty = view.get(ResourceType::Endpoint, "a").unwrap();
        let body = empty.body(crate::snapshot::Subscription::Aggregated);
        let assignment = ClusterLoadAssignment::decode(body.clone()).unwrap();
        assert_eq!(assignment.cluster_name, "a");
        assert_eq!(assignment.endpoints, []);
        let all: Vec<_> = view.all(ResourceType::Endpoint).collect();
        assert_eq!(all.len(), 1);
    }

    #[test]
    fn the_way_from_the_last_view_is_known_and_any_other_is_found() {
        let mut feed = Feed::new(GRACE);
        let first = feed.publish(snapshot(&[endpoints(&["a=1", "b=1"])]), Instant::now());
        let second = feed.publish(snapshot(&[endpoints(&["a=2", "b=1"])]), Instant::now());
        let third = feed.publish(snapshot(&[endpoints(&["a=2"])]), Instant::now());
        let served = third.served(ResourceType::Endpoint);
        let since = |view: &View| {
            served
                .changed_since(view.served(ResourceType::Endpoint).set())
                .join(" ")
        };
        assert_eq!(since(&second), "b");
        assert_eq!(since(&first), "a b");
        assert_eq!(since(&third), "");
    }
}
