//! The sections of the configuration that concern this program, beside `ReverseProxy`.
//!
//! They are read at start. Of a running program `ReverseProxy`, `Policies`, `Telemetry.LogFilter` and
//! `Server.ErrorPages` are reloaded.

mod admin;
mod affinity;
mod destination_resolver;
mod error_pages;
mod limits;
mod listener;
mod resolver;
pub(crate) mod sections;
mod senders;
mod telemetry;
#[cfg(test)]
mod tests;
mod tls;

use std::ops::RangeInclusive;
use std::path::PathBuf;
use std::time::Duration;

use proxy_model::json::{Node, ObjectReader};
use proxy_model::{Problem, Problems};
use proxy_runtime::Network;
use proxy_runtime::explain::Listeners;
use proxy_runtime::server::Limits;

use crate::sources::Sources;

pub(crate) use self::admin::{Admin, TOKEN_FILE, TokenSource};
pub(crate) use self::affinity::{AFFINITY_KEYS_FILE, AffinityKeySource};
pub(crate) use self::destination_resolver::DestinationResolver;
pub(crate) use self::error_pages::{ERROR_PAGES, ErrorPageSettings};
pub(crate) use self::listener::Listener;
pub(crate) use self::resolver::Resolver;
pub(crate) use self::telemetry::{LineFormat, LogFormat, Telemetry};
pub(crate) use self::tls::{Clients, Handshakes, Tls};

/// The default time that requests in flight have when the program stops.
const DRAIN_TIMEOUT: Duration = Duration::from_secs(30);

/// The maximum length of a socket's path. A Unix socket's address has 108 bytes (unix(7)); while the program
/// starts, some are needed for the process id.
const MAX_SOCKET_PATH: usize = 96;

/// The settings of the program.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Settings {
    pub(crate) listeners: Vec<Listener>,
    /// The admin page. `None`: switched off.
    pub(crate) admin: Option<Admin>,
    pub(crate) telemetry: Telemetry,
    pub(crate) server: Server,
    pub(crate) sources: Sources,
}

/// Section `Server`.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Server {
    /// The number of serving threads. `None`: one per core.
    pub(crate) workers: Option<usize>,
    /// The time for which requests are still accepted after `/readyz` reports that the program stops.
    pub(crate) readiness_delay: Duration,
    pub(crate) drain_timeout: Duration,
    /// The zone of this proxy. Destinations of the same zone are preferred.
    pub(crate) zone: Option<String>,
    /// True if requests that return to this proxy are rejected.
    pub(crate) loop_guard: bool,
    /// True if errors have the form that the client prefers.
    pub(crate) negotiate_errors: bool,
    /// The bodies of errors in place of the program's own.
    pub(crate) error_pages: ErrorPageSettings,
    /// The networks whose clients get the causes of errors in a header. Empty: none.
    pub(crate) cause_networks: Vec<Network>,
    /// The path of the Unix socket at which a second instance gets the listening sockets of this one.
    pub(crate) handover: Option<PathBuf>,
    /// The resolver of the names of destinations.
    pub(crate) resolver: Resolver,
    /// The refresh of destinations that are names. `None`: a name is one destination.
    pub(crate) destination_resolver: Option<DestinationResolver>,
    /// The keys that affinity keys are encrypted with. `None`: a random one.
    pub(crate) affinity_keys: Option<AffinityKeySource>,
    /// The limits. `body_bytes` is the default of routes.
    pub(crate) limits: Limits,
}

impl Default for Server {
    fn default() -> Self {
        Self {
            workers: None,
            readiness_delay: Duration::ZERO,
            drain_timeout: DRAIN_TIMEOUT,
            zone: None,
            loop_guard: true,
            negotiate_errors: false,
            error_pages: ErrorPageSettings::default(),
            cause_networks: Vec::new(),
            handover: None,
            resolver: Resolver::default(),
            destination_resolver: None,
            affinity_keys: None,
            limits: Limits::default(),
        }
    }
}

impl Settings {
    /// Returns the listeners in the form for `explain`.
    pub(crate) fn explained_listeners(&self) -> Listeners {
        let listeners = self.listeners.iter();
        listeners
            .map(|listener| (listener.name.clone(), listener.rules))
            .collect()
    }

    /// Reads the program's sections of `document`. All problems are added to `problems`.
    pub(crate) fn read(document: &Node, problems: &mut Problems) -> Self {
        sections::judge(document, problems);
        let mut settings = ObjectReader::read(document, "", problems, |root| {
            root.allow_unknown();
            Self {
                listeners: root
                    .entries("Listeners", listener::read)
                    .map(|entries| entries.into_iter().map(|(_, listener)| listener).collect())
                    .unwrap_or_default(),
                admin: admin::read(root),
                telemetry: root
                    .object("Telemetry", telemetry::read)
                    .unwrap_or_default(),
                server: root.object("Server", read_server).unwrap_or_default(),
                sources: Sources::read(root),
            }
        })
        .unwrap_or_else(|| Self {
            listeners: Vec::new(),
            admin: Some(Admin::default()),
            telemetry: Telemetry::default(),
            server: Server::default(),
            sources: Sources::default(),
        });
        if settings.listeners.is_empty() {
            settings.listeners.push(Listener::default());
        }
        listener::report_shared_addresses(&settings, problems);
        settings
    }
}

fn read_server(server: &mut ObjectReader<'_, '_>) -> Server {
    let negotiate_errors = server.boolean("NegotiateErrors").unwrap_or_default();
    Server {
        workers: whole(server, "Workers", 1..=1024),
        readiness_delay: server
            .time_span("ReadinessDelay")
            .map_or(Duration::ZERO, Duration::from),
        drain_timeout: server
            .time_span("DrainTimeout")
            .map_or(DRAIN_TIMEOUT, Duration::from),
        zone: server.text("Zone"),
        loop_guard: server.boolean("LoopGuard").unwrap_or(true),
        negotiate_errors,
        error_pages: error_pages::read(server, negotiate_errors),
        cause_networks: senders::read_cause_networks(server),
        handover: read_handover(server),
        resolver: server
            .object("Resolver", resolver::read)
            .unwrap_or_default(),
        destination_resolver: server
            .object("DnsDestinationResolver", destination_resolver::read)
            .flatten(),
        affinity_keys: affinity::read(server),
        limits: server.object("Limits", limits::read).unwrap_or_default(),
    }
}

fn read_handover(server: &mut ObjectReader<'_, '_>) -> Option<PathBuf> {
    let path = server.text("Handover")?;
    let message = if path.is_empty() {
        "`Handover` is empty"
    } else if cfg!(not(target_os = "linux")) {
        "listening sockets change hands on Linux only"
    } else if path.len() > MAX_SOCKET_PATH {
        "the path is too long for a socket"
    } else {
        return Some(PathBuf::from(path));
    };
    let pointer = server.pointer_to("Handover");
    let problem = Problem::error(pointer, "invalid_handover", message)
        .with_suggestion("write `/run/proxy/handover.sock`, or leave the key out");
    server.problems().push(problem);
    None
}

fn whole(
    object: &mut ObjectReader<'_, '_>,
    key: &'static str,
    range: RangeInclusive<u32>,
) -> Option<usize> {
    object.integer(key, range)?.try_into().ok()
}
