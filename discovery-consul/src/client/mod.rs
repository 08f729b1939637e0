//! The HTTP API of a Consul agent: [`ConsulClient`], useful on its own.
//!
//! ```no_run
//! # #[cfg(feature = "reqwest")]
//! # async fn example() -> Result<(), Box<dyn std::error::Error>> {
//! use discovery_consul::client::{ConsulClient, ConsulOptions, Query};
//!
//! let client = ConsulClient::new(ConsulOptions::from_env()?)?;
//! let there = Query::new().in_datacenter("vla");
//! for entry in client.health_service("web", &there).await?.value {
//!     println!("{} {} {}", entry.service.id, entry.address(), entry.status());
//! }
//! # Ok(())
//! # }
//! ```
//!
//! # Handling of a call
//!
//! * **Once.** A call is made once. Its error contains the [kind of retry](ConsulError::retry); a
//!   [`Follower`] retries.
//! * **Connections.** All clones of a client share a [limit](ConsulOptions::max_connections), since agents
//!   reject clients with too many. Calls wait for a free slot in the order in which they came, and blocking
//!   queries leave a quarter of the connections to the others.
//! * **Time.** A call with a slot has [its time limit](ConsulOptions::request_timeout), plus the wait and
//!   the jitter of the server if it blocks. After a time-out its connection is closed.
//! * **Errors** have a [kind](ConsulErrorKind) with a hint for the operator. Messages name the call,
//!   contain no token, and only a short, printable beginning of the response.
//! * **Tokens** are sent in a header, never in a URL.
//! * **Limits.** A response has a [maximum length](ConsulOptions::max_body), before and after
//!   decompression.
//! * **Cancellation.** Every call may be dropped at any await point, which aborts the exchange. A writing
//!   call may then have been executed or not.

mod address;
mod agent;
mod blocking;
mod builder;
mod call;
mod catalog;
mod error;
mod kv;
mod model;
mod options;
mod query;
#[cfg(feature = "reqwest")]
mod reqwest_transport;
#[cfg(test)]
mod tests;
#[cfg(feature = "reqwest")]
mod tls;
mod token;

use std::fmt;
use std::sync::Arc;

pub(crate) use self::address::check_address;
pub use self::agent::{AgentSelf, CheckDefinition, ServiceDefinition};
pub use self::blocking::{BlockingIndex, FollowOptions, Followed, Follower, Moved};
pub use self::builder::{BuildError, ClientBuilder};
use self::call::Budget;
pub use self::error::{ConsulError, ConsulErrorKind, Retry};
pub use self::kv::KvPair;
pub use self::model::{
    Check, HealthEntry, HealthStatus, Node, Service, ServiceTags, ServiceWeights, TaggedAddress,
};
pub use self::options::{ConsulOptions, EnvironmentError, TlsOptions};
pub use self::query::{Answer, Consistency, Meta, Query};
#[cfg(feature = "reqwest")]
pub use self::tls::TlsError;
use self::token::Tokens;
pub use self::token::{InvalidToken, Token};
#[cfg(feature = "reqwest")]
pub use discovery_http::ReqwestTransport;
pub use discovery_http::{Transport, TransportError, TransportErrorKind};

/// A client of a Consul agent's HTTP API. Cheap to clone; clones share connections, their limit and the
/// token.
///
/// See the [module](self) for the handling of a call.
#[derive(Clone)]
pub struct ConsulClient {
    shared: Arc<Shared>,
}

struct Shared {
    transport: Arc<dyn Transport>,
    base: String,
    tokens: Tokens,
    budget: Budget,
    options: ConsulOptions,
}

impl ConsulClient {
    /// Creates a client with these options. No call is made.
    ///
    /// # Errors
    ///
    /// The errors of [`ClientBuilder::build`].
    pub fn new(options: ConsulOptions) -> Result<Self, BuildError> {
        Self::builder(options).build()
    }

    /// A client that may have a transport of its own.
    pub fn builder(options: ConsulOptions) -> ClientBuilder {
        ClientBuilder::new(options)
    }

    /// Waits until the file with the token has changed since it was last read before this call. Called
    /// before a query, it shows when to retry after a rejection. Never returns without a
    /// [file](ConsulOptions::token_file).
    ///
    /// # Cancel safety
    ///
    /// May be dropped at any time.
    pub fn token_changed(&self) -> impl Future<Output = ()> + Send + use<> {
        self.shared.tokens.changed()
    }

    /// The agent's address, as a URL.
    pub fn address(&self) -> &str {
        &self.shared.base
    }
}

impl fmt::Debug for ConsulClient {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ConsulClient")
            .field("address", &self.shared.base)
            .field("options", &self.shared.options)
            .finish_non_exhaustive()
    }
}
