//! Events of an agent, one after the other.

use std::fmt;
use std::sync::Arc;

use tokio::sync::OwnedSemaphorePermit;

use super::Event;
use super::connection::Handle;
use super::queue::{Next, Queue};
use crate::wire::messages::decode_event;

/// The events that an agent tells, until the connection ends. Made by [`SerfClient::stream`](super::SerfClient::stream).
///
/// The connection reads on while nobody asks for events. They are kept up to [a number](super::ConnectOptions::max_queued_events)
/// and [a length](super::ConnectOptions::max_queued_bytes); the oldest are lost beyond that, which is told. Agents have a
/// queue of their own, of 512 events, and lose what does not fit silently.
///
/// The stream keeps the connection open. When it is dropped the agent is told to stop, unless the connection ends with it.
pub struct EventStream {
    queue: Arc<Queue>,
    connection: Arc<Handle>,
    /// Of the number of streams that there may be.
    _permit: OwnedSemaphorePermit,
}

/// An event is missing.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum EventError {
    /// So many events did not fit into the queue.
    #[error("{0} events were lost since nobody asked for them")]
    Lagged(u64),
    /// An event makes no sense; the text says why. The stream goes on.
    #[error("{0}")]
    Undecodable(String),
}

impl EventStream {
    pub(super) fn new(
        queue: Arc<Queue>,
        connection: Arc<Handle>,
        permit: OwnedSemaphorePermit,
    ) -> Self {
        Self {
            queue,
            connection,
            _permit: permit,
        }
    }

    /// The next event; `None` when the connection has ended, which [`SerfClient::end`](super::SerfClient::end) tells more
    /// about.
    ///
    /// # Errors
    ///
    /// An event is missing. The stream goes on after that.
    ///
    /// # Cancel safety
    ///
    /// May be dropped at any time: no event is lost.
    pub async fn next(&mut self) -> Option<Result<Event, EventError>> {
        Some(match self.queue.next().await? {
            Next::Lost(lost) => Err(EventError::Lagged(lost)),
            Next::Record(record) => {
                decode_event(&record).map_err(|error| EventError::Undecodable(error.to_string()))
            }
        })
    }
}

impl Drop for EventStream {
    fn drop(&mut self) {
        self.queue.abandon();
        self.connection.stream_was_dropped();
    }
}

impl fmt::Debug for EventStream {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("EventStream")
            .field("agent", &self.connection.agent())
            .finish_non_exhaustive()
    }
}
