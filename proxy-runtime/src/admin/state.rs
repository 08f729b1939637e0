//! The state of the admin API, which its pages read.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64};
use std::time::Instant;

use discovery_core::Merged;
use proxy_model::Problems;

use super::listener_list::OpenListener;
use crate::explain::Listeners;
use crate::proxy::Proxy;
use crate::server::{Limits, RequestTail, ServerMetrics};

/// The proxy, and what the program has said of it.
pub(super) struct AdminState {
    pub(super) proxy: Proxy,
    pub(super) merged: Option<Arc<Merged>>,
    pub(super) hosts: Vec<String>,
    pub(super) started: Instant,
    pub(super) server: Option<Arc<ServerMetrics>>,
    /// The limits of the traffic server, which `explain` applies.
    pub(super) limits: Limits,
    pub(super) listeners: Listeners,
    pub(super) open_listeners: Vec<OpenListener>,
    pub(super) dropped_lines: Vec<DroppedLines>,
    pub(super) dropped_spans: Option<DroppedSpans>,
    pub(super) requests: Option<Arc<RequestTail>>,
    pub(super) program_problems: Option<ProgramProblems>,
    pub(super) draining: AtomicBool,
    /// True once the proxy has served a configuration of all required sources.
    pub(super) has_started: AtomicBool,
    /// Number of connections that were closed to make room for others.
    pub(super) evicted: Arc<AtomicU64>,
}

/// The name of a log, and the number of its missing lines.
pub(super) type DroppedLines = (&'static str, Box<dyn Fn() -> u64 + Send + Sync>);

/// The problems that the program finds while it runs.
pub(super) type ProgramProblems = Box<dyn Fn() -> Problems + Send + Sync>;

/// The number of spans that the export has dropped.
pub(super) type DroppedSpans = Box<dyn Fn() -> u64 + Send + Sync>;
