//! One connection to an agent, and its events.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use tokio::task::AbortHandle;
use tokio::time::timeout;

use super::dial::{Dial, Transport};
use super::failure::{Cause, DialError};
use super::signal::Signal;
use crate::client::{
    ClientError, ClientErrorKind, ConnectOptions, EventFilter, EventStream, MemberFilter,
    SerfClient,
};
use crate::member::Member;

/// The poll interval for an agent that sends no events.
pub(super) const POLL: Duration = Duration::from_secs(2);

/// A connection to an agent with notification of events. Dropping it closes the connection.
pub(super) struct Session {
    client: SerfClient,
    /// The agent's address.
    pub(super) agent: Arc<str>,
    /// True if the agent has not listed its members over this connection yet.
    pub(super) is_new: bool,
    /// The reason why the agent sends no events. `None` if it does.
    pub(super) rejection: Option<ClientError>,
    _watching: Watching,
}

/// The task that receives events and the end of the connection. It shares the connection.
struct Watching(AbortHandle);

impl Drop for Watching {
    fn drop(&mut self) {
        self.0.abort();
    }
}

impl Session {
    /// Connects, and subscribes to events. The members may be listed only after the agent has accepted:
    /// later changes are events, and earlier ones are in the list.
    ///
    /// # Cancel safety
    ///
    /// May be dropped at any time. The connection is then closed.
    pub(super) async fn open(
        agent: &Arc<str>,
        options: &ConnectOptions,
        dialer: Option<&dyn Dial>,
        signal: &Arc<Signal>,
    ) -> Result<Self, Cause> {
        let client = match dialer {
            None => SerfClient::connect(options).await?,
            Some(dialer) => {
                let io = dialed(agent, options, dialer).await?;
                SerfClient::connect_over(io, options).await?
            }
        };
        let (watching, rejection) = match client.stream(&EventFilter::members()).await {
            Ok(stream) => (watch_events(stream, Arc::clone(signal)), None),
            Err(error) if error.kind() == ClientErrorKind::Rejected => {
                (watch_end(client.clone(), Arc::clone(signal)), Some(error))
            }
            Err(error) => return Err(error.into()),
        };
        Ok(Self {
            client,
            agent: Arc::clone(agent),
            is_new: true,
            rejection,
            _watching: watching,
        })
    }

    /// The members that the agent lists.
    pub(super) async fn members(&self, prefilter: bool) -> Result<Vec<Member>, ClientError> {
        if !prefilter {
            return self.client.members().await;
        }
        // Not by status: failed and leaving members are needed too.
        let with_service = MemberFilter::default().with_tag("service", ".+");
        self.client.members_filtered(&with_service).await
    }
}

async fn dialed(
    agent: &Arc<str>,
    options: &ConnectOptions,
    dialer: &dyn Dial,
) -> Result<Box<dyn Transport>, DialError> {
    let limit = options.connect_timeout;
    let dialed = timeout(limit, dialer.dial(agent)).await;
    let too_long = |_| io::Error::new(io::ErrorKind::TimedOut, format!("nothing within {limit:?}"));
    let dialed = dialed.map_err(too_long).and_then(|dialed| dialed);
    dialed.map_err(|source| DialError {
        agent: Arc::clone(agent),
        source,
    })
}

/// Watches events. They show that something has changed, but not what: agents drop some and repeat others.
fn watch_events(mut stream: EventStream, signal: Arc<Signal>) -> Watching {
    let watching = tokio::spawn(async move {
        while stream.next().await.is_some() {
            signal.happened();
        }
        // The connection has ended.
        signal.happened();
    });
    Watching(watching.abort_handle())
}

fn watch_end(client: SerfClient, signal: Arc<Signal>) -> Watching {
    let watching = tokio::spawn(async move {
        client.closed().await;
        signal.happened();
    });
    Watching(watching.abort_handle())
}
