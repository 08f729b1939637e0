//! The state that all requests to the admin API read.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64};
use std::time::Instant;

use discovery_core::Merged;
use parking_lot::RwLock;
use proxy_model::Problems;

use super::access::AdminTokens;
use super::listener_list::OpenListener;
use super::log::AdminLog;
use crate::explain::Listeners;
use crate::proxy::Proxy;
#[cfg(feature = "tls")]
use crate::server::TlsServerConfig;
use crate::server::{Limits, RequestTail, ServerMetrics};

/// The parts of the program that the admin API shows.
pub(super) struct AdminState {
    pub(super) proxy: Proxy,
    pub(super) merged: Option<Arc<Merged>>,
    pub(super) hosts: Vec<String>,
    /// The tokens that requests need. `None`: they need none.
    pub(super) tokens: RwLock<Option<AdminTokens>>,
    /// The TLS of the admin server. `None`: cleartext.
    #[cfg(feature = "tls")]
    pub(super) tls: Option<TlsServerConfig>,
    /// Number of requests without a valid token or certificate.
    pub(super) rejected: AtomicU64,
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
    pub(super) log: Option<Arc<dyn AdminLog>>,
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
