//! The stream of an agent's events.

use std::fmt;
use std::sync::Arc;

use tokio::sync::OwnedSemaphorePermit;

use super::Event;
use super::connection::Handle;
use super::queue::{Next, Queue};
use crate::wire::messages::decode_event;

/// The events that an agent sends, until the connection ends. Made by
/// [`SerfClient::stream`](super::SerfClient::stream).
///
/// The connection is read even if no events are taken. They are queued up to [a
/// number](super::ConnectOptions::max_queued_events) and [a
/// length](super::ConnectOptions::max_queued_bytes). Beyond these, the oldest are dropped, which is
/// reported as [`EventError::Lagged`]. Agents have their own queue of 512 events, and drop further events
/// silently.
///
/// The stream keeps the connection open. Dropping it makes the agent stop sending, unless the connection
/// ends with it.
pub struct EventStream {
    queue: Arc<Queue>,
    connection: Arc<Handle>,
    /// The permit, of a limited number of streams.
    _permit: OwnedSemaphorePermit,
}

/// An event is missing.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum EventError {
    /// Number of events that did not fit into the queue.
    #[error("{0} events were lost because they were not read")]
    Lagged(u64),
    /// A malformed event, with the reason. The stream continues.
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

    /// Returns the next event. `None` after the connection has ended;
    /// [`SerfClient::end`](super::SerfClient::end) has the reason.
    ///
    /// # Errors
    ///
    /// An item is an error if an event is missing. The stream continues afterwards.
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
