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
/// Implement it for your own registry. Its driver keeps the last known good result and backs off after
/// errors. It accepts that most services disappear, or that there are none at first, only after a second
/// result a few seconds later.
///
/// ```
/// use std::sync::Arc;
///
/// use async_trait::async_trait;
/// use xds_control_plane::sources::{Registry, RegistryError};
/// use xds_control_plane::sources::{ParsedRegistry, parse_registry};
///
/// /// One that is the same forever.
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
    /// Waits until the services differ from the last result, and returns all of them. The first result
    /// comes at once.
    ///
    /// Must be cancel-safe: when the future is dropped and the method is called again, no change is lost.
    async fn next(&mut self) -> Result<ParsedRegistry, RegistryError>;

    /// Reads all services now, whether or not they differ from the last result, to confirm a doubtful
    /// change. A cached response must not be used.
    ///
    /// Must be cancel-safe too.
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

/// All services of a registry. Unchanged ones keep the same `Arc` as before.
pub(crate) type Services = Vec<Arc<RegistryService>>;
