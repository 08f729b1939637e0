//! Generations: the unit of publication. Each request holds one generation from its beginning to
//! its end.

use std::collections::HashMap;
use std::sync::Arc;

use discovery_core::Timestamp;
use proxy_model::compiled::{Cluster, ClusterIndex, RouteIndex};
use proxy_model::matching::Lookup;
use proxy_model::{ClusterId, Problems, RequestHead, RouteId, Snapshot};

use super::route::{HeadPlans, RouteState};
use crate::affinity::{Affinities, ClusterAffinity};
use crate::balance::Balancers;
use crate::cluster::{ClusterRules, ClusterState, PickContext};
use crate::extensions::Extensions;
use crate::health::{AvailabilityPolicies, PassivePolicies};
use crate::live::{AvailabilityRule, ClientKey, ClusterLive, DestinationState, PassiveRule};

/// Extensions that the program registered, by the names that configurations use.
#[derive(Debug, Default)]
pub(crate) struct Registered {
    pub(crate) balancers: Balancers,
    pub(crate) affinities: Affinities,
    pub(crate) passive_policies: PassivePolicies,
    pub(crate) availability_policies: AvailabilityPolicies,
    pub(crate) extensions: Extensions,
}

/// One configuration with the live state of everything in it. Immutable except for the live state.
#[derive(Debug)]
pub(crate) struct Generation {
    number: u64,
    snapshot: Arc<Snapshot>,
    clusters: Box<[ClusterState]>,
    routes: Box<[RouteState]>,
    published_at: Timestamp,
}

impl Generation {
    /// Builds the first generation.
    ///
    /// # Errors
    ///
    /// Fails if a policy, a filter or a layer is not registered.
    pub(crate) fn first(
        snapshot: Arc<Snapshot>,
        registered: &Registered,
        context: &Arc<PickContext>,
    ) -> Result<Self, Problems> {
        Self::build(None, snapshot, registered, context)
    }

    /// Builds the generation after this one. Live state is inherited. This generation stays as it
    /// is, so a new one that is not published has no effect.
    ///
    /// # Errors
    ///
    /// Fails if a policy, a filter or a layer is not registered.
    pub(crate) fn next(
        &self,
        snapshot: Arc<Snapshot>,
        registered: &Registered,
        context: &Arc<PickContext>,
    ) -> Result<Self, Problems> {
        Self::build(Some(self), snapshot, registered, context)
    }

    fn build(
        previous: Option<&Self>,
        snapshot: Arc<Snapshot>,
        registered: &Registered,
        context: &Arc<PickContext>,
    ) -> Result<Self, Problems> {
        let carried = Carried::of(previous);
        let mut problems = Problems::new();
        let mut clusters = Vec::with_capacity(snapshot.clusters().len());
        for cluster in snapshot.clusters() {
            // All problems are collected, so that one attempt shows them all.
            let before = carried.cluster(cluster.id());
            // The counters and the turn of a cluster survive the change.
            let live = before.map_or_else(Arc::default, |(_, state)| Arc::clone(state.live()));
            match rules(cluster, &live, registered, context) {
                Ok(rules) => clusters.push(cluster_state(cluster, before, live, rules, context)),
                Err(found) => problems.extend(found),
            }
        }
        let mut policies = match registered.extensions.policies() {
            Some(source) => source.of_routes(&snapshot).unwrap_or_else(|found| {
                problems.extend(found);
                Vec::new()
            }),
            None => Vec::new(),
        }
        .into_iter();
        let mut routes = Vec::with_capacity(snapshot.routes().len());
        let mut plans = HeadPlans::default();
        for route in snapshot.routes() {
            // The source returns them in the order of the routes.
            let policies = policies.next().flatten();
            let before = carried.route(route.id());
            let extensions = before.and_then(RouteState::extensions);
            let has_policies = policies.is_some();
            let resolved = registered.extensions.resolve(route, policies, extensions);
            match resolved {
                Ok(extensions) => {
                    let metrics = before.map(|before| Arc::clone(before.metrics()));
                    routes.push(RouteState::new(
                        route,
                        metrics.unwrap_or_default(),
                        (has_policies, extensions),
                        context.loop_guard.as_ref(),
                        &clusters,
                        &mut plans,
                    ));
                }
                Err(found) => problems.extend(found),
            }
        }
        // A configuration is never published in part.
        if problems.has_errors() {
            return Err(problems);
        }
        Ok(Self {
            number: previous.map_or(0, |previous| previous.number) + 1,
            snapshot,
            clusters: clusters.into(),
            routes: routes.into(),
            published_at: Timestamp::now(),
        })
    }

    /// Marks the destinations that are not in `next`, the generation published after this one.
    pub(crate) fn retire(&self, next: &Self) {
        let kept: std::collections::HashSet<_> = next.destinations().map(|d| d.key()).collect();
        for destination in self.destinations() {
            if !kept.contains(&destination.key()) {
                destination.mark_removed();
            }
        }
    }

    /// Notes which destinations keep the clients that they have, and get no new ones, as of now.
    pub(crate) fn note_drains(&self) {
        let clusters = self.clusters();
        for (cluster, state) in clusters.filter(|(cluster, _)| cluster.affinity().is_some()) {
            let destinations = cluster.destinations().iter();
            for (destination, live) in destinations.zip(state.destinations()) {
                live.drain(live.is_drained(cluster, destination));
            }
        }
    }

    /// The number: 1 for the first generation, and one more for each later one.
    pub(crate) fn number(&self) -> u64 {
        self.number
    }

    /// The configuration.
    pub(crate) fn snapshot(&self) -> &Arc<Snapshot> {
        &self.snapshot
    }

    /// The time when the generation was built.
    pub(crate) fn published_at(&self) -> Timestamp {
        self.published_at
    }

    /// The state of a cluster of this generation's snapshot.
    pub(crate) fn cluster(&self, index: ClusterIndex) -> &ClusterState {
        &self.clusters[index.0 as usize]
    }

    /// The state of a route of this generation's snapshot.
    pub(crate) fn route(&self, index: RouteIndex) -> &RouteState {
        &self.routes[index.0 as usize]
    }

    /// The route that matches a request.
    #[inline]
    pub(crate) fn find_route<H: RequestHead>(&self, head: &H) -> Lookup {
        self.snapshot.table().find(self.snapshot.routes(), head)
    }

    /// Each cluster with its state, in the order of the configuration.
    pub(crate) fn clusters(&self) -> impl Iterator<Item = (&Cluster, &ClusterState)> {
        self.snapshot.clusters().iter().zip(&self.clusters)
    }

    /// The state of each route, in the order of the configuration.
    pub(crate) fn routes(&self) -> &[RouteState] {
        &self.routes
    }

    /// The cluster called `id`, with its state.
    pub(crate) fn find_cluster(&self, id: &ClusterId) -> Option<(&Cluster, &ClusterState)> {
        let index = self.snapshot.cluster_index(id)?;
        Some((self.snapshot.cluster_at(index), self.cluster(index)))
    }

    fn destinations(&self) -> impl Iterator<Item = &Arc<DestinationState>> {
        self.clusters.iter().flat_map(|c| c.destinations())
    }
}

/// The state that the next generation inherits, by id.
struct Carried<'a> {
    clusters: HashMap<&'a ClusterId, (&'a Cluster, &'a ClusterState)>,
    routes: HashMap<&'a RouteId, &'a RouteState>,
}

impl<'a> Carried<'a> {
    fn of(previous: Option<&'a Generation>) -> Self {
        let Some(previous) = previous else {
            return Self {
                clusters: HashMap::new(),
                routes: HashMap::new(),
            };
        };
        let routes = previous.snapshot.routes().iter().zip(&previous.routes);
        Self {
            clusters: previous
                .clusters()
                .map(|(cluster, state)| (cluster.id(), (cluster, state)))
                .collect(),
            routes: routes.map(|(route, state)| (route.id(), state)).collect(),
        }
    }

    fn cluster(&self, id: &ClusterId) -> Option<(&'a Cluster, &'a ClusterState)> {
        self.clusters.get(id).copied()
    }

    fn route(&self, id: &RouteId) -> Option<&'a RouteState> {
        self.routes.get(id).copied()
    }
}

/// The policies of a cluster.
///
/// # Errors
///
/// Some of them are not registered.
fn rules(
    cluster: &Cluster,
    live: &Arc<ClusterLive>,
    registered: &Registered,
    #[cfg_attr(
        not(feature = "affinity-keys"),
        expect(unused_variables, reason = "as with keys")
    )]
    context: &PickContext,
) -> Result<ClusterRules, Problems> {
    let balancer = registered.balancers.resolve(cluster);
    let affinity = ClusterAffinity::of(
        cluster,
        &registered.affinities,
        #[cfg(feature = "affinity-keys")]
        &context.affinity_keys,
    );
    let passive = PassiveRule::of(cluster, &registered.passive_policies, live);
    let availability = registered.availability_policies.resolve(cluster);
    match (balancer, affinity, passive, availability) {
        (Ok(balancer), Ok(affinity), Ok(passive), Ok(availability)) => Ok(ClusterRules {
            balancer,
            availability: availability.map(AvailabilityRule),
            affinity: affinity.map(Arc::new),
            passive,
        }),
        (balancer, affinity, passive, availability) => {
            // All problems, so that one attempt shows them.
            let checks = (passive.err(), availability.err());
            let problems = [balancer.err(), affinity.err(), checks.0, checks.1];
            Err(problems.into_iter().flatten().collect())
        }
    }
}

fn cluster_state(
    cluster: &Cluster,
    before: Option<(&Cluster, &ClusterState)>,
    live: Arc<ClusterLive>,
    rules: ClusterRules,
    context: &Arc<PickContext>,
) -> ClusterState {
    let credentials = context.own_credentials(cluster);
    let has_same = |state: &ClusterState| match (state.credentials(), &credentials) {
        (None, None) => true,
        (Some(old), Some(new)) => old.is_same(new),
        _ => false,
    };
    // Connections are pooled by this key, so other settings open other connections.
    let client = match before {
        Some((old, state)) if same_client(old, cluster) && has_same(state) => state.client(),
        _ => ClientKey::next(),
    };
    let destinations = cluster
        .destinations()
        .iter()
        .map(|destination| {
            let kept = before.and_then(|(old, state)| {
                let (index, before) = old.destination(destination.id())?;
                // Another address is another server, so nothing is known about it.
                let same = before.address() == destination.address();
                same.then(|| Arc::clone(state.destination(index)))
            });
            kept.unwrap_or_else(|| {
                Arc::new(DestinationState::new(
                    cluster.id().clone(),
                    destination.id().clone(),
                    Arc::clone(destination.shared_address()),
                    Arc::clone(&live.metrics().connect_times),
                ))
            })
        })
        .collect();
    ClusterState::new(
        cluster,
        live,
        (client, credentials),
        destinations,
        rules,
        Arc::clone(context),
    )
}

/// True if connections that were opened for the old cluster may serve the new one.
fn same_client(old: &Cluster, new: &Cluster) -> bool {
    old.upstream() == new.upstream() && old.config().http_client == new.config().http_client
}
