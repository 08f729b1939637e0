//! Asynchronous operations.

use std::collections::{BTreeMap, VecDeque};

use serde_json::{Value, json};

/// The maximum number of finished operations that can be polled.
const REMEMBERED: usize = 4_096;

/// The effect of a write when it completes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Effect {
    /// The written state takes effect.
    Settle,
    /// The resource is removed.
    Remove,
}

/// The failure of an operation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Failing {
    /// `Failed` or `Canceled`.
    pub(super) status: &'static str,
    pub(super) code: String,
    pub(super) message: String,
}

/// A write, in progress or complete.
#[derive(Clone, Debug)]
pub(super) struct PendingOperation {
    /// The key of the resource.
    pub(super) key: String,
    pub(super) effect: Effect,
    /// The request count at which the operation completes.
    pub(super) due: u64,
    pub(super) failing: Option<Failing>,
    pub(super) is_over: bool,
}

/// All operations.
#[derive(Clone, Debug, Default)]
pub(super) struct Operations {
    all: BTreeMap<u64, PendingOperation>,
    over: VecDeque<u64>,
    last: u64,
}

impl Operations {
    /// Begins an operation and returns its number.
    pub(super) fn begin(&mut self, operation: PendingOperation) -> u64 {
        self.last += 1;
        self.all.insert(self.last, operation);
        self.last
    }

    /// Returns true if a write of the resource is in progress.
    pub(super) fn is_busy(&self, key: &str) -> bool {
        self.all.values().any(|one| !one.is_over && one.key == key)
    }

    /// Completes the operations that are due, in the order in which they began.
    pub(super) fn end(&mut self, now: u64) -> Vec<PendingOperation> {
        let mut ended = Vec::new();
        for (number, operation) in &mut self.all {
            if !operation.is_over && operation.due <= now {
                operation.is_over = true;
                self.over.push_back(*number);
                ended.push(operation.clone());
            }
        }
        while self.over.len() > REMEMBERED {
            if let Some(oldest) = self.over.pop_front() {
                self.all.remove(&oldest);
            }
        }
        ended
    }

    /// Returns the operation with an id from a URL.
    pub(super) fn find(&self, wanted: &str) -> Option<&PendingOperation> {
        let number = u64::from_str_radix(wanted.rsplit('-').next()?, 16).ok()?;
        self.all.get(&number).filter(|_| id(number) == wanted)
    }
}

/// Returns a number as an id for URLs.
pub(super) fn id(number: u64) -> String {
    format!("00000000-0000-4000-8001-{number:012x}")
}

impl PendingOperation {
    /// Returns the body of the `Azure-AsyncOperation` response.
    pub(super) fn body(&self) -> Value {
        match &self.failing {
            _ if !self.is_over => json!({ "status": "InProgress" }),
            None => json!({ "status": "Succeeded" }),
            Some(failing) => json!({
                "status": failing.status,
                "error": { "code": failing.code, "message": failing.message, "details": [] },
            }),
        }
    }
}
