//! The log of requests.

use std::collections::VecDeque;

use http::{Method, StatusCode};
use serde::Serialize;

/// The maximum number of remembered requests. Counters are not limited.
const REMEMBERED: usize = 10_000;

/// The purpose of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum RequestClass {
    /// Resources are read.
    Read,
    /// Resources are written or deleted.
    Write,
    /// The progress of an earlier write is polled.
    Poll,
}

impl RequestClass {
    pub(super) fn of(method: &Method, path: &str) -> Self {
        let path = path.to_ascii_lowercase();
        if path.contains("/operations/") || path.contains("/operationresults/") {
            Self::Poll
        } else if *method == Method::GET || *method == Method::HEAD {
            Self::Read
        } else {
            Self::Write
        }
    }
}

/// A received request.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct LoggedRequest {
    /// The method.
    pub method: String,
    /// The path and query.
    pub target: String,
    /// The purpose.
    pub class: RequestClass,
    /// The status of the response. `None` if it was lost.
    pub status: Option<u16>,
    /// The error code, if the response was an error.
    pub code: Option<String>,
}

/// The numbers of requests of each class.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct RequestCounts {
    /// The number of reads of resources.
    pub reads: u64,
    /// The number of writes and deletions.
    pub writes: u64,
    /// The number of polls of operations.
    pub polls: u64,
}

/// The requests since the beginning, or since the log was cleared.
#[derive(Clone, Debug, Default)]
pub(super) struct RequestLog {
    requests: VecDeque<LoggedRequest>,
    counts: RequestCounts,
}

impl RequestLog {
    pub(super) fn add(
        &mut self,
        method: &Method,
        target: &str,
        status: Option<StatusCode>,
        code: Option<String>,
    ) {
        let path = target.split('?').next().unwrap_or_default();
        let class = RequestClass::of(method, path);
        match class {
            RequestClass::Read => self.counts.reads += 1,
            RequestClass::Write => self.counts.writes += 1,
            RequestClass::Poll => self.counts.polls += 1,
        }
        if self.requests.len() == REMEMBERED {
            self.requests.pop_front();
        }
        self.requests.push_back(LoggedRequest {
            method: method.as_str().to_owned(),
            target: target.to_owned(),
            class,
            status: status.map(|status| status.as_u16()),
            code,
        });
    }

    pub(super) fn requests(&self) -> Vec<LoggedRequest> {
        self.requests.iter().cloned().collect()
    }

    pub(super) fn counts(&self) -> RequestCounts {
        self.counts
    }

    pub(super) fn clear(&mut self) {
        *self = Self::default();
    }
}
