//! The events that an agent sends.

use std::sync::Arc;

use crate::member::Member;

/// An event in the cluster.
///
/// Agents repeat events, and leave out some: a member that failed and came back with other tags within
/// about a second may cause no event at all. An event is a reason to list the members; it does not replace
/// that.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Event {
    /// A change of members.
    Member {
        /// The kind of change.
        kind: MemberEventKind,
        /// The members. An agent collects events for a second, so there can be several.
        members: Vec<Member>,
    },
    /// A user event.
    User {
        /// The name. Bytes that are not UTF-8 are replaced.
        name: Arc<str>,
        /// The payload.
        payload: Vec<u8>,
        /// The time of the event, on the cluster's logical clock for events.
        logical_time: u64,
        /// True if agents may replace it by a later event of the same name.
        coalesce: bool,
    },
    /// A query to the members.
    Query {
        /// Identifies the query on this connection.
        id: u64,
        /// The name. Bytes that are not UTF-8 are replaced.
        name: Arc<str>,
        /// The payload.
        payload: Vec<u8>,
        /// The time of the query, on the cluster's logical clock for queries.
        logical_time: u64,
    },
    /// An event that this version does not know.
    Other {
        /// The agent's name for it. Bytes that are not UTF-8 are replaced.
        kind: Arc<str>,
    },
}

/// The kinds of member events.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum MemberEventKind {
    /// Members joined, or came back.
    Join,
    /// Members left voluntarily.
    Leave,
    /// Members no longer respond.
    Failed,
    /// The tags of members changed, or not: agents repeat this event.
    Update,
    /// Members were removed from the list, after they were away for a long time or for good.
    Reap,
}

impl MemberEventKind {
    /// All kinds.
    pub(crate) const ALL: [Self; 5] = [
        Self::Join,
        Self::Leave,
        Self::Failed,
        Self::Update,
        Self::Reap,
    ];

    /// The agent's name for it: `member-join`, …
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Join => "member-join",
            Self::Leave => "member-leave",
            Self::Failed => "member-failed",
            Self::Update => "member-update",
            Self::Reap => "member-reap",
        }
    }

    /// Returns the kind for an agent's name.
    pub(crate) fn parse(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.as_str() == word)
    }
}
