//! What an agent tells without being asked again.

use std::sync::Arc;

use crate::member::Member;

/// Something that happened in the cluster.
///
/// Agents say the same thing more than once, and do not say everything: a member that failed and came back with other tags
/// within a second or so may cause no event at all. An event is a reason to ask for the members; it does not replace that.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Event {
    /// Something happened to members.
    Member {
        /// What.
        kind: MemberEventKind,
        /// To whom. An agent collects events for a second, so there can be several.
        members: Vec<Member>,
    },
    /// Somebody sent an event of their own.
    User {
        /// Its name. Bytes that are no UTF-8 are replaced.
        name: Arc<str>,
        /// What was sent with it.
        payload: Vec<u8>,
        /// When, on the cluster's logical clock for events.
        logical_time: u64,
        /// Whether agents may replace it by a later event of the same name.
        coalesce: bool,
    },
    /// Somebody asks the members something.
    Query {
        /// Identifies the query on this connection.
        id: u64,
        /// Its name. Bytes that are no UTF-8 are replaced.
        name: Arc<str>,
        /// What was sent with it.
        payload: Vec<u8>,
        /// When, on the cluster's logical clock for queries.
        logical_time: u64,
    },
    /// An event that this version does not know.
    Other {
        /// The agent's word for it. Bytes that are no UTF-8 are replaced.
        kind: Arc<str>,
    },
}

/// What happened to members.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum MemberEventKind {
    /// They have joined, or are back.
    Join,
    /// They have left by their own will.
    Leave,
    /// They do not answer any more.
    Failed,
    /// Their tags have changed, or not: agents repeat this.
    Update,
    /// They have been gone for so long, or so finally, that they are forgotten.
    Reap,
}

impl MemberEventKind {
    /// All of them.
    pub(crate) const ALL: [Self; 5] = [
        Self::Join,
        Self::Leave,
        Self::Failed,
        Self::Update,
        Self::Reap,
    ];

    /// The agent's word for it: `member-join`, …
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Join => "member-join",
            Self::Leave => "member-leave",
            Self::Failed => "member-failed",
            Self::Update => "member-update",
            Self::Reap => "member-reap",
        }
    }

    /// The kind of an agent's word.
    pub(crate) fn parse(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.as_str() == word)
    }
}
