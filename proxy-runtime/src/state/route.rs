//! Live state of one route.

use std::sync::Arc;

use proxy_model::RequestHead;
#[cfg(feature = "server")]
use proxy_model::RouteId;
use proxy_model::compiled::{ClusterIndex, KeyRefusal, Route, RouteTarget};

use crate::balance::Random;
use crate::extensions::RouteExtensions;
use crate::http1::{ClassSet, FieldClass};
use crate::observe::RouteMetrics;
use crate::support::{Refusal, refusal};
use crate::transform::HeadPlan;
use crate::transform::{LoopGuard, guards};

/// The state of one route in one generation.
#[derive(Debug)]
pub(crate) struct RouteState {
    #[cfg(feature = "server")]
    id: RouteId,
    metrics: Arc<RouteMetrics>,
    refusal: Option<Refusal>,
    /// What it does to heads, if that can be done on bytes and it has no layers, which want `http` types.
    #[cfg(feature = "server")]
    plan: Option<Arc<HeadPlan>>,
    /// The same, whether it has layers or not.
    inner_plan: Option<Arc<HeadPlan>>,
    extensions: Option<Box<RouteExtensions>>,
    /// How its requests are recognised that come back, unless the route is not guarded.
    loop_guard: Option<Arc<LoopGuard>>,
    /// For a weighted route, the sum of the weights up to and including each target.
    cumulative: Box<[u64]>,
}

/// Why a route leads nowhere.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Nowhere {
    /// No cluster is named, or it does not exist.
    NoCluster,
    /// The request belongs to none of the route's partitions.
    NoPartition(KeyRefusal),
}

impl RouteState {
    pub(super) fn new(
        route: &Route,
        metrics: Arc<RouteMetrics>,
        extensions: Option<Box<RouteExtensions>>,
        loop_guard: Option<&Arc<LoopGuard>>,
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
            | RouteTarget::Partitioned(_) => Box::default(),
        };
        #[cfg(feature = "server")]
        let has_layers = extensions
            .as_ref()
            .is_some_and(|extensions| extensions.layers().is_some());
        let plan = HeadPlan::of(route, loop_guard.as_deref());
        Self {
            #[cfg(feature = "server")]
            id: route.id().clone(),
            metrics,
            refusal: refusal(route),
            #[cfg(feature = "server")]
            plan: plan.clone().filter(|_| !has_layers),
            inner_plan: plan,
            extensions,
            loop_guard,
            cumulative,
        }
    }

    #[cfg(feature = "server")]
    pub(crate) fn id(&self) -> &RouteId {
        &self.id
    }

    /// What is counted of it.
    pub(crate) fn metrics(&self) -> &Arc<RouteMetrics> {
        &self.metrics
    }

    /// What it does to heads that went through its layers, if it has any, and that can be done in one pass.
    pub(crate) fn inner_plan(&self) -> Option<&HeadPlan> {
        self.inner_plan.as_deref()
    }

    /// What it does to heads, if that can be done on bytes.
    #[cfg(feature = "server")]
    #[inline]
    pub(crate) fn plan(&self) -> Option<&HeadPlan> {
        self.plan.as_deref()
    }

    /// Why its requests are refused, if they are: the route asks for a protection that is not there.
    pub(crate) fn refusal(&self) -> Option<Refusal> {
        self.refusal
    }

    /// How its requests are recognised that come back, if they are.
    pub(crate) fn loop_guard(&self) -> Option<&LoopGuard> {
        self.loop_guard.as_deref()
    }

    /// Whether the proxy has forwarded a request of the route before, of whose fields `classes` are there.
    #[inline]
    pub(crate) fn is_loop<H: RequestHead + ?Sized>(&self, head: &H, classes: ClassSet) -> bool {
        classes.contains(FieldClass::CdnLoop)
            && self
                .loop_guard
                .as_ref()
                .is_some_and(|guard| guard.has_forwarded(head))
    }

    /// Its filters and layers, if it has any.
    pub(crate) fn extensions(&self) -> Option<&RouteExtensions> {
        self.extensions.as_deref()
    }

    /// The cluster for one request of `route`, which is the route that this state belongs to.
    ///
    /// # Errors
    ///
    /// There is none. So it is for the share of a weighted target whose cluster does not exist: to give that share to the
    /// others would hide the mistake.
    pub(crate) fn choose<H: RequestHead + ?Sized>(
        &self,
        route: &Route,
        head: &H,
        random: &Random,
    ) -> Result<ClusterIndex, Nowhere> {
        let cluster = match route.target() {
            RouteTarget::None | RouteTarget::Missing(_) => None,
            RouteTarget::Cluster(cluster) => Some(*cluster),
            RouteTarget::Weighted(targets) => {
                let total = self.cumulative.last().ok_or(Nowhere::NoCluster)?;
                let share = random.below(*total);
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
}
