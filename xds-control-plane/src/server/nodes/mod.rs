//! The connected nodes, their resources, and their acknowledgements.

mod polls;
mod record;
mod status;

use std::collections::{BTreeMap, HashMap};
use std::net::IpAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use self::polls::Polls;
pub(crate) use self::record::{Record, clean};
pub use self::status::{
    NodeIdentity, NodeStatus, PollStatus, Rejection, StreamKind, StreamStatus, TypeStatus,
};
use super::listen::host_of;
use crate::snapshot::{ResourceType, Subscription, Version};
use parking_lot::{Mutex, MutexGuard};

/// The streams that are open. Cheap to clone.
///
/// Streams share no lock while they respond: each writes to its own record.
#[derive(Debug, Clone, Default)]
pub(crate) struct Nodes {
    shared: Arc<Shared>,
}

#[derive(Debug, Default)]
struct Shared {
    next: AtomicU64,
    open: Mutex<Open>,
    polls: Polls,
}

#[derive(Debug, Default)]
struct Open {
    streams: HashMap<u64, Arc<Mutex<StreamStatus>>>,
    peers: HashMap<IpAddr, Peer>,
}

/// The totals of one address's streams.
#[derive(Debug, Default)]
struct Peer {
    streams: usize,
    /// Names that are subscribed to.
    names: usize,
}

/// The error of a peer that exceeds its number of streams.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct TooManyStreams;

/// The peer is subscribed to as many names as it may be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct TooManyNames;

impl Nodes {
    /// Records an open stream, until the returned record is dropped.
    pub(crate) fn open(
        &self,
        kind: StreamKind,
        peer: Option<std::net::SocketAddr>,
        limit: usize,
    ) -> Result<Record, TooManyStreams> {
        let status = Arc::new(Mutex::new(StreamStatus::new(kind, peer)));
        let number = self.shared.next.fetch_add(1, Ordering::Relaxed);
        let address = peer.map(|peer| host_of(peer.ip()));
        let mut open = self.shared.lock();
        if let Some(address) = address {
            let peer = open.peers.entry(address).or_default();
            if peer.streams >= limit {
                return Err(TooManyStreams);
            }
            peer.streams += 1;
        }
        open.streams.insert(number, Arc::clone(&status));
        drop(open);
        Ok(Record::new(self.clone(), number, address, status))
    }

    /// Records that a stream of `address` is subscribed to `now` names in place of `before`.
    fn count_names(
        &self,
        address: Option<IpAddr>,
        before: usize,
        now: usize,
        limit: usize,
    ) -> Result<(), TooManyNames> {
        let mut open = self.shared.lock();
        let peer = address.and_then(|address| open.peers.get_mut(&address));
        let Some(peer) = peer else {
            return Ok(());
        };
        peer.names = peer.names.saturating_sub(before).saturating_add(now);
        match now > before && peer.names > limit {
            true => Err(TooManyNames),
            false => Ok(()),
        }
    }

    fn close(&self, number: u64, address: Option<IpAddr>, names: usize) {
        let mut open = self.shared.lock();
        open.streams.remove(&number);
        if let Some(address) = address
            && let Some(peer) = open.peers.get_mut(&address)
        {
            peer.streams = peer.streams.saturating_sub(1);
            peer.names = peer.names.saturating_sub(names);
            if peer.streams == 0 {
                open.peers.remove(&address);
            }
        }
    }

    /// Number of open streams.
    pub(crate) fn streams(&self) -> usize {
        self.shared.lock().streams.len()
    }

    /// Records that a node has polled without a stream; see [`Polls::polled`].
    pub(crate) fn polled(
        &self,
        node: NodeIdentity,
        resource_type: ResourceType,
        subscription: Subscription,
        had: Option<Version>,
        answered: Version,
    ) {
        let polls = &self.shared.polls;
        polls.polled(node, resource_type, subscription, had, answered);
    }

    /// Returns all nodes that are connected or have polled recently, by id.
    pub(crate) fn list(&self) -> Vec<NodeStatus> {
        let streams: Vec<_> = self.shared.lock().streams.values().cloned().collect();
        let mut nodes: BTreeMap<NodeIdentity, NodeStatus> = BTreeMap::new();
        let mut of = |node: NodeIdentity, change: &mut dyn FnMut(&mut NodeStatus)| {
            let status = nodes.entry(node.clone()).or_insert_with(|| NodeStatus {
                node,
                streams: Vec::new(),
                polls: Vec::new(),
            });
            change(status);
        };
        for stream in streams {
            let stream = record::read(&stream).clone();
            let node = stream.node.clone().unwrap_or_default();
            of(node, &mut |status| status.streams.push(stream.clone()));
        }
        for (node, polls) in self.shared.polls.list() {
            of(node, &mut |status| status.polls.clone_from(&polls));
        }
        let mut nodes: Vec<_> = nodes.into_values().collect();
        for node in &mut nodes {
            node.streams
                .sort_by_key(|stream| (stream.since, stream.peer));
        }
        nodes
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, Open> {
        self.open.lock()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const KIND: StreamKind = StreamKind {
        delta: false,
        subscription: Subscription::Aggregated,
    };

    #[test]
    fn streams_are_counted_by_address_and_let_go_of() {
        let nodes = Nodes::default();
        let peer = |text: &str| Some(text.parse().unwrap());
        let open = |text: &str| nodes.open(KIND, peer(text), 2);
        let first = open("127.0.0.1:1").unwrap();
        let second = open("[::ffff:127.0.0.1]:2").unwrap();
        assert_eq!(open("127.0.0.1:3").unwrap_err(), TooManyStreams);
        let mut other = open("127.0.0.2:1").unwrap();
        drop(first);
        assert_eq!(nodes.streams(), 2);
        let mut third = open("127.0.0.1:3").unwrap();
        third.count_names(4, 10).unwrap();
        let mut fourth = nodes.open(KIND, peer("127.0.0.1:4"), 9).unwrap();
        assert_eq!(fourth.count_names(7, 10), Err(TooManyNames));
        assert_eq!(other.count_names(7, 10), Ok(()));
        // Fewer are never too many.
        assert_eq!(fourth.count_names(6, 0), Ok(()));
        drop(third);
        assert_eq!(fourth.count_names(10, 10), Ok(()));
        drop((second, other, fourth));
        // A host has a network of 64 bits in version 6.
        let mut fifth = open("[2001:db8::1]:1").unwrap();
        fifth.count_names(8, 10).unwrap();
        let mut sixth = open("[2001:db8:0:0:ffff::2]:1").unwrap();
        assert_eq!(sixth.count_names(3, 10), Err(TooManyNames));
        let mut seventh = open("[2001:db8:0:1::1]:1").unwrap();
        assert_eq!(seventh.count_names(3, 10), Ok(()));
        drop((fifth, sixth, seventh));
        assert_eq!(nodes.streams(), 0);
        assert!(nodes.shared.lock().peers.is_empty());
    }
}
