//! The log of calls, and their counters.

use std::collections::VecDeque;
use std::time::Duration;

use parking_lot::Mutex;
use serde::Serialize;

/// The maximum number of remembered calls. Counters are not limited.
const REMEMBERED: usize = 256;

/// The purpose of a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum CallClass {
    /// Resources are read.
    Read,
    /// A resource is written or deleted.
    Write,
    /// The progress of an earlier write is polled.
    Poll,
}

/// A call: one request, whatever its result.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct CallRecord {
    /// The method, such as `PUT`.
    pub method: String,
    /// The path without host and query.
    pub path: String,
    /// The purpose.
    pub class: CallClass,
    /// The status of the response. `None` without one.
    pub status: Option<u16>,
    /// The duration.
    pub took: Duration,
    /// The id that the resource manager gave the request.
    pub request_id: Option<String>,
}

/// The numbers of calls since a client was built.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct CallCounts {
    /// The number of reads of resources.
    pub reads: u64,
    /// The number of writes and deletions.
    pub writes: u64,
    /// The number of polls of writes.
    pub polls: u64,
    /// The number of retries among these calls.
    pub retries: u64,
    /// The number of these calls that got 429.
    pub throttled: u64,
}

impl CallCounts {
    /// Returns the calls counted since `earlier`.
    #[must_use]
    pub fn since(self, earlier: Self) -> Self {
        Self {
            reads: self.reads.saturating_sub(earlier.reads),
            writes: self.writes.saturating_sub(earlier.writes),
            polls: self.polls.saturating_sub(earlier.polls),
            retries: self.retries.saturating_sub(earlier.retries),
            throttled: self.throttled.saturating_sub(earlier.throttled),
        }
    }
}

/// The log of a client's calls.
#[derive(Debug, Default)]
pub(super) struct CallLog {
    state: Mutex<CallLogState>,
}

#[derive(Debug, Default)]
struct CallLogState {
    counts: CallCounts,
    last: VecDeque<CallRecord>,
}

impl CallLog {
    pub(super) fn add(&self, record: CallRecord, is_retry: bool) {
        let CallRecord {
            method,
            path,
            class,
            status,
            took,
            request_id,
        } = &record;
        tracing::debug!(
            method,
            path,
            ?class,
            status,
            ?took,
            request_id,
            "called the resource manager"
        );
        let mut state = self.state.lock();
        let CallLogState { counts, last } = &mut *state;
        match class {
            CallClass::Read => counts.reads += 1,
            CallClass::Write => counts.writes += 1,
            CallClass::Poll => counts.polls += 1,
        }
        counts.retries += u64::from(is_retry);
        counts.throttled += u64::from(*status == Some(429));
        if last.len() == REMEMBERED {
            last.pop_front();
        }
        last.push_back(record);
    }

    pub(super) fn counts(&self) -> CallCounts {
        self.state.lock().counts
    }

    pub(super) fn last(&self) -> Vec<CallRecord> {
        let state = self.state.lock();
        state.last.iter().cloned().collect()
    }
}
