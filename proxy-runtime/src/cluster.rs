//! Live state of one cluster, and the pick of a destination.

use std::sync::Arc;

use arc_swap::{ArcSwap, Guard};
use discovery_core::{Unreachable, UnreachableClusters};
use http::StatusCode;
use parking_lot::Mutex;
use proxy_model::compiled::{Cluster, DestinationIndex};
use proxy_model::config::HttpVersion;
use proxy_model::{ClusterId, RequestHead};
use tokio::time::Instant;

use crate::affinity::{Bond, ClusterAffinity, KeyFailure, NewKey, RequestKey};
use crate::balance::{Balancer, Candidates, LoadBalancer, Random};
use crate::contain::contained_call;
use crate::live::Available;
use crate::live::ClientKey;
use crate::live::ClusterLive;
use crate::live::DestinationState;
use crate::live::PassiveRule;
use crate::live::{Assessment, AvailabilityRule, Faults, Ineligible, assess};
use crate::observe::InFlightGuard;
use crate::transform::LoopGuard;
#[cfg(feature = "tls")]
use crate::upstream::TlsClient;
use crate::upstream::{OwnCredentials, Protocols, protocol};

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
    /// The certificates of clusters. `None` if no destination is `https`.
    #[cfg(feature = "tls")]
    pub(crate) tls: Option<TlsClient>,
    /// The keys that affinity keys are encrypted with.
    #[cfg(feature = "affinity-keys")]
    pub(crate) affinity_keys: crate::affinity::KeyRing,
}

impl PickContext {
    /// Returns the certificates of a cluster that has its own.
    #[cfg(feature = "tls")]
    pub(crate) fn own_credentials(&self, cluster: &Cluster) -> Option<OwnCredentials> {
        let tls = self.tls.as_ref()?;
        tls.credentials(cluster).map(OwnCredentials::new)
    }

    #[cfg(not(feature = "tls"))]
    #[expect(clippy::unused_self, reason = "as with TLS")]
    pub(crate) fn own_credentials(&self, _: &Cluster) -> Option<OwnCredentials> {
        None
    }
}

/// The policies of one cluster.
#[derive(Debug)]
pub(crate) struct ClusterRules {
    pub(crate) balancer: Balancer,
    /// The policy of available destinations, if it is one of the program.
    pub(crate) availability: Option<AvailabilityRule>,
    pub(crate) affinity: Option<Arc<ClusterAffinity>>,
    pub(crate) passive: Option<Arc<PassiveRule>>,
}

/// The reason why no destination was picked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Unpicked {
    /// No destination is available, or the policy picks none.
    None,
    /// The affinity failure policy rejects the request.
    Rejected(KeyFailure, StatusCode),
}

/// The state of one cluster in one generation.
#[derive(Debug)]
pub(crate) struct ClusterState {
    id: ClusterId,
    live: Arc<ClusterLive>,
    client: ClientKey,
    /// Kept while a request may open a connection with them.
    credentials: Option<OwnCredentials>,
    destinations: Box<[Arc<DestinationState>]>,
    rules: ClusterRules,
    context: Arc<PickContext>,
    /// True if all destinations use HTTP/1.1 only, directly or through a tunnel.
    speaks_http1: bool,
    speaks_http10: bool,
    available: ArcSwap<Available>,
    /// A lock for the thread that renews the list of available destinations. Other threads use the old list
    /// meanwhile.
    renewal: Mutex<()>,
}

impl ClusterState {
    pub(crate) fn new(
        cluster: &Cluster,
        live: Arc<ClusterLive>,
        (client, credentials): (ClientKey, Option<OwnCredentials>),
        destinations: Box<[Arc<DestinationState>]>,
        rules: ClusterRules,
        context: Arc<PickContext>,
    ) -> Self {
        let available = Self::assess_now(cluster, &live, &destinations, &rules, &context);
        Self {
            id: cluster.id().clone(),
            live,
            client,
            credentials,
            destinations,
            rules,
            context,
            speaks_http1: speaks_http1(cluster),
            speaks_http10: cluster.upstream().version() == HttpVersion::Http10,
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

    /// The certificates that connections to its destinations are made with, if it has its own.
    pub(crate) fn credentials(&self) -> Option<&OwnCredentials> {
        self.credentials.as_ref()
    }

    /// Returns true if all destinations use HTTP/1.1 only.
    #[inline]
    pub(crate) fn speaks_http1(&self) -> bool {
        self.speaks_http1
    }

    /// Returns true if requests are sent in HTTP/1.0.
    #[inline]
    pub(crate) fn speaks_http10(&self) -> bool {
        self.speaks_http10
    }

    /// The destinations, in the order of the configuration.
    pub(crate) fn destinations(&self) -> &[Arc<DestinationState>] {
        &self.destinations
    }

    /// One of its destinations.
    pub(crate) fn destination(&self, index: DestinationIndex) -> &Arc<DestinationState> {
        &self.destinations[index.0 as usize]
    }

    /// The session affinity of the cluster, if it has any.
    pub(crate) fn affinity(&self) -> Option<&Arc<ClusterAffinity>> {
        self.rules.affinity.as_ref()
    }

    /// The passive check, if it is enabled.
    #[inline]
    pub(crate) fn passive(&self) -> Option<&Arc<PassiveRule>> {
        self.rules.passive.as_ref()
    }

    /// Picks a destination for a request; `cluster` is the cluster that this state belongs to.
    ///
    /// # Errors
    ///
    /// No destination is available, the policy wants none, or the affinity failure policy rejects the
    /// request.
    pub(crate) fn pick(
        &self,
        cluster: &Cluster,
        head: &dyn RequestHead,
    ) -> Result<Picked, Unpicked> {
        match &self.rules.affinity {
            None => {
                let picked = self.pick_by(&*self.rules.balancer, cluster, head);
                picked.ok_or(Unpicked::None)
            }
            Some(affinity) => self.pick_bound(affinity, cluster, head),
        }
    }

    /// Picks the destination that the client's affinity key names, or one for a new key.
    #[inline(never)]
    fn pick_bound(
        &self,
        affinity: &ClusterAffinity,
        cluster: &Cluster,
        head: &dyn RequestHead,
    ) -> Result<Picked, Unpicked> {
        let failure = match affinity.read(cluster, head) {
            RequestKey::Destination(index) if self.keeps(cluster, index) => {
                return Ok(Picked {
                    index,
                    in_flight: self.destination(index).enter(),
                    bond: Bond::Kept,
                });
            }
            RequestKey::NotSet => None,
            RequestKey::Destination(_) | RequestKey::NotFound => Some(KeyFailure::Unavailable),
            RequestKey::Unreadable => Some(KeyFailure::Unreadable),
        };
        // Without a status the policy lets another destination serve the request.
        if let Some(failure) = failure
            && let Some(status) = affinity.reject(failure, cluster)
        {
            return Err(Unpicked::Rejected(failure, status));
        }
        let picked = self.pick_by(&*self.rules.balancer, cluster, head);
        let mut picked = picked.ok_or(Unpicked::None)?;
        picked.bond = Bond::New {
            is_https: head.is_https(),
        };
        Ok(picked)
    }

    /// True if a destination keeps the clients that it has: while it is available, whatever its tier
    /// and zone, and for a time after its weight became 0.
    pub(crate) fn keeps(&self, cluster: &Cluster, index: DestinationIndex) -> bool {
        let Some(destination) = cluster.destinations().get(index.0 as usize) else {
            return false;
        };
        let state = self.destination(index);
        // The usual case, for which the list is at hand.
        if self.list(cluster).has(index) {
            return true;
        }
        let (faults, position) = (self.faults(cluster), index.0 as usize);
        if faults.of(position).is_some()
            || faults.refusal(position) == Some(Ineligible::Maintenance)
        {
            return false;
        }
        let time = cluster.affinity().and_then(|affinity| affinity.drain());
        let is_over = |since: Instant| time.is_some_and(|time| since.elapsed() >= time);
        // Without a weight it drains, for as long as the configuration says.
        !state.is_drained(cluster, destination) || !state.drains_since().is_some_and(is_over)
    }

    /// Returns the header that gives a client the key of a destination with this bond, if it needs one.
    /// `names_cluster`: with that of the cluster.
    #[inline]
    pub(crate) fn new_key(
        &self,
        cluster: &Cluster,
        index: DestinationIndex,
        bond: Bond,
        names_cluster: bool,
    ) -> Option<NewKey> {
        let Bond::New { is_https } = bond else {
            return None;
        };
        let affinity = self.rules.affinity.as_ref()?;
        // A policy of the program may panic, which costs the client its key and no more.
        contained_call(|| affinity.give(cluster, index, names_cluster, is_https))
            .unwrap_or_default()
    }

    /// True if a request with this bond may go to no other destination: its key names the one that it
    /// has, and the failure policy rejects keys without their destination.
    #[inline]
    pub(crate) fn is_bound(&self, cluster: &Cluster, bond: Bond) -> bool {
        bond == Bond::Kept && self.rejects_unavailable(cluster)
    }

    #[cold]
    fn rejects_unavailable(&self, cluster: &Cluster) -> bool {
        self.rules.affinity.as_ref().is_some_and(|affinity| {
            let reject = || affinity.reject(KeyFailure::Unavailable, cluster);
            contained_call(reject).is_ok_and(|rejected| rejected.is_some())
        })
    }

    /// Picks a destination like [`pick`](Self::pick), with `policy` instead of the cluster's policy.
    #[inline]
    pub(crate) fn pick_by(
        &self,
        policy: &dyn LoadBalancer,
        cluster: &Cluster,
        head: &dyn RequestHead,
    ) -> Option<Picked> {
        let available = self.list(cluster);
        self.pick_from(&available, policy, cluster, head)
    }

    /// Picks a destination as if those that `failed` were unhealthy. Examines all destinations.
    #[cold]
    pub(crate) fn pick_other(
        &self,
        cluster: &Cluster,
        head: &dyn RequestHead,
        failed: &[DestinationIndex],
    ) -> Option<Picked> {
        let zone = self.context.zone.as_deref();
        let faults = self.faults(cluster);
        let assessment = assess(cluster, zone, failed, Some(&faults));
        let others = Available::new(cluster, &assessment, self.live.health_epoch(), None);
        let mut picked = self.pick_from(&others, &*self.rules.balancer, cluster, head)?;
        // The key of the failed destination is replaced.
        if self.rules.affinity.is_some() {
            picked.bond = Bond::New {
                is_https: head.is_https(),
            };
        }
        Some(picked)
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
            1 if !policy.is_always_asked() => 0,
            _ => policy.pick(&self.candidates(cluster, available), head)?,
        };
        // A policy of the program may return any number.
        let index = *available.members().get(position)?;
        Some(Picked {
            index,
            in_flight: self.destination(index).enter(),
            bond: Bond::None,
        })
    }

    fn candidates<'a>(&'a self, cluster: &'a Cluster, available: &'a Available) -> Candidates<'a> {
        let random = &self.context.random;
        Candidates::new(cluster, &self.destinations, &self.live, random, available)
    }

    /// Returns the current list of available destinations.
    pub(crate) fn available(&self, cluster: &Cluster) -> Arc<Available> {
        Guard::into_inner(self.list(cluster))
    }

    #[inline]
    fn list(&self, cluster: &Cluster) -> Guard<Arc<Available>> {
        let available = self.available.load();
        if available.is_outdated(self.live.health_epoch()) && self.renew(cluster) {
            return self.available.load();
        }
        available
    }

    /// Returns the destinations that may be picked now, and for each of the others the reason against it.
    pub(crate) fn assess(&self, cluster: &Cluster) -> Assessment {
        // The time out of a destination may be over.
        drop(self.list(cluster));
        let faults = self.faults(cluster);
        assess(cluster, self.context.zone.as_deref(), &[], Some(&faults))
    }

    /// Renews the list, unless another thread does so.
    #[cold]
    fn renew(&self, cluster: &Cluster) -> bool {
        let Some(_renewing) = self.renewal.try_lock() else {
            return false;
        };
        let (live, destinations) = (&self.live, &self.destinations);
        let available = Self::assess_now(cluster, live, destinations, &self.rules, &self.context);
        self.available.store(Arc::new(available));
        true
    }

    fn assess_now(
        cluster: &Cluster,
        live: &ClusterLive,
        destinations: &[Arc<DestinationState>],
        rules: &ClusterRules,
        context: &PickContext,
    ) -> Available {
        // The epoch is read first: a change that comes while the list is made leaves the list behind, not ahead.
        let epoch = live.health_epoch();
        let mut until = None;
        if cluster.passive_check().is_some() {
            let now = Instant::now();
            let outs = destinations.iter().map(|state| state.health());
            // The list is outdated when the first of them comes back.
            until = outs.filter_map(|health| health.reactivate(now)).min();
        }
        let faults = Faults::of_all(cluster, destinations, rules.availability.as_ref());
        let assessment = assess(cluster, context.zone.as_deref(), &[], Some(&faults));
        Available::new(cluster, &assessment, epoch, until)
    }

    fn faults<'a>(&'a self, cluster: &'a Cluster) -> Faults<'a> {
        Faults::of_all(
            cluster,
            &self.destinations,
            self.rules.availability.as_ref(),
        )
    }
}

fn speaks_http1(cluster: &Cluster) -> bool {
    let upstream = cluster.upstream();
    let mut destinations = cluster.destinations().iter();
    destinations.all(|destination| {
        protocol::for_request(destination.address().scheme(), upstream) == Ok(Protocols::Http1)
    })
}

/// A destination that was picked for a request, which is in flight there until this is dropped.
#[derive(Debug)]
pub(crate) struct Picked {
    /// The position in the cluster.
    pub(crate) index: DestinationIndex,
    /// The request in flight.
    pub(crate) in_flight: InFlightGuard,
    /// The relation of the destination to the affinity key of the request.
    pub(crate) bond: Bond,
}
