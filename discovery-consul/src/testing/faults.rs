//! What can be made to go wrong.

use std::time::Duration;

/// What happens to requests instead of an answer, or to the answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Fault {
    /// Nothing ever comes back.
    Hang,
    /// The connection ends.
    Reset,
    /// An error with this status and text. As the real one does, it says that the index is 1.
    Status(u16, &'static str),
    /// A success that has nothing in it, as a token gets that may read nothing.
    Empty,
    /// The same from a server that knows of no leader.
    EmptyWithoutLeader,
    /// The right answer, at once, with this index.
    Index(u64),
    /// The right answer, at once, without an index.
    NoIndex,
    /// The right answer, and only after so long.
    Slow(Duration),
    /// A success that is not JSON.
    Garbage,
}

/// Which requests a fault is for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Rule {
    pub(super) datacenter: Option<String>,
    /// Beginning of the path after `/v1/`.
    pub(super) path: String,
    /// Whether those are spared that ask the leader.
    pub(super) stale_only: bool,
    pub(super) fault: Fault,
}
