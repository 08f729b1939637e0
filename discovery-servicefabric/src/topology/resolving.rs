//! Replicas that the naming service no longer resolves.

use std::collections::BTreeSet;

use crate::model::{Replica, ReplicaStatus, ResolvedPartition};

/// The result of resolving a partition with the naming service.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Resolved {
    /// The version of the result. Passed to the next call, it requests a newer one.
    pub(crate) version: String,
    pub(crate) addresses: BTreeSet<String>,
    /// Replicas that were listed and not named.
    pub(crate) drained: BTreeSet<(i64, String)>,
}

impl Resolved {
    pub(crate) fn new(answer: ResolvedPartition) -> Self {
        let endpoints = answer.endpoints.into_iter();
        Self {
            version: answer.version,
            addresses: endpoints.map(|endpoint| endpoint.address).collect(),
            drained: BTreeSet::new(),
        }
    }

    /// Returns true if there are working replicas, but none of them is in the result.
    pub(crate) fn names_none(&self, replicas: &[Replica]) -> bool {
        let mut open = replicas
            .iter()
            .filter(|replica| is_open(replica))
            .peekable();
        open.peek().is_some() && open.all(|replica| !self.addresses.contains(&replica.address))
    }

    /// Returns true if the result lacks a working replica that was not already missing `before`.
    pub(crate) fn drops_more(&self, replicas: &[Replica], before: Option<&Self>) -> bool {
        let mut unnamed = replicas
            .iter()
            .filter(|replica| is_open(replica) && !self.addresses.contains(&replica.address));
        unnamed.any(|replica| {
            let key = (replica.replica_id, replica.address.clone());
            before.is_none_or(|before| !before.drained.contains(&key))
        })
    }

    /// Takes out the replicas that are about to close: those that work and are not named.
    pub(crate) fn keep_named(&mut self, replicas: &mut Vec<Replica>) {
        let (addresses, drained) = (&self.addresses, &mut self.drained);
        drained.clear();
        replicas.retain(|replica| {
            let is_named = !is_open(replica) || addresses.contains(&replica.address);
            if !is_named {
                drained.insert((replica.replica_id, replica.address.clone()));
            }
            is_named
        });
    }

    /// Removes the same replicas when the naming service does not respond: those that were about to close
    /// still are, and nothing is known of the others.
    pub(crate) fn keep_undrained(&self, replicas: &mut Vec<Replica>) {
        replicas.retain(|replica| {
            let key = (replica.replica_id, replica.address.clone());
            !self.drained.contains(&key)
        });
    }
}

fn is_open(replica: &Replica) -> bool {
    replica.replica_status == ReplicaStatus::Ready && !replica.address.is_empty()
}
