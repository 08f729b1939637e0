//! Checks beyond those of the model.

use std::sync::Arc;

use async_trait::async_trait;
use proxy_model::Problems;
use proxy_model::config::ProxyConfig;

/// Checks a configuration beyond what the model demands: names that must belong to a tenant, hosts that must be
/// registered, addresses that must be inside a network.
///
/// The model's own rules are checked before, so a validator sees only configuration that compiles.
///
/// # Example
///
/// ```
/// use async_trait::async_trait;
/// use discovery_core::{Candidate, ConfigValidator};
/// use proxy_model::{Problem, Problems, pointer_to};
///
/// /// Every route must say which hosts it serves.
/// struct HostsRequired;
///
/// #[async_trait]
/// impl ConfigValidator for HostsRequired {
///     async fn validate(&self, candidate: &Candidate<'_>) -> Problems {
///         let mut problems = Problems::new();
///         for (id, route) in &candidate.config.routes {
///             if route.r#match.hosts.as_ref().is_none_or(Vec::is_empty) {
///                 let pointer = pointer_to("/Routes", id.as_str());
///                 problems.push(Problem::error(pointer, "hosts_required", "the route serves every host"));
///             }
///         }
///         problems
///     }
/// }
/// ```
#[async_trait]
pub trait ConfigValidator: Send + Sync {
    /// Returns the problems of the candidate. Pointers begin at the candidate's root: `/Routes/r1`,
    /// `/Clusters/c1`.
    ///
    /// An error rejects the part that its pointer names. For a [service](Scope::Service) that is always the
    /// whole service. In the [merged](Scope::Merged) configuration it is the named route or cluster, if it
    /// came from a source whose items are accepted one by one, and otherwise everything that the source
    /// changed. An error that names neither rejects the whole change. A rejected part continues to serve in
    /// its last accepted form. An error about that form removes the route or cluster.
    ///
    /// A result is cached while the candidate does not change.
    ///
    /// # Cancel safety
    ///
    /// The future is dropped when it takes too long, which counts as an error, or when the engine is dropped.
    async fn validate(&self, candidate: &Candidate<'_>) -> Problems;
}

#[async_trait]
impl<V: ConfigValidator + ?Sized> ConfigValidator for Arc<V> {
    async fn validate(&self, candidate: &Candidate<'_>) -> Problems {
        (**self).validate(candidate).await
    }
}

/// A configuration to validate.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct Candidate<'a> {
    /// The owner of the configuration.
    pub scope: Scope<'a>,
    /// The configuration.
    pub config: &'a ProxyConfig,
}

impl<'a> Candidate<'a> {
    /// Creates the candidate of one service of a source: its routes and clusters.
    pub fn service(source: &'a str, service: &'a str, config: &'a ProxyConfig) -> Self {
        Self {
            scope: Scope::Service { source, service },
            config,
        }
    }

    /// Creates the candidate of the configuration merged from all sources.
    pub fn merged(config: &'a ProxyConfig) -> Self {
        Self {
            scope: Scope::Merged,
            config,
        }
    }
}

/// The owner of a [`Candidate`]'s configuration.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Scope<'a> {
    /// The configuration of one service.
    Service {
        /// Name of the [`Discoverer`](crate::Discoverer).
        source: &'a str,
        /// Name of the service.
        service: &'a str,
    },
    /// The merged configuration of all sources.
    Merged,
}
