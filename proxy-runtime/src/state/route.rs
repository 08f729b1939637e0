//! The live state of one route.

use std::collections::HashMap;
use std::sync::Arc;

use proxy_model::RouteId;
use proxy_model::compiled::{ClusterIndex, KeyRejection, Route, RouteTarget};
use proxy_model::{RequestHead, Snapshot};

use crate::affinity::ClusterAffinity;
use crate::balance::Random;
use crate::cluster::ClusterState;
use crate::contain::contained_call;
use crate::extensions::RouteExtensions;
use crate::http1::{ClassSet, FieldClass};
use crate::observe::RouteMetrics;
use crate::support::{RouteRejection, rejection};
use crate::transform::{CompiledTransforms, LoopGuard, guards};

/// The state of one route in one generation.
#[derive(Debug)]
pub(crate) struct RouteState {
    id: RouteId,
    metrics: Arc<RouteMetrics>,
    rejection: Option<RouteRejection>,
    /// True if requests need no `http` types for the route's sake: it has no layers.
    is_raw: bool,
    /// The compiled transforms.
    plan: Arc<CompiledTransforms>,
    extensions: Option<Box<RouteExtensions>>,
    /// The detection of forwarding loops, unless it is disabled for the route.
    loop_guard: Option<Arc<LoopGuard>>,
    /// The sums of the weights up to and including each target of a weighted route.
    cumulative: Box<[u64]>,
    /// The clusters of a weighted route that keep their clients, in its order.
    keepers: Box<[(ClusterIndex, Arc<ClusterAffinity>)]>,
}

/// The plans of a generation so far: routes that change the same have one together.
#[derive(Debug, Default)]
pub(super) struct HeadPlans {
    /// Plans by the identity of the transforms, and whether the routes have a loop guard.
    known: HashMap<(usize, bool), Arc<CompiledTransforms>>,
}

impl HeadPlans {
    fn of(&mut self, route: &Route, guard: Option<&LoopGuard>) -> Arc<CompiledTransforms> {
        let key = (route.transforms().identity(), guard.is_some());
        let known = self.known.entry(key);
        Arc::clone(known.or_insert_with(|| CompiledTransforms::of(route, guard)))
    }
}

/// The reason why a route has no cluster for a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Nowhere {
    /// The route names no cluster, or one that does not exist.
    NoCluster,
    /// The request belongs to none of the route's partitions.
    NoPartition(KeyRejection),
    /// A filter panicked while it chose the cluster.
    Failed,
}

impl RouteState {
    pub(super) fn new(
        route: &Route,
        metrics: Arc<RouteMetrics>,
        (has_policies, extensions): (bool, Option<Box<RouteExtensions>>),
        loop_guard: Option<&Arc<LoopGuard>>,
        clusters: &[ClusterState],
        plans: &mut HeadPlans,
    ) -> Self {
        let loop_guard = loop_guard.filter(|_| guards(route)).cloned();
        let cumulative = match route.target() {
            RouteTarget::Weighted(targets) => targets
                .iter()
                .scan(0, |sum, target| {
                    *sum += u64::from(target.weight());
                    Some(*sum)
                })
                .collect(),
            RouteTarget::None
            | RouteTarget::Missing(_)
            | RouteTarget::Cluster(_)
            | RouteTarget::Partitioned(_)
            | RouteTarget::Redirect(_)
            | RouteTarget::Respond(_) => Box::default(),
        };
        let has_layers = extensions
            .as_ref()
            .is_some_and(|extensions| extensions.layers().is_some());
        let plan = plans.of(route, loop_guard.as_deref());
        Self {
            id: route.id().clone(),
            metrics,
            rejection: rejection(route, has_policies),
            is_raw: !has_layers,
            plan,
            extensions,
            loop_guard,
            cumulative,
            keepers: keepers(route, clusters),
        }
    }

    pub(crate) fn id(&self) -> &RouteId {
        &self.id
    }

    /// The metrics of the route.
    pub(crate) fn metrics(&self) -> &Arc<RouteMetrics> {
        &self.metrics
    }

    /// The compiled transforms, for heads that have passed the layers of the route.
    #[inline]
    pub(crate) fn inner_plan(&self) -> &CompiledTransforms {
        &self.plan
    }

    /// True if requests need no `http` types for the route's sake: it has no layers.
    #[inline]
    pub(crate) fn is_raw(&self) -> bool {
        self.is_raw
    }

    /// The reason why the route rejects all requests: it requires a protection that the proxy does
    /// not support.
    pub(crate) fn rejection(&self) -> Option<RouteRejection> {
        self.rejection
    }
    /// True if this proxy has forwarded the request before. `classes` are the known fields of the
    /// head.
    #[inline]
    pub(crate) fn is_loop<H: RequestHead + ?Sized>(&self, head: &H, classes: ClassSet) -> bool {
        // The check for the field class is cheap and excludes nearly all requests.
        classes.contains(FieldClass::CdnLoop)
            && self
                .loop_guard
                .as_ref()
                .is_some_and(|guard| guard.has_forwarded(head))
    }

    /// The filters and layers of the route, if it has any.
    pub(crate) fn extensions(&self) -> Option<&RouteExtensions> {
        self.extensions.as_deref()
    }

    /// Chooses the cluster for a request. `route` must be the route of this state.
    ///
    /// # Errors
    ///
    /// Fails if there is none. A missing cluster of a weighted route keeps its share: giving that
    /// share to the others would hide the mistake.
    ///
    /// A client whose affinity key is of one of the weighted clusters stays with it, whatever the weights.
    /// A filter that assigns a cluster decides before all of that.
    pub(crate) fn choose<H: RequestHead>(
        &self,
        route: &Route,
        snapshot: &Snapshot,
        head: &H,
        random: &Random,
    ) -> Result<ClusterIndex, Nowhere> {
        if let Some(filters) = self.extensions().and_then(RouteExtensions::filters)
            && let Some(assigned) = filters.cluster(head, route).map_err(|_| Nowhere::Failed)?
        {
            // No fallback to the weights: a wrong assignment would go unnoticed.
            return snapshot.cluster_index(assigned).ok_or(Nowhere::NoCluster);
        }
        let cluster = match route.target() {
            RouteTarget::None
            | RouteTarget::Missing(_)
            | RouteTarget::Redirect(_)
            | RouteTarget::Respond(_) => None,
            RouteTarget::Cluster(cluster) => Some(*cluster),
            RouteTarget::Weighted(targets) => {
                if let Some(kept) = self.kept(snapshot, head) {
                    return Ok(kept);
                }
                let total = self.cumulative.last().ok_or(Nowhere::NoCluster)?;
                let share = random.below(*total);
                // Cumulative weights make the draw a binary search.
                let position = self.cumulative.partition_point(|end| *end <= share);
                targets.get(position).and_then(|target| target.cluster())
            }
            RouteTarget::Partitioned(partitions) => {
                let target = partitions.find(head).map_err(Nowhere::NoPartition)?;
                target.cluster()
            }
        };
        cluster.ok_or(Nowhere::NoCluster)
    }

    /// The cluster that the client's affinity key is of.
    pub(crate) fn kept(&self, snapshot: &Snapshot, head: &dyn RequestHead) -> Option<ClusterIndex> {
        let mut keepers = self.keepers.iter();
        let is_kept = |(index, affinity): &&(ClusterIndex, Arc<ClusterAffinity>)| {
            let cluster = snapshot.cluster_at(*index);
            // A policy of the program may panic, which must end no more than this request.
            contained_call(|| affinity.is_named(cluster, head)).unwrap_or_default()
        };
        keepers.find(is_kept).map(|(index, _)| *index)
    }
}

/// The clusters of a weighted route that have session affinity.
fn keepers(
    route: &Route,
    clusters: &[ClusterState],
) -> Box<[(ClusterIndex, Arc<ClusterAffinity>)]> {
    // Other routes have one cluster, or choose it by a key of their own.
    let RouteTarget::Weighted(targets) = route.target() else {
        return Box::default();
    };
    let indices = targets.iter().filter_map(|target| target.cluster());
    let keepers = indices.filter_map(|index| {
        let affinity = clusters.get(index.0 as usize)?.affinity()?;
        Some((index, Arc::clone(affinity)))
    });
    keepers.collect()
}
