//! The nodes that poll without a stream, which are known only by their last polls.

use std::collections::HashMap;
use std::time::{Duration, Instant, SystemTime};

use parking_lot::{Mutex, MutexGuard};

use super::{NodeIdentity, PollStatus};
use crate::snapshot::{ResourceType, Subscription, Version};

/// The time for which a node is remembered after its last poll. Envoys poll about once a second.
const MEMORY: Duration = Duration::from_secs(300);
/// Maximum number of nodes that are remembered. Further ones are ignored.
const NODES: usize = 10_000;

/// The interval at which silent nodes are removed.
const SWEEP: Duration = Duration::from_secs(1);

#[derive(Debug, Default)]
pub(super) struct Polls {
    known: Mutex<KnownPolls>,
}

#[derive(Debug, Default)]
struct KnownPolls {
    nodes: HashMap<NodeIdentity, Polled>,
    swept: Option<Instant>,
}

#[derive(Debug)]
struct Polled {
    last: Instant,
    types: Vec<PollStatus>,
}

impl Polls {
    /// Records that a node has polled a type. `had` is the version that the node reported, and `answered` the
    /// version of the response.
    pub(super) fn polled(
        &self,
        node: NodeIdentity,
        resource_type: ResourceType,
        subscription: Subscription,
        had: Option<Version>,
        answered: Version,
    ) {
        let now = Instant::now();
        let mut known = self.lock();
        if known.nodes.len() >= NODES && !known.nodes.contains_key(&node) {
            // Looking at all of them is too much for each stranger.
            if known.swept.is_none_or(|swept| swept + SWEEP <= now) {
                known.swept = Some(now);
                known.nodes.retain(|_, polled| polled.last + MEMORY > now);
            }
            if known.nodes.len() >= NODES {
                return;
            }
        }
        let polled = known.nodes.entry(node).or_insert_with(|| Polled {
            last: now,
            types: Vec::new(),
        });
        polled.last = now;
        let same = |of: &&mut PollStatus| {
            of.resource_type == resource_type && of.subscription == subscription
        };
        let polls = polled.types.iter_mut().find(same).map_or(0, |of| of.polls);
        polled
            .types
            .retain(|of| of.resource_type != resource_type || of.subscription != subscription);
        polled.types.push(PollStatus {
            resource_type,
            subscription,
            polls: polls + 1,
            had,
            answered,
            at: SystemTime::now(),
        });
        polled
            .types
            .sort_by_key(|of| (of.resource_type, of.subscription));
    }

    /// Returns the nodes that polled recently, and the types they polled.
    pub(super) fn list(&self) -> Vec<(NodeIdentity, Vec<PollStatus>)> {
        let now = Instant::now();
        let known = self.lock();
        (known.nodes.iter())
            .filter(|(_, polled)| polled.last + MEMORY > now)
            .map(|(node, polled)| (node.clone(), polled.types.clone()))
            .collect()
    }

    fn lock(&self) -> MutexGuard<'_, KnownPolls> {
        self.known.lock()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn node(id: usize) -> NodeIdentity {
        NodeIdentity {
            id: id.to_string(),
            ..NodeIdentity::default()
        }
    }

    fn poll(polls: &Polls, id: usize, resource_type: ResourceType) {
        let version = Version::default();
        polls.polled(node(id), resource_type, Subscription::Rest, None, version);
    }

    #[test]
    fn the_last_poll_of_each_type_is_known() {
        let polls = Polls::default();
        poll(&polls, 1, ResourceType::Route);
        poll(&polls, 1, ResourceType::Cluster);
        poll(&polls, 1, ResourceType::Route);
        let [(of, types)] = &polls.list()[..] else {
            panic!("one node has polled");
        };
        assert_eq!(of, &node(1));
        let counts: Vec<_> = types
            .iter()
            .map(|of| (of.resource_type, of.polls))
            .collect();
        assert_eq!(
            counts,
            [(ResourceType::Cluster, 1), (ResourceType::Route, 2)]
        );
    }

    #[test]
    fn strangers_are_not_looked_for_again_and_again() {
        let polls = Polls::default();
        for id in 0..=NODES {
            poll(&polls, id, ResourceType::Cluster);
        }
        let swept = || polls.lock().swept.unwrap();
        let first = swept();
        poll(&polls, NODES + 1, ResourceType::Cluster);
        assert!(swept() == first || swept() - first >= SWEEP);
    }

    #[test]
    fn strangers_cannot_fill_the_memory() {
        let polls = Polls::default();
        for id in 0..NODES + 10 {
            poll(&polls, id, ResourceType::Cluster);
        }
        assert_eq!(polls.list().len(), NODES);
        poll(&polls, 0, ResourceType::Route);
        let known = polls.list();
        let first = known.iter().find(|(of, _)| *of == node(0)).unwrap();
        assert_eq!(first.1.len(), 2);
    }
}
