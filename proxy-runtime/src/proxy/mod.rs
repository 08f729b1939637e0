//! The proxy handle of a program.

mod changes;
mod found;
mod history;
mod service;
mod shared;

use std::fmt;
use std::sync::Arc;

use proxy_model::{ClusterId, DestinationId, Problems, Snapshot};
use tokio::sync::watch;

#[cfg(feature = "affinity-keys")]
use crate::affinity::AffinityKeys;
use crate::head::ErrorPages;
use crate::health::Health;
use crate::observe::targets;

pub use self::changes::{ClusterChange, ClusterChanges};
pub(crate) use self::found::FoundRoute;
pub use self::history::{PastChange, PublishOutcome};
pub use self::service::ProxyService;
pub(crate) use self::shared::{Settings, Shared};

#[cfg(test)]
mod tests;

/// A proxy: its current configuration and its runtime state. Cheap to clone; clones are the same
/// proxy.
///
/// Created by [`Proxy::builder`]. Requests go through a [`ProxyService`]; a program may have one
/// per thread.
///
/// # Examples
///
/// ```
/// use proxy_runtime::Proxy;
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() {
/// let (proxy, driver) = Proxy::builder().build().expect("an empty configuration is valid");
/// // The driver follows configuration changes, probes destinations and measures rates.
/// tokio::spawn(driver);
/// let service = proxy.service();
/// # drop(service);
/// # }
/// ```
#[derive(Clone)]
pub struct Proxy {
    shared: Arc<Shared>,
    alive: Alive,
}

/// Held by every handle of a proxy. The driver ends when all are dropped.
pub(crate) type Alive = Arc<watch::Sender<()>>;

impl Proxy {
    pub(crate) fn new(shared: Arc<Shared>, alive: Alive) -> Self {
        Self { shared, alive }
    }

    /// Creates a service that forwards requests. It has its own connections, which its clones
    /// share. Create one for each single-threaded runtime, or one for a multi-threaded runtime.
    pub fn service(&self) -> ProxyService {
        let pool = self.shared.upstreams().pool();
        ProxyService::new(Arc::clone(&self.shared), pool, Arc::clone(&self.alive))
    }

    /// Replaces the current configuration. Requests in progress keep the configuration they began
    /// with.
    ///
    /// For programs without a channel for
    /// [`ProxyBuilder::snapshots`](crate::ProxyBuilder::snapshots), or with changes of their own:
    /// the latest call or the latest value of the channel wins. Building the state of 100,000
    /// destinations takes 50 to 250 ms on the caller's thread, depending on the number of changes.
    ///
    /// Returns the number of the new generation.
    ///
    /// # Errors
    ///
    /// Fails if the configuration names a policy, a filter or a layer that this proxy does not
    /// have. The current configuration stays.
    pub fn publish(&self, snapshot: Arc<Snapshot>) -> Result<u64, Problems> {
        self.shared.publish(snapshot)
    }

    /// Declares the health of a destination, for programs that know more than the checks do. The
    /// declaration counts besides the enabled checks, any of which may make the destination unhealthy,
    /// until the next one, and as long as the destination keeps its address. [`Health::Unknown`]
    /// withdraws it.
    ///
    /// Returns false if the current configuration has no such destination.
    pub fn set_health(
        &self,
        cluster: &ClusterId,
        destination: &DestinationId,
        health: Health,
    ) -> bool {
        let generation = self.shared.load();
        let Some((cluster, state)) = generation.find_cluster(cluster) else {
            return false;
        };
        let Some((index, _)) = cluster.destination(destination) else {
            return false;
        };
        if state.destination(index).health().assign(health) {
            state.live().health_changed();
            tracing::info!(
                target: targets::HEALTH,
                cluster = %cluster.id(),
                %destination,
                %health,
                "the program declares the health of a destination",
            );
        }
        true
    }

    /// Replaces the keys that the affinity policies `Cookie` and `CustomHeader` encrypt with. They
    /// serve from the next request on.
    #[cfg(feature = "affinity-keys")]
    pub fn set_affinity_keys(&self, keys: AffinityKeys) {
        self.shared.set_affinity_keys(keys);
    }

    /// Replaces the bodies of errors, from the next error on.
    pub fn set_error_pages(&self, pages: ErrorPages) {
        self.shared.set_error_pages(pages);
    }

    /// The current configuration.
    pub fn snapshot(&self) -> Arc<Snapshot> {
        Arc::clone(self.shared.load().snapshot())
    }

    /// The settings of the current configuration that this proxy does not support: those of
    /// [`unsupported`](crate::unsupported), and `https` destinations if it was built without TLS.
    pub fn unsupported(&self) -> Problems {
        self.shared.unsupported(self.shared.load().snapshot())
    }

    /// Problems that were observed with requests: a warning `loop_detected` for each route whose
    /// requests came back to this proxy in the last five minutes, and `unresolved_name` for each
    /// destination name whose last look-up failed.
    pub fn observed_problems(&self) -> Problems {
        self.shared.observed()
    }

    /// A channel with the number of the active generation, updated by each new one.
    pub fn generations(&self) -> watch::Receiver<u64> {
        self.shared.generations()
    }

    /// The changes of clusters by later configurations, beginning with the clusters that are there.
    pub fn cluster_changes(&self) -> ClusterChanges {
        ClusterChanges::new(Arc::clone(&self.shared))
    }

    /// The last configurations, the latest first: at most 20, including rejected ones.
    pub fn history(&self) -> Vec<PastChange> {
        self.shared.history()
    }

    pub(crate) fn shared(&self) -> &Arc<Shared> {
        &self.shared
    }
}

impl fmt::Debug for Proxy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let generation = self.shared.load();
        f.debug_struct("Proxy")
            .field("generation", &generation.number())
            .finish_non_exhaustive()
    }
}
