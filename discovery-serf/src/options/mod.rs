//! The options of discovery, from code or from the section `SerfDiscovery` of a configuration.

mod address;
mod key_file;
mod section;

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

pub use self::address::{AddressError, DEFAULT_PORT, agent_address};
pub use self::key_file::KeyFileError;
pub(crate) use self::key_file::read_key;
pub use self::section::{ConnectError, Section};
use crate::catalog::CatalogOptions;
use crate::client::AuthKey;
use crate::generate::GenerateOptions;

/// The options of discovery. The defaults suit an agent on the same machine.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct SerfOptions {
    /// Name of the source in logs, metrics and problems. A proxy of two clusters needs two names. Default:
    /// `serf`.
    pub name: Arc<str>,
    /// Addresses of the agents' RPC, as `host:port`. They must belong to one cluster. One of them is used,
    /// and the next one if it fails. Default: `127.0.0.1:7373`.
    pub agents: Vec<String>,
    /// The key that the agents require as `rpc_auth`. Default: none.
    pub auth_key: Option<AuthKey>,
    /// File with that key, as an alternative. It is read for each new connection, so that the key can be
    /// changed. Default: none.
    pub auth_key_file: Option<PathBuf>,
    /// The time from a successful poll to the next one, if the agent reports no event: agents drop some. It
    /// varies by a tenth, so that many proxies do not poll in step. This also checks that the agent still
    /// responds. At least 100 ms. Default: 30 s.
    pub reconcile_interval: Duration,
    /// The time without further events after which the agent is polled. Default: 100 ms.
    pub debounce: Duration,
    /// The longest time after an event until the agent is polled, even if further events follow. Default: 1
    /// s.
    pub debounce_max: Duration,
    /// The time limit for opening a connection. Default: 2 s.
    pub connect_timeout: Duration,
    /// The time limit of a response, after which the connection is closed. Default: 5 s.
    pub request_timeout: Duration,
    /// Maximum length of a response, in bytes. Default: 64 MiB, which suffices for 250,000 members.
    pub max_frame: usize,
    /// The handling of an agent that comes back and knows fewer members than before.
    pub hold: HoldOptions,
    /// True to make the agent leave out members without a `service` tag, which saves work where most
    /// members have none. Such members are then not seen at all, so there is no legacy mode. Default:
    /// false.
    pub prefilter_members: bool,
    /// True if a proxy is ready before the first response of an agent. Default: false.
    pub allow_start_before_discovery: bool,
    /// The file that keeps the last known good configuration, so that a proxy that starts while all agents
    /// are unavailable still serves. `None` to keep none. Default: `None`.
    pub persist: Option<PathBuf>,
    /// The options that decide which members are instances of services.
    pub catalog: CatalogOptions,
    /// The options for turning services into configuration.
    pub generate: GenerateOptions,
}

/// The handling of an agent that comes back and knows fewer members than before.
///
/// An agent that has just started knows only itself, and another agent may lag behind the previous one.
/// Their first response must not remove the services of a whole cluster. If that first response lacks too
/// much, the missing members are kept unchanged for a while. All members that it has apply at once, and so
/// do departures that members announced themselves. Without a new connection nothing is ever held.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub struct HoldOptions {
    /// The share of the serving instances that must be missing, above 0 and up to 1. With 1, all must be
    /// missing. An agent that sees only itself lacks too much in any case. Default: 1.
    pub share: f64,
    /// The longest time for which a missing member is kept. Zero to keep none. Further new connections do
    /// not extend it. Default: 10 s.
    ///
    /// With [`SerfOptions::persist`], this is also the time for which an agent that knows no service is not
    /// trusted after the start of a proxy.
    pub settle: Duration,
    /// The poll interval while members are kept. At least 10 ms. Default: 1 s.
    pub recheck: Duration,
}

impl Default for SerfOptions {
    fn default() -> Self {
        Self {
            name: "serf".into(),
            agents: vec![format!("127.0.0.1:{DEFAULT_PORT}")],
            auth_key: None,
            auth_key_file: None,
            reconcile_interval: Duration::from_secs(30),
            debounce: Duration::from_millis(100),
            debounce_max: Duration::from_secs(1),
            connect_timeout: Duration::from_secs(2),
            request_timeout: Duration::from_secs(5),
            max_frame: 64 * 1024 * 1024,
            hold: HoldOptions::default(),
            prefilter_members: false,
            allow_start_before_discovery: false,
            persist: None,
            catalog: CatalogOptions::default(),
            generate: GenerateOptions::default(),
        }
    }
}

impl Default for HoldOptions {
    fn default() -> Self {
        Self {
            share: 1.0,
            settle: Duration::from_secs(10),
            recheck: Duration::from_secs(1),
        }
    }
}

macro_rules! setters {
    ($options:ident: $($(#[$doc:meta])* $setter:ident $field:ident: $type:ty;)*) => {
        impl $options {
            $(
                $(#[$doc])*
                #[must_use]
                pub fn $setter(mut self, value: $type) -> Self {
                    self.$field = value.into();
                    self
                }
            )*
        }
    };
}

setters! { SerfOptions:
    /// Sets [`name`](Self::name).
    with_name name: Arc<str>;
    /// Sets [`auth_key_file`](Self::auth_key_file).
    with_auth_key_file auth_key_file: PathBuf;
    /// Sets [`reconcile_interval`](Self::reconcile_interval).
    with_reconcile_interval reconcile_interval: Duration;
    /// Sets [`debounce`](Self::debounce).
    with_debounce debounce: Duration;
    /// Sets [`debounce_max`](Self::debounce_max).
    with_debounce_max debounce_max: Duration;
    /// Sets [`connect_timeout`](Self::connect_timeout).
    with_connect_timeout connect_timeout: Duration;
    /// Sets [`request_timeout`](Self::request_timeout).
    with_request_timeout request_timeout: Duration;
    /// Sets [`max_frame`](Self::max_frame).
    with_max_frame max_frame: usize;
    /// Sets [`hold`](Self::hold).
    with_hold hold: HoldOptions;
    /// Sets [`prefilter_members`](Self::prefilter_members).
    with_prefilter_members prefilter_members: bool;
    /// Sets [`allow_start_before_discovery`](Self::allow_start_before_discovery).
    with_allow_start_before_discovery allow_start_before_discovery: bool;
    /// Sets [`persist`](Self::persist).
    with_persist persist: PathBuf;
    /// Sets [`catalog`](Self::catalog).
    with_catalog catalog: CatalogOptions;
    /// Sets [`generate`](Self::generate).
    with_generate generate: GenerateOptions;
}

setters! { HoldOptions:
    /// Sets [`share`](Self::share).
    with_share share: f64;
    /// Sets [`settle`](Self::settle).
    with_settle settle: Duration;
    /// Sets [`recheck`](Self::recheck).
    with_recheck recheck: Duration;
}

impl SerfOptions {
    /// Creates options for the agents at these addresses. An address without a port gets the port 7373.
    pub fn of<T: Into<String>>(agents: impl IntoIterator<Item = T>) -> Self {
        Self::default().with_agents(agents)
    }

    /// Sets [`auth_key`](Self::auth_key).
    #[must_use]
    pub fn with_auth_key(mut self, key: impl Into<AuthKey>) -> Self {
        self.auth_key = Some(key.into());
        self
    }

    /// Sets [`agents`](Self::agents). An address without a port gets the port 7373.
    #[must_use]
    pub fn with_agents<T: Into<String>>(mut self, agents: impl IntoIterator<Item = T>) -> Self {
        self.agents = agents.into_iter().map(Into::into).collect();
        self
    }
}

/// Maximum of all waits, so that sums of times cannot overflow.
const LONGEST: Duration = Duration::from_secs(365 * 24 * 3600);

/// Minimum of all periods. A shorter one would be a busy loop.
const SHORTEST: Duration = Duration::from_millis(10);

impl SerfOptions {
    /// Returns the options limited to useful values. An invalid address is kept: connecting to it reports
    /// the reason.
    pub(crate) fn bounded(mut self) -> Self {
        if self.agents.is_empty() {
            self.agents = Self::default().agents;
        }
        for agent in &mut self.agents {
            if let Ok(address) = agent_address(agent) {
                *agent = address;
            }
        }
        self.reconcile_interval = self
            .reconcile_interval
            .clamp(Duration::from_millis(100), LONGEST);
        for time in [&mut self.connect_timeout, &mut self.request_timeout] {
            *time = (*time).clamp(SHORTEST, LONGEST);
        }
        self.hold = self.hold.bounded();
        self
    }
}

impl HoldOptions {
    fn bounded(mut self) -> Self {
        self.settle = self.settle.min(LONGEST);
        self.recheck = self.recheck.clamp(SHORTEST, LONGEST);
        if !(self.share > 0.0 && self.share <= 1.0) {
            self.share = 1.0;
        }
        self
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nonsense_does_no_harm() {
        let options = SerfOptions::of(["agent", "[::1]", "::1"])
            .with_reconcile_interval(Duration::ZERO)
            .with_request_timeout(Duration::MAX)
            .with_hold(
                HoldOptions::default()
                    .with_share(f64::NAN)
                    .with_settle(Duration::MAX)
                    .with_recheck(Duration::ZERO),
            )
            .bounded();
        assert_eq!(options.agents, ["agent:7373", "[::1]:7373", "::1"]);
        assert_eq!(options.reconcile_interval, Duration::from_millis(100));
        assert_eq!(options.request_timeout, LONGEST);
        let hold = HoldOptions::default()
            .with_settle(LONGEST)
            .with_recheck(SHORTEST);
        assert_eq!(options.hold, hold);
        let nobody = SerfOptions::of([""; 0]).bounded();
        assert_eq!(nobody.agents, ["127.0.0.1:7373"]);
    }

    #[test]
    fn the_key_does_not_show() {
        let options = SerfOptions::default().with_auth_key("sekrit");
        assert!(!format!("{options:?}").contains("sekrit"));
    }
}
