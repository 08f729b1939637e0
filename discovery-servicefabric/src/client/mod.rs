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
//! # Handling of a call
//!
//! * **Endpoints.** All nodes respond alike, so the client stays with one gateway while it responds. It
//!   changes to the next one if the gateway cannot be reached, and for errors that may concern one node
//!   only: 429, 500, 502, 503, 504, 401 and 403, and a 404 or any other response without an error body of a
//!   gateway. The first one to succeed is the one it stays with. An error of a gateway about the call
//!   itself is final.
//! * **Retries.** Read-only calls are retried after transport errors and the statuses 408, 429, 502, 503
//!   and 504, with a doubling back-off and jitter, and not before `Retry-After` at the gateway that sent
//!   it; once after a 500. [`attempts`](ClientOptions::attempts) limits their number. A health report goes
//!   to another gateway if it has certainly not been sent, and is otherwise sent once.
//! * **Time.** Every call has one [budget](ClientOptions::budget) for all of its pages and attempts. The
//!   gateway receives its time limit (`timeout=`); the client waits a little longer, so that the gateway
//!   can report the slow part.
//! * **Pages.** Lists are joined from all their pages, or the call fails: there are no partial lists.
//!   Pages, items and bytes are [limited](ClientOptions), and a repeated token is an error.
//! * **Errors.** A [`CallError`](crate::CallError) has a [kind](crate::CallErrorKind) that decides about
//!   the remedy. A missing entity is `Gone` only if the gateway itself reports it: with a response without
//!   content, or with one of its own codes. A bare 404 comes from a wrong path or another program. Messages
//!   name the call, contain no credential, and only a short, printable beginning of the response.
//! * **Cancellation.** Every call may be dropped at any await point, which aborts the exchange. A report
//!   may then have been made or not.
//!
//! # Credentials
//!
//! Either none, an X.509 certificate ([`ClientIdentity`]), or a bearer token ([`TokenSource`]). A rejected
//! token is requested again once. Kerberos is not supported. The trusted servers are a [`ServerTrust`].
//!
//! The certificate types, like [`ReqwestTransport`], need the feature `reqwest`. Without it, the program
//! provides a [`Transport`].

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
use self::endpoint::GatewayEndpoints;

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
    endpoints: GatewayEndpoints,
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
