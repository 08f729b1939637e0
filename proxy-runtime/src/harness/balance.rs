//! A harness for load balancing policies.

use std::fmt;
use std::sync::Arc;

use proxy_model::config::{ClusterConfig, ProxyConfig};
use proxy_model::{ClusterId, CompileOptions, DestinationId, Problems, RequestHead, Snapshot};

use crate::balance::{LoadBalancer, Random};
use crate::cluster::{ClusterState, PickContext};
use crate::observe::InFlightGuard;
use crate::state::{Generation, Registered};

/// A harness for load balancing policies: one cluster without a network, for tests and benchmarks.
///
/// # Examples
///
/// ```
/// use proxy_runtime::balance::RoundRobin;
/// use proxy_runtime::harness::BalancerHarness;
/// use proxy_runtime::proxy_model::config::{ClusterConfig, DestinationConfig};
///
/// let destination = |address: &str| DestinationConfig {
///     address: address.to_owned(),
///     ..DestinationConfig::default()
/// };
/// let cluster = ClusterConfig {
///     destinations: [
///         ("a".into(), destination("http://10.0.0.1/")),
///         ("b".into(), destination("http://10.0.0.2/")),
///     ]
///     .into_iter()
///     .collect(),
///     ..ClusterConfig::default()
/// };
/// let harness = BalancerHarness::new(cluster, 42).unwrap();
/// let picks: Vec<_> = (0..3).map(|_| harness.pick(&RoundRobin, None).unwrap()).collect();
/// assert_eq!(picks, ["a", "b", "a"]);
/// ```
pub struct BalancerHarness {
    generation: Generation,
    in_flight: Vec<InFlightGuard>,
}

impl BalancerHarness {
    /// A request for `/` without headers.
    pub(crate) const GET: HarnessHead = HarnessHead(());

    /// Creates a cluster of these destinations without requests in flight. `seed` makes random
    /// choices repeatable. The policy of the configuration is ignored.
    ///
    /// # Errors
    ///
    /// Fails if the configuration is invalid.
    pub fn new(mut cluster: ClusterConfig, seed: u64) -> Result<Self, Problems> {
        cluster.load_balancing_policy = None;
        let mut config = ProxyConfig::default();
        config.clusters.insert(ClusterId::new("harness"), cluster);
        let (snapshot, _) = Snapshot::compile(config, &CompileOptions::default())?;
        let context = Arc::new(PickContext {
            random: Random::seeded(seed),
            ..PickContext::default()
        });
        Ok(Self {
            generation: Generation::first(Arc::new(snapshot), &Registered::default(), &context)?,
            in_flight: Vec::new(),
        })
    }

    /// Adds requests in flight at a destination. An unknown destination is ignored.
    pub fn occupy(&mut self, destination: &DestinationId, requests: usize) {
        let found = self.generation.snapshot().clusters()[0].destination(destination);
        if let Some((index, _)) = found {
            let state = self.state().destination(index);
            let guards: Vec<_> = (0..requests).map(|_| state.enter()).collect();
            self.in_flight.extend(guards);
        }
    }

    /// Returns the destination that a request would go to: one with this head, or a `GET` for `/` without headers. It
    /// does not count as in flight afterwards.
    pub fn pick(
        &self,
        policy: &dyn LoadBalancer,
        head: Option<&dyn RequestHead>,
    ) -> Option<&DestinationId> {
        let cluster = &self.generation.snapshot().clusters()[0];
        let head = head.unwrap_or(&Self::GET);
        let picked = self.state().pick_by(policy, cluster, head)?;
        Some(cluster.destinations()[picked.index.0 as usize].id())
    }

    fn state(&self) -> &ClusterState {
        self.generation
            .cluster(proxy_model::compiled::ClusterIndex(0))
    }

    /// Makes each worker count its own requests, as at a busy destination.
    #[cfg(all(test, feature = "server"))]
    pub(crate) fn split(&self) {
        for destination in self.state().destinations() {
            destination.metrics().split();
        }
    }

    #[cfg(test)]
    pub(crate) fn take_turn(&self) -> u64 {
        self.state().live().next_turn()
    }

    #[cfg(test)]
    pub(crate) fn set_turn(&self, turn: u64) {
        self.state().live().set_turn(turn);
    }
}

impl fmt::Debug for BalancerHarness {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let destinations = self.state().destinations().iter();
        f.debug_map()
            .entries(destinations.map(|d| (d.id(), d.in_flight())))
            .finish()
    }
}

/// The request [`BalancerHarness::GET`].
#[derive(Clone, Copy, Debug)]
pub(crate) struct HarnessHead(());

impl RequestHead for HarnessHead {
    fn method(&self) -> &str {
        "GET"
    }

    fn path(&self) -> &str {
        "/"
    }

    fn query(&self) -> Option<&str> {
        None
    }

    fn authority(&self) -> &str {
        ""
    }

    fn is_https(&self) -> bool {
        false
    }

    fn for_each_header(&self, _: &str, _: &mut dyn FnMut(&[u8]) -> bool) {}
}
