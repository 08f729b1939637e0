//! The members that are kept when an agent comes back and knows fewer of them than before. Pure: time is an
//! argument, and there are no waits.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use tokio::time::Instant;

use crate::member::{Member, MemberStatus};
use crate::options::HoldOptions;

/// The members from which configuration is made: those of the last snapshot, and kept ones that it lacks.
#[derive(Clone, Debug, Default)]
pub(super) struct Standing {
    pub(super) members: Vec<Member>,
    /// The names of those that serve.
    instances: HashSet<Arc<str>>,
    /// The kept members, and the time since which they are missing.
    doubted: HashMap<Arc<str>, Instant>,
}

/// A list of members from an agent.
#[derive(Debug)]
pub(super) struct Snapshot {
    pub(super) members: Vec<Member>,
    /// True if it is the first list over its connection. Only such a list can be doubted: an agent that
    /// listed a member before, and no longer does, has noticed its departure.
    pub(super) is_first: bool,
}

impl Standing {
    /// Returns the state after a snapshot.
    ///
    /// A member in the snapshot, with any status, is taken from the snapshot. A member that is missing
    /// without notice is kept for at most [`HoldOptions::settle`], counted from the first snapshot that
    /// lacked it, independent of later connections and other members.
    pub(super) fn after(&self, snapshot: Snapshot, rule: &HoldOptions, now: Instant) -> Self {
        let doubted = self.doubted_after(&snapshot, rule, now);
        let mut members = snapshot.members;
        if !doubted.is_empty() {
            let is_doubted = |member: &Member| doubted.contains_key(&member.name);
            members.retain(|member| !is_doubted(member));
            let kept = self.members.iter().filter(|member| is_doubted(member));
            members.extend(kept.cloned());
        }
        Self {
            members,
            instances: HashSet::new(),
            doubted,
        }
    }

    /// Sets the names of the serving members.
    pub(super) fn served_by(mut self, names: impl IntoIterator<Item = Arc<str>>) -> Self {
        self.instances = names.into_iter().collect();
        self
    }

    /// Returns true if any member serves.
    pub(super) fn serves(&self) -> bool {
        !self.instances.is_empty()
    }

    /// Number of members that are kept although the last snapshot lacks them.
    pub(super) fn held(&self) -> usize {
        self.doubted.len()
    }

    /// Returns the time of the next poll while members are kept: after [`HoldOptions::recheck`], or when
    /// the first of them has been kept for the full time.
    pub(super) fn recheck(&self, rule: &HoldOptions, now: Instant) -> Option<Instant> {
        let earliest = *self.doubted.values().min()?;
        Some((earliest + rule.settle).min(now + rule.recheck).max(now))
    }

    fn doubted_after(
        &self,
        snapshot: &Snapshot,
        rule: &HoldOptions,
        now: Instant,
    ) -> HashMap<Arc<str>, Instant> {
        if !snapshot.is_first && self.doubted.is_empty() {
            return HashMap::new();
        }
        let lacking: Vec<&Member> = lacking(&self.members, &snapshot.members);
        let is_doubtful = snapshot.is_first && self.is_doubtful(snapshot, &lacking, rule);
        let since = |member: &Member| {
            let since = self.doubted.get(&member.name).copied();
            let since = since.or_else(|| self.matters(member, is_doubtful).then_some(now))?;
            (now.duration_since(since) < rule.settle).then_some(since)
        };
        let doubted = lacking.into_iter();
        doubted
            .filter_map(|member| Some((Arc::clone(&member.name), since(member)?)))
            .collect()
    }

    /// Returns true if a snapshot lacks so much that it is more likely that the agent does not know these
    /// members.
    fn is_doubtful(&self, snapshot: &Snapshot, lacking: &[&Member], rule: &HoldOptions) -> bool {
        // An agent beside an instance is one itself, and so never lacks all of them.
        let is_alone = snapshot.members.len() <= 1 && self.members.len() > 1;
        let instances = lacking
            .iter()
            .filter(|member| self.instances.contains(&member.name));
        let gone = instances.count();
        let sudden = gone > 0 && gone as f64 >= rule.share * self.instances.len() as f64;
        is_alone || sudden
    }

    /// Returns true if a missing member should be kept: an instance, or a member of a service. Without the
    /// latter, a proxy could conclude that the cluster has no services.
    fn matters(&self, member: &Member, is_doubtful: bool) -> bool {
        let has_service = || {
            let service = member.tags.bytes("service");
            service.is_some_and(|service| !service.trim_ascii().is_empty())
        };
        is_doubtful && (self.instances.contains(&member.name) || has_service())
    }
}

/// Returns the members that a later list lacks: they are not in it, or no longer alive without having
/// announced that they leave.
fn lacking<'m>(before: &'m [Member], after: &[Member]) -> Vec<&'m Member> {
    let mut listed: HashMap<&str, bool> = HashMap::with_capacity(after.len());
    for member in after {
        let by_itself = match &member.status {
            MemberStatus::Alive | MemberStatus::Leaving | MemberStatus::Left => true,
            MemberStatus::Failed | MemberStatus::Other(_) => false,
        };
        *listed.entry(&member.name).or_default() |= by_itself;
    }
    let is_lacking = |member: &&Member| match listed.get(&*member.name) {
        None => true,
        Some(by_itself) => member.status.is_alive() && !by_itself,
    };
    before.iter().filter(is_lacking).collect()
}

#[cfg(test)]
mod tests;
