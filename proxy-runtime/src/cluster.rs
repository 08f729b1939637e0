//! Live state of one cluster, and the pick of a destination.

use std::sync::Arc;

use arc_swap::ArcSwap;
use discovery_core::{Unreachable, UnreachableClusters};
use parking_lot::Mutex;
use proxy_model::compiled::{Cluster, DestinationIndex};
use proxy_model::config::HttpVersion;
use proxy_model::{ClusterId, RequestHead};

use crate::balance::{Balancer, Candidates, LoadBalancer, Random};
use crate::health::Health;
use crate::live::Available;
use crate::live::ClientKey;
use crate::live::ClusterLive;
use crate::live::DestinationState;
use crate::live::{Assessment, assess};
use crate::observe::InFlightGuard;
use crate::transform::LoopGuard;
use crate::upstream::{Protocols, protocol};

/// The settings of the whole proxy for picking destinations.
#[derive(Debug, Default)]
pub(crate) struct PickContext {
    /// The proxy's own zone.
    pub(crate) zone: Option<Arc<str>>,
    /// The source of randomness.
    pub(crate) random: Random,
    /// The detection of requests that return to the proxy, if enabled.
    pub(crate) loop_guard: Option<Arc<LoopGuard>>,
    /// The receiver of reports about unreachable clusters, if any.
    pub(crate) unreachable: Option<Arc<UnreachableClusters>>,
}

/// The state of one cluster in one generation.
#[derive(Debug)]
pub(crate) struct ClusterState {
    id: ClusterId,
    live: Arc<ClusterLive>,
    client: ClientKey,
    destinations: Box<[Arc<DestinationState>]>,
    balancer: Balancer,
    context: Arc<PickContext>,
    /// True if all destinations use HTTP/1.1 only.
    speaks_http1: bool,
    available: ArcSwap<Available>,
    /// Held by the thread that makes a new list of available destinations. The others use the old one meanwhile.
    renewal: Mutex<()>,
}

impl ClusterState {
    pub(crate) fn new(
        cluster: &Cluster,
        live: Arc<ClusterLive>,
        client: ClientKey,
        destinations: Box<[Arc<DestinationState>]>,
        balancer: Balancer,
        context: Arc<PickContext>,
    ) -> Self {
        let available = Self::assess_now(cluster, &live, &destinations, &context);
        Self {
            id: cluster.id().clone(),
            live,
            client,
            destinations,
            balancer,
            context,
            speaks_http1: speaks_http1(cluster),
            available: ArcSwap::from_pointee(available),
            renewal: Mutex::new(()),
        }
    }

    pub(crate) fn id(&self) -> &ClusterId {
        &self.id
    }

    /// Reports that none of its destinations is available.
    #[cold]
    pub(crate) fn report_none_available(&self) {
        if let Some(unreachable) = &self.context.unreachable {
            unreachable.report(&self.id, Unreachable::Cluster);
        }
    }

    /// The state that is carried over to the next generation.
    pub(crate) fn live(&self) -> &Arc<ClusterLive> {
        &self.live
    }

    /// The key of the settings for connections to the destinations.
    pub(crate) fn client(&self) -> ClientKey {
        self.client
    }

    /// Returns true if all destinations use HTTP/1.1 only.
    #[inline]
    pub(crate) fn speaks_http1(&self) -> bool {
        self.speaks_http1
    }

    /// The destinations, in the order of the configuration.
    pub(crate) fn destinations(&self) -> &[Arc<DestinationState>] {
        &self.destinations
    }

    /// One of its destinations.
    pub(crate) fn destination(&self, index: DestinationIndex) -> &Arc<DestinationState> {
        &self.destinations[index.0 as usize]
    }

    /// Picks a destination for a request; `cluster` is the cluster that this state belongs to.
    ///
    /// `None` when no destination is available, or when the policy wants none.
    pub(crate) fn pick(&self, cluster: &Cluster, head: &dyn RequestHead) -> Option<Picked> {
        self.pick_by(&*self.balancer, cluster, head)
    }

    /// The same with another policy than the cluster's.
    pub(crate) fn pick_by(
        &self,
        policy: &dyn LoadBalancer,
        cluster: &Cluster,
        head: &dyn RequestHead,
    ) -> Option<Picked> {
        let mut available = self.available.load();
        if available.epoch() != self.live.health_epoch() && self.renew(cluster) {
            available = self.available.load();
        }
        self.pick_from(&available, policy, cluster, head)
    }

    /// Picks as if those that `failed` just now were unhealthy. It looks at all destinations.
    #[cold]
    pub(crate) fn pick_other(
        &self,
        cluster: &Cluster,
        head: &dyn RequestHead,
        failed: &[DestinationIndex],
    ) -> Option<Picked> {
        let zone = self.context.zone.as_deref();
        let assessment = assess(cluster, zone, failed, |i| {
            self.destinations[i].health().active()
        });
        let others = Available::new(cluster, &assessment, self.live.health_epoch());
        self.pick_from(&others, &*self.balancer, cluster, head)
    }

    #[inline]
    fn pick_from(
        &self,
        available: &Available,
        policy: &dyn LoadBalancer,
        cluster: &Cluster,
        head: &dyn RequestHead,
    ) -> Option<Picked> {
        let position = match available.members().len() {
            0 => return None,
            // The policy is not asked, so a turn is not taken (I10).
            1 => 0,
            _ => policy.pick(&self.candidates(cluster, available), head)?,
        };
        let index = *available.members().get(position)?;
        Some(Picked {
            index,
            in_flight: self.destination(index).enter(),
        })
    }

    fn candidates<'a>(&'a self, cluster: &'a Cluster, available: &'a Available) -> Candidates<'a> {
        let random = &self.context.random;
        Candidates::new(cluster, &self.destinations, &self.live, random, available)
    }

    /// The list of available destinations as of now.
    pub(crate) fn available(&self, cluster: &Cluster) -> Arc<Available> {
        if self.available.load().epoch() != self.live.health_epoch() {
            self.renew(cluster);
        }
        self.available.load_full()
    }

    /// Returns which destinations may be picked now, and why the others may not.
    pub(crate) fn assess(&self, cluster: &Cluster) -> Assessment {
        assess(cluster, self.context.zone.as_deref(), &[], |i| {
            self.destinations[i].health().active()
        })
    }

    /// Makes a new list, unless another thread is at it.
    #[cold]
    fn renew(&self, cluster: &Cluster) -> bool {
        let Some(_renewing) = self.renewal.try_lock() else {
            return false;
        };
        let available = Self::assess_now(cluster, &self.live, &self.destinations, &self.context);
        self.available.store(Arc::new(available));
        true
    }

    fn assess_now(
        cluster: &Cluster,
        live: &ClusterLive,
        destinations: &[Arc<DestinationState>],
        context: &PickContext,
    ) -> Available {
        // The epoch is read first: a change that comes while the list is made leaves the list behind, not ahead.
        let epoch = live.health_epoch();
        let active = |i: usize| -> Health { destinations[i].health().active() };
        let assessment = assess(cluster, context.zone.as_deref(), &[], active);
        Available::new(cluster, &assessment, epoch)
    }
}

fn speaks_http1(cluster: &Cluster) -> bool {
    let upstream = cluster.upstream();
    let mut destinations = cluster.destinations().iter();
    upstream.version() != HttpVersion::Http10
        && destinations.all(|destination| {
            let scheme = destination.address().scheme();
            protocol::for_request(scheme, upstream) == Ok(Protocols::Http1)
        })
}

/// A destination that was picked for a request, which is in flight there until this is dropped.
#[derive(Debug)]
pub(crate) struct Picked {
    /// The position in the cluster.
    pub(crate) index: DestinationIndex,
    /// The request in flight.
    pub(crate) in_flight: InFlightGuard,
}
