//! The faults that can be injected.

use std::time::Duration;

/// The fault that replaces or changes a response.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Fault {
    /// No response ever.
    Hang,
    /// The connection ends.
    Reset,
    /// An error with this status and text. Like the real one, it has the index 1.
    Status(u16, &'static str),
    /// A success with an empty result, as for a token without read access.
    Empty,
    /// An empty response from a server without a leader.
    EmptyWithoutLeader,
    /// The correct response, at once, with this index.
    Index(u64),
    /// The correct response, at once, without an index.
    NoIndex,
    /// The correct response after this delay.
    Slow(Duration),
    /// A success that is not JSON.
    Garbage,
}

/// The requests that a fault applies to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Rule {
    pub(super) datacenter: Option<String>,
    /// Beginning of the path after `/v1/`.
    pub(super) path: String,
    /// True to exclude requests to the leader.
    pub(super) stale_only: bool,
    pub(super) fault: Fault,
}
