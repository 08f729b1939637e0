//! Room for connections below the limit of their number.

#[cfg(feature = "http2")]
use std::sync::Arc;

use super::super::protocol::Protocols;
use super::super::queue::{Grant, IdleConnections, QueueState};
use super::super::slot::Slot;
use super::DestinationPool;
#[cfg(feature = "http2")]
use super::Http2Connection;
#[cfg(feature = "http2")]
use super::RuntimeGroup;

impl DestinationPool {
    /// The most connections at a time; `u32::MAX` for no limit.
    pub(super) fn limit(&self) -> u32 {
        let by_agent = match self.obeys_agent {
            true => self.destination.max_connections_by_agent(),
            false => None,
        };
        by_agent.unwrap_or(self.max_connections)
    }

    /// Closes idle connections above a limit that the agent has lowered, and lets requests that wait open connections
    /// below one that it has raised.
    pub(super) fn follow_limit(&self, state: &mut QueueState, closed: &mut IdleConnections) {
        let limit = self.limit();
        let above = state.open.saturating_sub(limit) as usize;
        let above = above.saturating_sub(closed.len()).min(state.idle.len());
        closed.extend(state.idle.drain(..above));
        #[cfg(feature = "http2")]
        if state.open > limit {
            let is_idle = |connection: &Arc<Http2Connection>| connection.streams() == 0;
            let mut above = (state.open - limit) as usize;
            above = above.saturating_sub(closed.len());
            state.http2.retain(|connection| {
                let is_closed = above > 0 && is_idle(connection);
                above -= usize::from(is_closed);
                !is_closed
            });
        }
        while state.open < limit
            && let Some(waiting) = state.waiting.pop_front()
        {
            match waiting
                .granted
                .send(Grant::Slot(Slot::new(self.this.clone())))
            {
                Ok(()) => state.open += 1,
                // To drop it here would lock this pool again.
                Err(Grant::Slot(unwanted)) => unwanted.disarm(),
                Err(_) => {}
            }
        }
    }

    /// Removes an idle connection that this thread cannot use for `protocols`, which frees its slot when dropped.
    /// Returns true if there was one.
    #[cfg(feature = "http2")]
    pub(super) fn make_room(
        &self,
        state: &mut QueueState,
        protocols: Protocols,
        closed: &mut IdleConnections,
    ) -> bool {
        if !state.idle.is_empty() {
            closed.push(state.idle.remove(0));
            return true;
        }
        let group = RuntimeGroup::current();
        let is_useless = |connection: &Arc<Http2Connection>| {
            connection.streams() == 0
                && !(protocols.allows_http2() && self.is_lent(connection.group, group))
        };
        let position = state.http2.iter().position(is_useless);
        position.is_some_and(|position| {
            state.http2.swap_remove(position);
            true
        })
    }

    #[cfg(not(feature = "http2"))]
    #[expect(clippy::unused_self, reason = "as with HTTP/2")]
    pub(super) fn make_room(
        &self,
        state: &mut QueueState,
        _: Protocols,
        closed: &mut IdleConnections,
    ) -> bool {
        let is_there = !state.idle.is_empty();
        if is_there {
            closed.push(state.idle.remove(0));
        }
        is_there
    }
}
