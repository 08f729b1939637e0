//! The requests of a client to an agent.

use std::sync::Arc;
use std::time::Duration;

use super::queue::Queue;
use super::{
    ClientError, ClientErrorKind, EventFilter, EventStream, MemberFilter, SerfClient, Stats,
};
use crate::member::{Member, Tags};
use crate::wire::messages::{Request, decode_joined, decode_members, decode_stats};

/// The time limit that is added for work of the cluster: for messages to spread, or for joining a node.
const GOSSIP: Duration = Duration::from_secs(10);

/// The requests. All of them fail with [`Closed`](ClientErrorKind::Closed),
/// [`TimedOut`](ClientErrorKind::TimedOut), [`Protocol`](ClientErrorKind::Protocol),
/// [`Denied`](ClientErrorKind::Denied) if the agent requires a key and got none, and
/// [`InvalidRequest`](ClientErrorKind::InvalidRequest) above 1 MiB. Further errors are documented with each
/// request. All of them may be dropped at any time: the request is then executed or not, its response is
/// discarded, and the connection stays usable.
impl SerfClient {
    /// Returns all members that the agent knows, in no order, including those that have failed or left,
    /// until the agent forgets them.
    ///
    /// # Errors
    ///
    /// The errors of all requests.
    ///
    /// # Cancel safety
    ///
    /// May be dropped at any time, as all requests.
    pub async fn members(&self) -> Result<Vec<Member>, ClientError> {
        self.ask_for_members(&Request::Members).await
    }

    /// Returns the members that a filter matches, in no order. The agent does the filtering.
    ///
    /// # Errors
    ///
    /// The errors of all requests. An agent closes the connection if a pattern is not a regular expression.
    ///
    /// # Cancel safety
    ///
    /// May be dropped at any time, as all requests.
    pub async fn members_filtered(
        &self,
        filter: &MemberFilter,
    ) -> Result<Vec<Member>, ClientError> {
        let MemberFilter { name, status, tags } = filter.clone();
        let request = Request::MembersFiltered {
            tags,
            status: status.unwrap_or_default(),
            name: name.unwrap_or_default(),
        };
        self.ask_for_members(&request).await
    }

    async fn ask_for_members(&self, request: &Request) -> Result<Vec<Member>, ClientError> {
        let within = self.timeout();
        self.handle.ask(request, within, decode_members).await
    }

    /// Subscribes to events, and returns after the agent has accepted. Later events are sent; earlier ones
    /// are not, so list the [members](Self::members) afterwards.
    ///
    /// # Errors
    ///
    /// The errors of all requests; [`Rejected`](ClientErrorKind::Rejected) if the agent rejects the filter;
    /// [`InvalidRequest`](ClientErrorKind::InvalidRequest) if the filter has no representation, or if there
    /// are 32 streams already.
    ///
    /// # Cancel safety
    ///
    /// May be dropped at any time, as all requests. If the agent has accepted the stream, it is stopped.
    pub async fn stream(&self, filter: &EventFilter) -> Result<EventStream, ClientError> {
        let permit = self.handle.stream_permit()?;
        let Some(filter) = filter.encoded() else {
            let detail = "the filter selects nothing, or has a name with a comma";
            let kind = ClientErrorKind::InvalidRequest;
            let agent = self.handle.agent();
            return Err(ClientError::new(kind, agent, "stream", detail));
        };
        let options = self.handle.options();
        let queue = Queue::new(options.max_queued_events, options.max_queued_bytes);
        let queue = Arc::new(queue);
        // Made first, so that the agent is made to stop if this is dropped while it waits.
        let stream = EventStream::new(Arc::clone(&queue), Arc::clone(&self.handle), permit);
        let request = Request::Stream { filter };
        let within = self.timeout();
        self.handle.open(&request, within, queue).await?;
        Ok(stream)
    }

    /// Sends a user event to the whole cluster, including this agent. Name and payload together may have
    /// about 500 bytes, or the limit configured in the agents. With `coalesce`, agents may replace it by a
    /// later one of the same name.
    ///
    /// # Errors
    ///
    /// The errors of all requests, and [`Rejected`](ClientErrorKind::Rejected) if the event is too long.
    ///
    /// # Cancel safety
    ///
    /// May be dropped at any time, as all requests. The agent may have executed the request or not.
    pub async fn event(
        &self,
        name: &str,
        payload: &[u8],
        coalesce: bool,
    ) -> Result<(), ClientError> {
        let request = Request::Event {
            name: name.to_owned(),
            payload: payload.to_vec(),
            coalesce,
        };
        self.handle.tell(&request, self.timeout()).await
    }

    /// Makes the agent join the cluster of the nodes at some gossip addresses (`10.0.0.1:7946`). Returns
    /// the number of nodes that it contacted. With `replay`, old user events are sent again.
    ///
    /// # Errors
    ///
    /// The errors of all requests, and [`Rejected`](ClientErrorKind::Rejected) if the agent could contact
    /// none of them.
    ///
    /// # Cancel safety
    ///
    /// May be dropped at any time, as all requests. The agent may have executed the request or not.
    pub async fn join(&self, addresses: &[&str], replay: bool) -> Result<u32, ClientError> {
        let request = Request::Join {
            addresses: owned(addresses),
            replay,
        };
        // The agent tries them one after the other.
        let tries = u32::try_from(addresses.len()).unwrap_or(u32::MAX).max(1);
        let within = self.timeout().saturating_add(GOSSIP.saturating_mul(tries));
        self.handle.ask(&request, within, decode_joined).await
    }

    /// Makes the agent leave the cluster and end. The connection ends with it. If it ends before the
    /// response arrives, that is a success too.
    ///
    /// # Errors
    ///
    /// The errors of all requests, except for the end of the connection.
    /// [`Rejected`](ClientErrorKind::Rejected) if the agent could not notify the others; it ends
    /// nevertheless.
    ///
    /// # Cancel safety
    ///
    /// May be dropped at any time, as all requests. The agent may have executed the request or not.
    pub async fn leave(&self) -> Result<(), ClientError> {
        let within = self.gossip_timeout();
        self.handle.tell(&Request::Leave, within).await
    }

    /// Turns a failed node into one that has left; with `prune` it is forgotten at once. An unknown node is
    /// not an error, and a node that is alive stays alive.
    ///
    /// # Errors
    ///
    /// The errors of all requests.
    ///
    /// # Cancel safety
    ///
    /// May be dropped at any time, as all requests. The agent may have executed the request or not.
    pub async fn force_leave(&self, node: &str, prune: bool) -> Result<(), ClientError> {
        let request = Request::ForceLeave {
            node: node.to_owned(),
            prune,
        };
        self.handle.tell(&request, self.gossip_timeout()).await
    }

    /// Changes tags of the agent's own node: removes those in `delete`, and then sets those in `set`. Other
    /// tags stay. They last until the agent ends, unless it has a file for them. Setting an unchanged tag
    /// causes an event too.
    ///
    /// # Errors
    ///
    /// The errors of all requests, and [`TagsTooLong`](ClientErrorKind::TagsTooLong) if all tags together
    /// would take more than 512 bytes.
    ///
    /// # Cancel safety
    ///
    /// May be dropped at any time, as all requests. The agent may have executed the request or not.
    pub async fn set_tags(&self, set: &Tags, delete: &[&str]) -> Result<(), ClientError> {
        let request = Request::Tags {
            set: set.clone(),
            delete: owned(delete),
        };
        self.handle.tell(&request, self.gossip_timeout()).await
    }

    /// Returns the agent's statistics about itself. The response is short, so this also serves as a health
    /// check.
    ///
    /// # Errors
    ///
    /// The errors of all requests.
    ///
    /// # Cancel safety
    ///
    /// May be dropped at any time, as all requests.
    pub async fn stats(&self) -> Result<Stats, ClientError> {
        let within = self.timeout();
        let sections = self.handle.ask(&Request::Stats, within, decode_stats);
        sections.await.map(Stats::new)
    }

    fn timeout(&self) -> Duration {
        self.handle.options().request_timeout
    }

    fn gossip_timeout(&self) -> Duration {
        self.timeout().saturating_add(GOSSIP)
    }
}

fn owned(texts: &[&str]) -> Vec<String> {
    texts.iter().map(|text| (*text).to_owned()).collect()
}
