//! Registration of a service: an instance's tags at the agent beside it.
//!
//! A [`Registration`] describes an instance. [`register`](Registration::register) checks it, sets the tags
//! at an agent and keeps them set while the [`Registered`] lives: a restarted agent loses the tags that it
//! got over RPC (unless it has a `-tags-file`), and then gets them again.
//!
//! ```no_run
//! use discovery_serf::client::ConnectOptions;
//! use discovery_serf::registration::{Registration, RegistrationError};
//!
//! # async fn until_asked_to_stop() {}
//! # async fn example() -> Result<(), RegistrationError> {
//! let registered = Registration::new("orders", 5000)
//!     .host("orders.example")
//!     .health_path("/healthz")
//!     .instance("orders-1")
//!     .register(&ConnectOptions::new("127.0.0.1:7373"))
//!     .await?;
//!
//! until_asked_to_stop().await;
//!
//! // Nothing new for this instance, then no trace of it. Proxies learn of each in a second or two: serve meanwhile.
//! registered.drain().await?;
//! registered.withdraw().await?;
//! # Ok(())
//! # }
//! ```
//!
//! An agent that is still running but has lost the service, because it has read its configuration again
//! (SIGHUP), gets the tags again within ten seconds. Manual changes, of a weight or of the name of the
//! service, are kept.
//!
//! One node announces one instance of one service, since tags belong to the node: each instance has a
//! separate agent, with a separate node name. If two register the same service at one agent, the last one
//! is announced. Proxies send requests to the gossip address of the agent, at the port of the registration.

mod agent;
mod announce;
mod error;
mod keeper;
mod registered;
mod size;
#[cfg(test)]
mod tests;

use std::borrow::Cow;
use std::sync::Arc;

use self::agent::Agent;
pub use self::error::{RegistrationError, TagLength, TagsTooLong};
pub use self::registered::{Registered, RegistrationState};
pub use self::size::{MAX_ENCODED_TAGS, encoded_len};
use crate::Tags;
use crate::catalog::tags;
use crate::client::ConnectOptions;
use crate::discoverer::Dial;

/// The tags that have a meaning for a proxy. Those that a registration does not set are deleted by it.
const CONTRACT: [&str; 10] = [
    tags::SERVICE,
    tags::HTTP_PORT,
    tags::SCHEME,
    tags::HOST,
    tags::ROUTE_PATH,
    tags::HEALTH_PATH,
    tags::WEIGHT,
    tags::VERSION,
    tags::REGION,
    tags::INSTANCE,
];

/// The description of one instance of a service.
#[derive(Clone, Debug, PartialEq, Eq)]
#[must_use = "nothing is announced until it is registered"]
pub struct Registration {
    tags: Tags,
    takes_over: bool,
}

impl Registration {
    /// Creates an instance of a service, at a port of the address that its agent gossips from.
    ///
    /// A service needs a host or a path to be routed to, unless it is the only one of its cluster.
    pub fn new(service: impl Into<String>, http_port: u16) -> Self {
        let mut tags = Tags::new();
        tags.insert(tags::SERVICE, service.into());
        tags.insert(tags::HTTP_PORT, http_port.to_string());
        Self {
            tags,
            takes_over: false,
        }
    }

    /// Sets the scheme of its URL: `http` or `https`. Default: `http`.
    pub fn scheme(self, scheme: impl Into<String>) -> Self {
        self.tag(tags::SCHEME, scheme.into())
    }

    /// Sets the host of the requests that it gets: `orders.example`. The host takes precedence over a path.
    pub fn host(self, host: impl Into<String>) -> Self {
        self.tag(tags::HOST, host.into())
    }

    /// Sets the path of the requests that it gets, as a template: `/orders/{**rest}`.
    pub fn route_path(self, path: impl Into<String>) -> Self {
        self.tag(tags::ROUTE_PATH, path.into())
    }

    /// Sets the path of its health probes. Default: `/health`, unless the proxy is configured otherwise.
    pub fn health_path(self, path: impl Into<String>) -> Self {
        self.tag(tags::HEALTH_PATH, path.into())
    }

    /// Sets its share of the requests, relative to the other instances of the service: 0 to 1000. With 0 it
    /// gets no new requests. Default: 1.
    pub fn weight(self, weight: u32) -> Self {
        self.tag(tags::WEIGHT, weight.to_string())
    }

    /// Sets the version that is running: `stable`, `canary`, `v2`. Proxies can route by it.
    pub fn version(self, version: impl Into<String>) -> Self {
        self.tag(tags::VERSION, version.into())
    }

    /// Sets the region in which it is running. Proxies can route by it.
    pub fn region(self, region: impl Into<String>) -> Self {
        self.tag(tags::REGION, region.into())
    }

    /// Sets the instance's name in the proxy's configuration, unique within the service. Default: its
    /// address and port.
    pub fn instance(self, instance: impl Into<String>) -> Self {
        self.tag(tags::INSTANCE, instance.into())
    }

    /// Sets any other tag. It takes space in the gossip, has no meaning for a proxy, and is removed when
    /// the service is withdrawn.
    pub fn tag(mut self, key: impl Into<String>, value: impl Into<Vec<u8>>) -> Self {
        self.tags.insert(key.into(), value);
        self
    }

    /// Allows it to replace another service that the node announces, which is an error otherwise. Default:
    /// false.
    ///
    /// An earlier form of the same service is always replaced.
    pub fn take_over(mut self, takes_over: bool) -> Self {
        self.takes_over = takes_over;
        self
    }

    /// The service's name.
    pub fn service(&self) -> Cow<'_, str> {
        let service = self.tags.text(tags::SERVICE);
        service.expect("it is set at the beginning, and no tag is ever removed")
    }

    /// The tags as they will be set.
    pub fn tags(&self) -> &Tags {
        &self.tags
    }

    /// Number of the [`MAX_ENCODED_TAGS`] bytes of the gossip that the tags take. Other tags of the node
    /// are not included.
    pub fn encoded_len(&self) -> usize {
        encoded_len(&self.tags)
    }

    /// Checks everything that can be checked without an agent: that a proxy will understand each tag, and
    /// that they are not too long together.
    ///
    /// # Errors
    ///
    /// Returns [`RegistrationError::InvalidTag`] for the first invalid tag,
    /// [`RegistrationError::NoService`], or [`RegistrationError::TagsTooLong`].
    pub fn check(&self) -> Result<(), RegistrationError> {
        let bytes = |key: &str| self.tags.bytes(key).unwrap_or_default();
        // What is blank counts as absent, which is an error for these two alone.
        tags::service(bytes(tags::SERVICE))?.ok_or(RegistrationError::NoService)?;
        tags::http_port(bytes(tags::HTTP_PORT))?;
        tags::scheme(bytes(tags::SCHEME))?;
        tags::host(bytes(tags::HOST))?;
        tags::route_path(bytes(tags::ROUTE_PATH))?;
        tags::health_path(bytes(tags::HEALTH_PATH))?;
        tags::weight(bytes(tags::WEIGHT))?;
        tags::instance(bytes(tags::INSTANCE))?;
        Ok(TagsTooLong::check(&self.tags)?)
    }

    /// Sets the tags at an agent, and keeps them set over its restarts.
    ///
    /// The change is one step: the other tags of the node stay, and those of an earlier registration of the
    /// service are removed. The proxies of the cluster receive it within a second or two.
    ///
    /// # Errors
    ///
    /// The errors of [`check`](Self::check), which then counts the other tags of the node too. Returns an
    /// error as well if the node already announces another service, or if the agent cannot be reached or
    /// rejects the tags. After an error nothing is kept: call again.
    ///
    /// # Cancel safety
    ///
    /// If the future is dropped, the tags may be set or not, and are not kept.
    ///
    /// # Panics
    ///
    /// Panics outside of a tokio runtime.
    pub async fn register(&self, agent: &ConnectOptions) -> Result<Registered, RegistrationError> {
        let agent = Agent::new(agent.clone(), None);
        Registered::start(self.clone(), agent).await
    }

    /// Sets the tags like [`register`](Self::register), over another transport than TCP. The address in the
    /// options is dialed.
    ///
    /// # Errors, cancel safety and panics
    ///
    /// The same as of [`register`](Self::register).
    pub async fn register_over(
        &self,
        dialer: impl Dial + 'static,
        agent: &ConnectOptions,
    ) -> Result<Registered, RegistrationError> {
        let agent = Agent::new(agent.clone(), Some(Arc::new(dialer)));
        Registered::start(self.clone(), agent).await
    }
}
