//! A client of the RPC of a [Serf](https://github.com/hashicorp/serf) agent.
//!
//! ```no_run
//! use discovery_serf::client::{ConnectOptions, EventFilter, SerfClient};
//!
//! # async fn example() -> Result<(), Box<dyn std::error::Error>> {
//! let options = ConnectOptions::new("127.0.0.1:7373").with_auth_key("sekrit");
//! let client = SerfClient::connect(&options).await?;
//! // First the stream, then the list: nothing that happens in between is missed.
//! let mut events = client.stream(&EventFilter::members()).await?;
//! loop {
//!     for member in client.members().await? {
//!         println!("{} {} {:?}", member.name, member.status, member.tags);
//!     }
//!     // An event says that something has changed; the list says what is.
//!     if events.next().await.is_none() {
//!         break;
//!     }
//! }
//! # Ok(())
//! # }
//! ```
//!
//! The RPC is plain TCP, on port 7373 by default. A client that can connect has full control of the agent,
//! unless its configuration has an `rpc_auth`. An eavesdropper gets that key. The agent should therefore
//! listen on loopback, or the connection use a tunnel: [`SerfClient::connect_over`] accepts any transport.
//!
//! Input from an agent is untrusted. The size of messages and the numbers of streams and requests are
//! limited; strings may be any bytes. Malformed input ends the connection with a
//! [`Protocol`](ClientErrorKind::Protocol) error.

mod auth_key;
mod calls;
mod connect;
mod connection;
mod error;
mod event;
mod filter;
mod options;
mod queue;
mod stats;
mod stream;
#[cfg(test)]
mod tests;

use std::fmt;
use std::sync::Arc;

pub use self::auth_key::AuthKey;
use self::connection::Handle;
pub use self::error::{ClientError, ClientErrorKind};
pub use self::event::{Event, MemberEventKind};
pub use self::filter::{EventFilter, MemberFilter};
pub use self::options::ConnectOptions;
pub use self::stats::Stats;
pub use self::stream::{EventError, EventStream};

/// A connection to an agent. Clones share it; it ends when the last of them and of its streams is dropped.
///
/// See the [module](self) for an example.
///
/// # Connection
///
/// A task of the caller's runtime reads and writes. The client does not reconnect: after the end of the
/// connection, every request fails with [`Closed`](ClientErrorKind::Closed), [`closed`](Self::closed)
/// returns, and [`end`](Self::end) has the reason.
///
/// # Time
///
/// An agent handles the requests of a connection one after the other, and responds in this order. The time
/// limit of each is [`request_timeout`](ConnectOptions::request_timeout), from the end of the previous one.
/// `join`, `leave`, `force-leave` and `tags` wait for the cluster, and have 10 s more; `join` for each
/// address. A long response may take longer while it arrives at 1 MiB per second or more. A request that
/// times out ends the connection: its reply could come at any time, and another agent serves better than a
/// stalled one.
///
/// # Cancel safety
///
/// Every request may be dropped at any time, and leaves the connection usable. The request may have been
/// executed or not.
#[derive(Clone)]
pub struct SerfClient {
    handle: Arc<Handle>,
}

impl SerfClient {
    /// Host and port of the agent, as in the options.
    pub fn address(&self) -> &str {
        self.handle.agent()
    }

    /// Returns true if the connection has ended.
    pub fn is_closed(&self) -> bool {
        self.handle.is_closed()
    }

    /// Returns when the connection has ended, for any reason.
    ///
    /// # Cancel safety
    ///
    /// May be dropped at any time.
    pub async fn closed(&self) {
        self.handle.closed().await;
    }

    /// The reason for the end of the connection. `None` while it is open.
    pub fn end(&self) -> Option<&ClientError> {
        self.handle.end()
    }
}

impl fmt::Debug for SerfClient {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SerfClient")
            .field("agent", &self.address())
            .field("is_closed", &self.is_closed())
            .finish_non_exhaustive()
    }
}
