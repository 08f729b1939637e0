//! The REST client: [`Client`] implements [`ClusterCalls`](crate::ClusterCalls) with a gateway of a
//! cluster.
//!
//! ```no_run
//! use discovery_servicefabric::ClusterCalls;
//! # #[cfg(feature = "reqwest")]
//! use discovery_servicefabric::client::{Client, ClientIdentity, ServerTrust};
//!
//! # #[cfg(feature = "reqwest")]
//! # async fn example() -> Result<(), Box<dyn std::error::Error>> {
//! let client = Client::builder("https://node1.cluster.example:19080")
//!     .endpoint("https://node2.cluster.example:19080")
//!     .client_certificate(ClientIdentity::from_files("client.crt", "client.key")?)
//!     .server_trust(ServerTrust::thumbprints(["6B:3F:...:9A"])?)
//!     .build()?;
//! for application in client.applications().await? {
//!     println!("{} {}", application.name, application.status);
//! }
//! # Ok(())
//! # }
//! ```
//!
//! # What a call does
//!
//! * **Endpoints.** Every node answers the same. The client stays with one gateway while it answers. It goes on with the next
//!   when it cannot be reached, and also for what may be wrong with one node only: 500, 502, 503, 504, 401 and 403, and a
//!   404 or anything else that is not in a gateway's words. One that answers then is the one it stays with. What a gateway
//!   says of the question itself is believed, and a 429 is waited out where it was said.
//! * **Retries.** Calls that only read are made again after transport errors and the statuses 408, 429, 502, 503 and 504,
//!   with a back-off that doubles and jitter, and not before `Retry-After` at the gateway that said so; once after a 500.
//!   [`attempts`](ClientOptions::attempts) says how often. A health report goes to another gateway if it has certainly not
//!   been sent, and is otherwise made once.
//! * **Time.** Every call has one [budget](ClientOptions::budget) for all of its pages and attempts. The gateway is told how
//!   long its part may take (`timeout=`); the client waits a little longer, so that it is the gateway that says what was
//!   too slow.
//! * **Pages.** Lists are put together from all their pages, or the call fails: there are no partial lists. Pages, items
//!   and bytes are [bounded](ClientOptions), and a token that comes again is an error.
//! * **Errors.** A [`CallError`](crate::CallError) has a [kind](crate::CallErrorKind) that says what to do. What does not
//!   exist is `Gone` only if the gateway says so itself: with an answer without content, or with one of its own codes. A
//!   bare 404 is a wrong path or another program. Messages name the call, carry no credential, and of what the peer sent
//!   only a short, printable beginning.
//! * **Cancellation.** Every call may be dropped at any await point; the exchange is cut off. A report may then have been
//!   made or not.
//!
//! # Credentials
//!
//! None, an X.509 certificate ([`ClientIdentity`]), or a bearer token ([`TokenSource`]). A token that the gateway refuses is
//! asked for anew, once. Kerberos is not supported. Whom the client trusts is a [`ServerTrust`].
//!
//! Those two types, like [`ReqwestTransport`], need the feature `reqwest`. Without it, a
//! [`Transport`] is brought along.

mod aad;
mod answer;
mod builder;
mod calls;
mod endpoint;
mod exchange;
mod hint;
mod options;
mod paging;
mod report;
mod request;
#[cfg(feature = "reqwest")]
mod reqwest_transport;
mod retry;
mod retry_after;
#[cfg(feature = "reqwest")]
mod tls;
mod token;
mod transport;

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use self::aad::AadMemory;
use self::endpoint::Endpoints;

pub use self::aad::AadMetadata;
pub use self::builder::{BuildError, ClientBuilder};
pub use self::options::ClientOptions;
#[cfg(feature = "reqwest")]
pub use self::reqwest_transport::{ReqwestOptions, ReqwestTransport};
#[cfg(feature = "reqwest")]
pub use self::tls::{ClientIdentity, ServerTrust, Thumbprint, TlsError};
pub use self::token::{
    BearerToken, InvalidToken, StaticToken, TokenError, TokenFile, TokenFn, TokenSource, token_fn,
};
pub use discovery_http::{Transport, TransportError, TransportErrorKind};

/// A client of a cluster's REST gateway. Cheap to clone; clones share connections and detected properties
/// of the gateway.
///
/// See the [module](self) for the handling of a call, and [`ClusterCalls`](crate::ClusterCalls) for the
/// calls.
#[derive(Clone)]
pub struct Client {
    shared: Arc<Shared>,
}

struct Shared {
    transport: Arc<dyn Transport>,
    endpoints: Endpoints,
    options: ClientOptions,
    tokens: Option<Arc<dyn TokenSource>>,
    /// True if the gateway expects kinds of services as numbers. Detected from its responses.
    kinds_as_numbers: AtomicBool,
    aad: AadMemory,
}

impl Client {
    /// A client of the gateway at `endpoint`: `https://node1.cluster.example:19080`. More can be
    /// [added](ClientBuilder::endpoint).
    pub fn builder(endpoint: impl Into<String>) -> ClientBuilder {
        ClientBuilder::new(endpoint.into())
    }
}

impl fmt::Debug for Client {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Client")
            .field("endpoints", &self.shared.endpoints)
            .field("options", &self.shared.options)
            .field("sends_tokens", &self.shared.tokens.is_some())
            .finish_non_exhaustive()
    }
}
