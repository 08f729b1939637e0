//! Resolution of destinations: one name in the configuration becomes one destination per address.

#[cfg(feature = "dns")]
mod dns;
#[cfg(feature = "dns")]
mod lookup;
#[cfg(feature = "dns")]
mod names;
#[cfg(feature = "dns")]
mod place;
#[cfg(all(test, feature = "dns"))]
mod tests;

use std::error::Error;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use proxy_model::{ClusterId, Problems};

#[cfg(feature = "dns")]
pub use self::dns::{AddressFamily, DnsResolver};
#[cfg(feature = "dns")]
pub use self::lookup::{Lookup, SrvRecord, SystemLookup};
#[cfg(feature = "dns")]
pub use self::place::is_service;
use crate::discovery::Destinations;

/// Replaces the destinations of clusters by the ones that they resolve to, when configurations are
/// [merged](crate::Merge) and again from time to time.
///
/// # Example
///
/// ```
/// use async_trait::async_trait;
/// use discovery_core::resolver::{DestinationResolver, ResolveError, Resolved};
/// use discovery_core::Destinations;
/// use proxy_model::ClusterId;
///
/// /// Sends everything to a local port: for a developer's machine.
/// struct Local(u16);
///
/// #[async_trait]
/// impl DestinationResolver for Local {
///     async fn resolve(&self, _: &ClusterId, destinations: &Destinations) -> Result<Resolved, ResolveError> {
///         let mut destinations = destinations.clone();
///         for destination in destinations.values_mut() {
///             destination.address = format!("http://127.0.0.1:{}", self.0);
///         }
///         Ok(Resolved::new(destinations))
///     }
/// }
/// ```
#[async_trait]
pub trait DestinationResolver: Send + Sync {
    /// Resolves the destinations of a cluster.
    ///
    /// Called when a cluster appears or its destinations change, and again after [`Resolved::refresh_after`]. Several
    /// clusters are resolved at the same time.
    ///
    /// # Errors
    ///
    /// After an error, the cluster keeps its last resolved destinations, or has no destination if it was
    /// never resolved. The resolver is called again soon. A result with an unusable destination counts as
    /// an error. If only some of the destinations cannot be resolved, return the others and report the
    /// problem in [`Resolved::problems`].
    ///
    /// # Cancel safety
    ///
    /// The future is dropped when it takes longer than
    /// [`MergeOptions::resolve_timeout`](crate::merge::MergeOptions::resolve_timeout), which counts as an error, when
    /// the cluster changes meanwhile, and when the merge is dropped.
    async fn resolve(
        &self,
        cluster: &ClusterId,
        destinations: &Destinations,
    ) -> Result<Resolved, ResolveError>;

    /// Removes the state of a cluster that no longer exists.
    fn forget(&self, cluster: &ClusterId) {
        let _ = cluster;
    }
}

#[async_trait]
impl<R: DestinationResolver + ?Sized> DestinationResolver for Arc<R> {
    async fn resolve(
        &self,
        cluster: &ClusterId,
        destinations: &Destinations,
    ) -> Result<Resolved, ResolveError> {
        (**self).resolve(cluster, destinations).await
    }

    fn forget(&self, cluster: &ClusterId) {
        (**self).forget(cluster);
    }
}

/// The resolved destinations of a cluster.
#[derive(Clone, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct Resolved {
    /// The destinations that serve.
    pub destinations: Destinations,
    /// Problems of destinations that could not be resolved. Pointers begin at the cluster:
    /// `/Destinations/d1`.
    pub problems: Problems,
    /// The time until the next resolution, at least 1 s. `None` to resolve again only if the cluster's
    /// destinations change.
    pub refresh_after: Option<Duration>,
}

impl Resolved {
    /// Creates a result that is valid until the cluster's destinations change.
    pub fn new(destinations: Destinations) -> Self {
        Self {
            destinations,
            ..Self::default()
        }
    }

    /// Sets the time until the next resolution.
    #[must_use]
    pub fn with_refresh_after(mut self, wait: Duration) -> Self {
        self.refresh_after = Some(wait);
        self
    }

    /// Replaces the problems.
    #[must_use]
    pub fn with_problems(mut self, problems: Problems) -> Self {
        self.problems = problems;
        self
    }
}

/// The reason why a cluster's destinations could not be resolved.
#[derive(Debug, thiserror::Error)]
#[error("{message}")]
pub struct ResolveError {
    message: String,
    source: Option<Box<dyn Error + Send + Sync>>,
}

impl ResolveError {
    /// Creates an error with a message of one line.
    pub fn new(message: impl Into<String>) -> Self {
        Self {
            message: message.into(),
            source: None,
        }
    }

    /// Adds the cause.
    #[must_use]
    pub fn with_source(mut self, source: impl Into<Box<dyn Error + Send + Sync>>) -> Self {
        self.source = Some(source.into());
        self
    }
}
