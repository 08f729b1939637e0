//! Live state of one route.

use std::sync::Arc;

use proxy_model::compiled::{ClusterIndex, Route, RouteTarget};

use crate::balance::Random;
use crate::observe::RouteMetrics;
use crate::support::{Refusal, refusal};

/// The state of one route in one generation.
#[derive(Debug)]
pub(crate) struct RouteState {
    metrics: Arc<RouteMetrics>,
    refusal: Option<Refusal>,
    /// For a weighted route, the sum of the weights up to and including each target.
    cumulative: Box<[u64]>,
}

impl RouteState {
    pub(super) fn new(route: &Route, metrics: Arc<RouteMetrics>) -> Self {
        let cumulative = match route.target() {
            RouteTarget::Weighted(targets) => targets
                .iter()
                .scan(0, |sum, target| {
                    *sum += u64::from(target.weight());
                    Some(*sum)
                })
                .collect(),
            RouteTarget::None | RouteTarget::Missing(_) | RouteTarget::Cluster(_) => Box::default(),
        };
        Self {
            metrics,
            refusal: refusal(route),
            cumulative,
        }
    }

    /// What is counted of it.
    pub(crate) fn metrics(&self) -> &Arc<RouteMetrics> {
        &self.metrics
    }

    /// Why its requests are refused, if they are: the route asks for a protection that is not there.
    pub(crate) fn refusal(&self) -> Option<Refusal> {
        self.refusal
    }

    /// The cluster for one request of `route`, which is the route that this state belongs to.
    ///
    /// `None` when there is none: no cluster is named, or it does not exist. So does the share of a weighted target
    /// whose cluster does not exist: to give that share to the others would hide the mistake.
    pub(crate) fn choose(&self, route: &Route, random: &Random) -> Option<ClusterIndex> {
        match route.target() {
            RouteTarget::None | RouteTarget::Missing(_) => None,
            RouteTarget::Cluster(cluster) => Some(*cluster),
            RouteTarget::Weighted(targets) => {
                let share = random.below(*self.cumulative.last()?);
                let position = self.cumulative.partition_point(|end| *end <= share);
                targets.get(position)?.cluster()
            }
        }
    }
}
