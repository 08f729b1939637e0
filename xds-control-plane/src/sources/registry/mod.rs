//! The registry: which services run, in which branches, and what they provide.

mod document;
mod driver;
mod file;
#[cfg(feature = "http-registry")]
mod http;

use std::sync::Arc;

use async_trait::async_trait;

pub use self::document::{ParsedRegistry, parse_registry};
pub(super) use self::driver::follow;
pub use self::file::FileRegistry;
#[cfg(feature = "http-registry")]
pub use self::http::{HttpRegistry, HttpRegistryOptions, RegistryMode};
use crate::translate::RegistryService;

/// A registry of services.
///
/// Implement it for your own. Who drives it keeps what was last good, backs off after errors, and believes that most
/// services are gone, or that at first there are none, only when it says so again a few seconds later.
///
/// ```
/// use std::sync::Arc;
///
/// use async_trait::async_trait;
/// use xds_control_plane::sources::{Registry, RegistryError};
/// use xds_control_plane::sources::{ParsedRegistry, parse_registry};
///
/// /// One that is the same for ever.
/// struct Fixed(ParsedRegistry, bool);
///
/// #[async_trait]
/// impl Registry for Fixed {
///     async fn next(&mut self) -> Result<ParsedRegistry, RegistryError> {
///         if std::mem::replace(&mut self.1, true) {
///             std::future::pending().await
///         }
///         Ok(self.0.clone())
///     }
///
///     async fn again(&mut self) -> Result<ParsedRegistry, RegistryError> {
///         Ok(self.0.clone())
///     }
/// }
///
/// let services = parse_registry("services: [{name: shop, provides: [{name: http}]}]").unwrap();
/// let registry = Fixed(services, false);
/// ```
#[async_trait]
pub trait Registry: Send {
    /// Waits until there is something else than the last time, and returns all services. The first time that is at once.
    ///
    /// Has to be cancel-safe: when it is dropped and called again, no news is lost.
    async fn next(&mut self) -> Result<ParsedRegistry, RegistryError>;

    /// Asks now, and returns all services, whether that is something else than the last time or not: a second opinion on news
    /// that are hard to believe. What was remembered of the last answer must not be an answer.
    ///
    /// Has to be cancel-safe, too.
    async fn again(&mut self) -> Result<ParsedRegistry, RegistryError>;
}

/// The reason why a registry cannot be read.
#[derive(Debug, Clone, thiserror::Error)]
#[error("{0}")]
pub struct RegistryError(Arc<str>);

impl RegistryError {
    /// Creates an error with a description of the problem and its correction.
    pub fn new(message: impl Into<Arc<str>>) -> Self {
        Self(message.into())
    }
}

/// All services of a registry. Those that have not changed are the same `Arc` as before.
pub(crate) type Services = Vec<Arc<RegistryService>>;
