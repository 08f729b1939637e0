//! The trait to implement for a registry of your own.

use std::sync::Arc;

use async_trait::async_trait;

use crate::discovery::Discovery;
use crate::error::DiscoverError;
use crate::report::CycleReport;
use crate::unreachable::UnreachableService;

/// A source of services: a registry, a cluster's naming service, a database.
///
/// An implementation provides one method, [`discover`](Self::discover), which returns the services that
/// exist now. It needs no loop, no timer, no cache of its last result and no comparison with it. The
/// [`Runner`](crate::Runner) polls it repeatedly, survives errors, panics and hangs, detects changes and
/// publishes them.
///
/// # Example
///
/// ```
/// use async_trait::async_trait;
/// use discovery_core::{DiscoverError, DiscoveredService, Discoverer, Discovery};
/// use proxy_model::config::DestinationConfig;
///
/// /// Services that are listed in an environment variable: `orders=http://10.0.0.7:8080,web=http://10.0.0.8`.
/// struct Environment(&'static str);
///
/// #[async_trait]
/// impl Discoverer for Environment {
///     fn name(&self) -> &str {
///         "environment"
///     }
///
///     async fn discover(&self) -> Result<Discovery, DiscoverError> {
///         let list = std::env::var(self.0)
///             .map_err(|e| DiscoverError::permanent("the list of services cannot be read").with_source(e))?;
///         Ok(list
///             .split(',')
///             .filter_map(|entry| entry.split_once('='))
///             .map(|(name, address)| {
///                 DiscoveredService::labelled(
///                     name,
///                     [("proxy.enable", "true"), ("proxy.routes.main.hosts", name)],
///                     [("1", DestinationConfig { address: address.to_owned(), ..Default::default() })],
///                 )
///             })
///             .collect())
///     }
/// }
/// ```
///
/// # Handling of results
///
/// Each service is evaluated on its own. An invalid service is *quarantined*: its problems are reported,
/// and its last known good form continues to serve. The others are not affected.
///
/// An error of `discover` changes nothing. Only a successful result removes a service, and a successful
/// empty result removes all of them. An implementation must therefore never return a partial result after a
/// failure. A part that could not be read is named instead: [`DiscoveredService::failed`] for one service,
/// [`Discovery::group_failed`] for the services of, say, one application or one datacenter. A service that
/// exists but did not opt in to be served may be left out, or be returned as
/// [`DiscoveredService::not_enabled`] if there are problems to report.
///
/// [`DiscoveredService::failed`]: crate::DiscoveredService::failed
/// [`DiscoveredService::not_enabled`]: crate::DiscoveredService::not_enabled
#[async_trait]
pub trait Discoverer: Send + Sync {
    /// Names the source in logs, metrics and problems: `consul`, `servicefabric`. Two sources of one proxy should
    /// have different names.
    fn name(&self) -> &str;

    /// Returns all services that the source offers now.
    ///
    /// The future runs on the caller's runtime, so it waits with `.await` and never blocks the thread.
    ///
    /// # Errors
    ///
    /// An error means that the source could not be polled. The runner retries after a back-off, or after
    /// the time in [`DiscoverError::with_retry_after`].
    ///
    /// # Cancel safety
    ///
    /// The future is dropped at any await point when it takes longer than
    /// [`RunnerOptions::discover_timeout`](crate::RunnerOptions::discover_timeout) or when the runner is dropped. The
    /// next call must then work, so state that is changed in steps belongs behind the last await. There is never more
    /// than one call at a time.
    async fn discover(&self) -> Result<Discovery, DiscoverError>;

    /// Receives the [memo](Discovery::with_memo) of the last result that was kept on disk before the program
    /// was restarted. Called at most once, before everything else. It must not block.
    fn restored(&self, memo: &str) {
        let _ = memo;
    }

    /// Returns when the source expects that [`discover`](Self::discover) would now return something else.
    ///
    /// The default never returns: the source is then polled only at its interval. Triggers that come close
    /// together cause one cycle, so an implementation may return arbitrarily often.
    ///
    /// A change that happens between two calls must not be lost: the next call has to return at once.
    /// [`tokio::sync::Notify::notify_one`] and [`tokio::sync::watch`] behave like this.
    ///
    /// # Cancel safety
    ///
    /// The future may be dropped at any await point, and is kept across cycles otherwise. It runs beside `discover`,
    /// never beside another call of itself. A panic ends the waiting for the rest of the runner's life; the interval
    /// remains.
    async fn changed(&self) {
        std::future::pending().await
    }

    /// Receives the services that requests cannot reach: connections are refused, or no destination is
    /// available. Returns true if the next [`discover`](Self::discover) would refresh just these; if so,
    /// the runner calls it now.
    ///
    /// For a source that is not notified of changes at once, and may have missed one: a primary that has
    /// moved, instances that were restarted elsewhere. Such a source remembers the names, and reads these
    /// services again instead of using its cached data. The default is to ignore the report, which is right
    /// for a source with live events.
    ///
    /// The runner limits the rate of calls: for one service at once, then each second, and more rarely
    /// while the refreshes change nothing. It is never called while requests succeed. It must not block.
    fn unreachable(&self, services: &[UnreachableService]) -> bool {
        let _ = services;
        false
    }

    /// Receives the result of each service after a cycle, for a source that reports it: Service Fabric
    /// shows such reports as health of the service.
    ///
    /// Called after every cycle in which the source could be polled, even if it changed nothing, and before
    /// the next one begins. Only the next cycle waits for it.
    ///
    /// # Cancel safety
    ///
    /// The future is dropped when it takes longer than
    /// [`RunnerOptions::report_timeout`](crate::RunnerOptions::report_timeout) or when the runner is
    /// dropped. Reports that were not sent by then wait for the next cycle.
    async fn published(&self, report: &CycleReport) {
        let _ = report;
    }
}

#[async_trait]
impl<D: Discoverer + ?Sized> Discoverer for Arc<D> {
    fn name(&self) -> &str {
        (**self).name()
    }

    async fn discover(&self) -> Result<Discovery, DiscoverError> {
        (**self).discover().await
    }

    async fn changed(&self) {
        (**self).changed().await;
    }

    fn restored(&self, memo: &str) {
        (**self).restored(memo);
    }

    fn unreachable(&self, services: &[UnreachableService]) -> bool {
        (**self).unreachable(services)
    }

    async fn published(&self, report: &CycleReport) {
        (**self).published(report).await;
    }
}
