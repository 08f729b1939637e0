//! The proxy as a program holds it.

mod found;
mod history;
mod service;
mod shared;

use std::fmt;
use std::sync::Arc;

use proxy_model::{Problems, Snapshot};
use tokio::sync::watch;

pub(crate) use self::found::FoundRoute;
pub use self::history::{Outcome, PastChange};
pub use self::service::ProxyService;
pub(crate) use self::shared::{Settings, Shared};

#[cfg(test)]
mod tests;

/// A proxy: its current configuration and everything that is known at run time. Cheap to clone; clones are the same
/// proxy.
///
/// It is made by [`Proxy::builder`]. Requests go through a [`ProxyService`], of which there may be as many as there are
/// threads.
///
/// # Examples
///
/// ```
/// use proxy_runtime::Proxy;
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() {
/// let (proxy, driver) = Proxy::builder().build().expect("an empty configuration is valid");
/// // The driver follows changes, probes destinations and measures rates.
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

/// Held by everything that uses a proxy. The driver ends when nobody does any more.
pub(crate) type Alive = Arc<watch::Sender<()>>;

impl Proxy {
    pub(crate) fn new(shared: Arc<Shared>, alive: Alive) -> Self {
        Self { shared, alive }
    }

    /// A service that forwards requests. It has connections of its own, which its clones share: one for each
    /// single-threaded runtime is best, and one for all threads is good.
    pub fn service(&self) -> ProxyService {
        let pool = self.shared.upstreams().pool();
        ProxyService::new(Arc::clone(&self.shared), pool, Arc::clone(&self.alive))
    }

    /// Puts a configuration in place of the current one. Requests that have begun go on with the one they began with.
    ///
    /// This is for programs that have no source for [`ProxyBuilder::snapshots`](crate::ProxyBuilder::snapshots), or that mix in changes of their own:
    /// the latest call or the latest change of the source counts. Building the state of 100,000 destinations takes from
    /// 50 to 250 ms, depending on how much changes, on the caller's thread.
    ///
    /// Returns the number of the generation that serves now.
    ///
    /// # Errors
    ///
    /// The configuration names a policy, a filter or a layer that this proxy does not have. The current one stays.
    pub fn publish(&self, snapshot: Arc<Snapshot>) -> Result<u64, Problems> {
        self.shared.publish(snapshot)
    }

    /// The current configuration.
    pub fn snapshot(&self) -> Arc<Snapshot> {
        Arc::clone(self.shared.load().snapshot())
    }

    /// What the current configuration says that this proxy does not honour, as [`unsupported`](crate::unsupported), and
    /// `https` destinations if it was built without TLS settings for them.
    pub fn unsupported(&self) -> Problems {
        self.shared.unsupported(self.shared.load().snapshot())
    }

    /// What goes wrong with requests because of the configuration or of what it names: a warning `loop_detected` for each route
    /// whose requests came back to this proxy in the last five minutes, and `unresolved_name` for each name of a destination
    /// whose last look-up failed.
    pub fn observed_problems(&self) -> Problems {
        self.shared.observed()
    }

    /// A signal with the number of the generation that serves, for each new one.
    pub fn generations(&self) -> watch::Receiver<u64> {
        self.shared.generations()
    }

    /// The last configurations, the latest first: at most 20, with those that were refused.
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
