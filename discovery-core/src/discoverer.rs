//! The trait to implement for a registry of your own.

use std::sync::Arc;

use async_trait::async_trait;

use crate::discovery::Discovery;
use crate::error::DiscoverError;
use crate::report::RoundReport;
use crate::unreachable::UnreachableService;

/// A source of services: a registry, a cluster's naming service, a database.
///
/// An implementation answers one question, [`discover`](Self::discover): *which services are there now?* It needs no
/// loop, no timer, no cache of its last answer and no comparison with it. The [`Runner`](crate::Runner) asks again and
/// again, survives errors, panics and hangs, notices what changed and publishes it.
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
/// # What happens to an answer
///
/// Each service is judged on its own. A service that cannot be understood is *quarantined*: its reasons are reported,
/// and what it last said that was right goes on serving. The others are not affected.
///
/// An error of `discover` leaves everything as it was. Only a successful answer removes a service, and a successful
/// empty answer removes all of them; so an implementation must never answer with what it happened to get before
/// something failed. A part that could not be read is named instead: [`DiscoveredService::failed`] for one service,
/// [`Discovery::group_failed`] for the services of, say, one application or one datacenter. A service that is there and
/// does not ask to be served may be left out, or be answered as [`DiscoveredService::not_enlisted`] if there is something
/// to say of it.
///
/// [`DiscoveredService::failed`]: crate::DiscoveredService::failed
/// [`DiscoveredService::not_enlisted`]: crate::DiscoveredService::not_enlisted
#[async_trait]
pub trait Discoverer: Send + Sync {
    /// Names the source in logs, metrics and problems: `consul`, `servicefabric`. Two sources of one proxy should
    /// have different names.
    fn name(&self) -> &str;

    /// Returns all services that the source offers now.
    ///
    /// It runs on the caller's runtime, so it waits with `.await` and never blocks the thread.
    ///
    /// # Errors
    ///
    /// An error says that the question was not answered. The runner asks again after a back-off, or when
    /// [`DiscoverError::with_retry_after`] says so.
    ///
    /// # Cancel safety
    ///
    /// The future is dropped at any await point when it takes longer than
    /// [`RunnerOptions::discover_timeout`](crate::RunnerOptions::discover_timeout) or when the runner is dropped. The
    /// next call must then work, so state that is changed in steps belongs behind the last await. There is never more
    /// than one call at a time.
    async fn discover(&self) -> Result<Discovery, DiscoverError>;

    /// Returns when the source expects that [`discover`](Self::discover) would now return something else.
    ///
    /// The default never returns: the source is then asked on its interval only. Triggers that come close together are
    /// folded into one round, so an implementation may return as often as it likes.
    ///
    /// A change that happens while nobody waits must not be lost: the next call has to return at once.
    /// [`tokio::sync::Notify::notify_one`] and [`tokio::sync::watch`] behave so.
    ///
    /// # Cancel safety
    ///
    /// The future may be dropped at any await point, and is kept across rounds otherwise. It runs beside `discover`,
    /// never beside another call of itself. A panic ends the waiting for the rest of the runner's life; the interval
    /// remains.
    async fn changed(&self) {
        std::future::pending().await
    }

    /// Hears which services requests do not get through to: connections are refused, or no destination is available.
    /// Returns whether the next [`discover`](Self::discover) would look at just these; if so, the runner calls it now.
    ///
    /// For a source that is not told of changes at once, and may have missed one: a primary that has moved, instances that
    /// were started again elsewhere. Such a source remembers the names, and reads these services again instead of believing
    /// what it knows. The default is to ignore it, which is right for a source with live events.
    ///
    /// The runner limits how often this is called: for one service at once, then each second, and more rarely the longer
    /// that changes nothing. It is never called while requests succeed. It must not block.
    fn unreachable(&self, services: &[UnreachableService]) -> bool {
        let _ = services;
        false
    }

    /// Learns what became of each service after a round, for a source that wants to be told: Service Fabric shows
    /// such reports as health of the service.
    ///
    /// Called after every round that had an answer, whether or not it changed anything, and before the next one
    /// begins. Nothing waits for it but the next round.
    ///
    /// # Cancel safety
    ///
    /// The future is dropped when it takes longer than
    /// [`RunnerOptions::report_timeout`](crate::RunnerOptions::report_timeout) or when the runner is dropped; what it
    /// did not tell by then is not told until the next round.
    async fn published(&self, report: &RoundReport) {
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

    fn unreachable(&self, services: &[UnreachableService]) -> bool {
        (**self).unreachable(services)
    }

    async fn published(&self, report: &RoundReport) {
        (**self).published(report).await;
    }
}
