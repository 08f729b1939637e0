//! What an agent can be asked.

use std::sync::Arc;
use std::time::Duration;

use super::queue::Queue;
use super::{
    ClientError, ClientErrorKind, EventFilter, EventStream, MemberFilter, SerfClient, Stats,
};
use crate::member::{Member, Tags};
use crate::wire::messages::{Request, decode_joined, decode_members, decode_stats};

/// How long an agent may wait for the cluster: for messages to spread, or for a node that is joined.
const GOSSIP: Duration = Duration::from_secs(10);

/// All of them fail with [`Closed`](ClientErrorKind::Closed), [`TimedOut`](ClientErrorKind::TimedOut),
/// [`Protocol`](ClientErrorKind::Protocol), [`Denied`](ClientErrorKind::Denied) when the agent wants a key and has got none, and
/// [`InvalidRequest`](ClientErrorKind::InvalidRequest) above 1 MiB. What else there is stands at each of them. All of them may be
/// dropped at any time: what was asked for is done or not, nobody hears of the answer, and the connection stays as it was.
impl SerfClient {
    /// All members that the agent knows, in no order: also those that have failed or left, until they are forgotten.
    ///
    /// # Errors
    ///
    /// As of all requests.
    ///
    /// # Cancel safety
    ///
    /// As of all requests.
    pub async fn members(&self) -> Result<Vec<Member>, ClientError> {
        self.ask_for_members(&Request::Members).await
    }

    /// The members that a filter lets through, in no order. The agent does the work.
    ///
    /// # Errors
    ///
    /// As of all requests. An agent closes the connection when a pattern is no regular expression.
    ///
    /// # Cancel safety
    ///
    /// As of all requests.
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

    /// Asks for events, and returns when the agent has agreed: what happens from then on is told. There is no beginning with what
    /// has happened before; ask for the [members](Self::members) afterwards.
    ///
    /// # Errors
    ///
    /// As of all requests. [`Refused`](ClientErrorKind::Refused) if the agent does not understand the filter;
    /// [`InvalidRequest`](ClientErrorKind::InvalidRequest) if it cannot be said, or if there are 32 streams already.
    ///
    /// # Cancel safety
    ///
    /// As of all requests. The agent is told to stop if it has agreed.
    pub async fn stream(&self, filter: &EventFilter) -> Result<EventStream, ClientError> {
        let permit = self.handle.stream_permit()?;
        let Some(filter) = filter.encoded() else {
            let detail = "the filter lets nothing through, or has a name with a comma";
            let kind = ClientErrorKind::InvalidRequest;
            let agent = self.handle.agent();
            return Err(ClientError::new(kind, agent, "stream", detail));
        };
        let options = self.handle.options();
        let queue = Queue::new(options.max_queued_events, options.max_queued_bytes);
        let queue = Arc::new(queue);
        // Made first, so that the agent is told to stop if this is dropped while it waits.
        let stream = EventStream::new(Arc::clone(&queue), Arc::clone(&self.handle), permit);
        let request = Request::Stream { filter };
        let within = self.timeout();
        self.handle.open(&request, within, queue).await?;
        Ok(stream)
    }

    /// Sends a user event to the whole cluster, this agent included. Name and payload together may have some 500 bytes, and as
    /// many as agents are configured for. With `coalesce`, agents may replace it by a later one of the same name.
    ///
    /// # Errors
    ///
    /// As of all requests. [`Refused`](ClientErrorKind::Refused) if it is too long.
    ///
    /// # Cancel safety
    ///
    /// As of all requests.
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

    /// Makes the agent join the cluster of the nodes at some addresses of gossip (`10.0.0.1:7946`); returns how many of them
    /// it got in touch with. With `replay`, old user events are told again.
    ///
    /// # Errors
    ///
    /// As of all requests. [`Refused`](ClientErrorKind::Refused) if there is none that it got in touch with.
    ///
    /// # Cancel safety
    ///
    /// As of all requests.
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

    /// Makes the agent leave the cluster, and end. The connection ends with it, also when it does so before its answer is on the
    /// way: that is a success too.
    ///
    /// # Errors
    ///
    /// As of all requests, but the end of the connection. [`Refused`](ClientErrorKind::Refused) if the agent could not tell the
    /// others; it ends nevertheless.
    ///
    /// # Cancel safety
    ///
    /// As of all requests.
    pub async fn leave(&self) -> Result<(), ClientError> {
        let within = self.gossip_timeout();
        self.handle.tell(&Request::Leave, within).await
    }

    /// Makes a node that has failed one that has left; with `prune` it is forgotten at once. A node that nobody knows is no error,
    /// and one that is alive says that it is.
    ///
    /// # Errors
    ///
    /// As of all requests.
    ///
    /// # Cancel safety
    ///
    /// As of all requests.
    pub async fn force_leave(&self, node: &str, prune: bool) -> Result<(), ClientError> {
        let request = Request::ForceLeave {
            node: node.to_owned(),
            prune,
        };
        self.handle.tell(&request, self.gossip_timeout()).await
    }

    /// Changes tags of the agent's own node: takes out those to `delete`, and then sets those to `set`. Others stay. They last
    /// until the agent ends, unless it has a file for them. Setting what is set already makes an event nevertheless.
    ///
    /// # Errors
    ///
    /// As of all requests. [`TagsTooLong`](ClientErrorKind::TagsTooLong) if all of them together would take more than 512 bytes.
    ///
    /// # Cancel safety
    ///
    /// As of all requests.
    pub async fn set_tags(&self, set: &Tags, delete: &[&str]) -> Result<(), ClientError> {
        let request = Request::Tags {
            set: set.clone(),
            delete: owned(delete),
        };
        self.handle.tell(&request, self.gossip_timeout()).await
    }

    /// What the agent says about itself. The answer is short, so this also asks whether it is well.
    ///
    /// # Errors
    ///
    /// As of all requests.
    ///
    /// # Cancel safety
    ///
    /// As of all requests.
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
