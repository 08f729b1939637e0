//! How discovery behaves, from code or from the section `SerfDiscovery` of a configuration.

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

/// How discovery behaves. The defaults suit an agent on the same machine.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct SerfOptions {
    /// Names the source in logs, metrics and problems. `serf`. A proxy of two clusters needs two names.
    pub name: Arc<str>,
    /// Addresses of the agents' RPC, as `host:port`; one is used, the next when it fails. `127.0.0.1:7373`. They must be of
    /// one cluster.
    pub agents: Vec<String>,
    /// What the agents demand as `rpc_auth`. None.
    pub auth_key: Option<AuthKey>,
    /// File with that key instead. It is read each time that a connection is made, so that the key can be changed. None.
    pub auth_key_file: Option<PathBuf>,
    /// How long after an answer the agent is asked again if it reports no event: agents lose some. 30 s; at least 100 ms.
    /// It varies by a tenth, so that many proxies do not ask in step. This also finds out whether the agent still answers.
    pub reconcile_interval: Duration,
    /// After an event the agent is asked when no further one has come for so long. 100 ms.
    pub debounce: Duration,
    /// After an event the agent is asked no later than this, however many come. 1 s.
    pub debounce_max: Duration,
    /// How long opening a connection may take. 2 s.
    pub connect_timeout: Duration,
    /// How long an answer of the agent may take before the connection is given up. 5 s.
    pub request_timeout: Duration,
    /// The longest answer that is taken, in bytes. 64 MiB, which is a quarter of a million members.
    pub max_frame: usize,
    /// What happens when an agent comes back and knows less than before.
    pub hold: HoldOptions,
    /// Whether the agent leaves out members without a `service` tag, which saves much where most have none. `false`. What has
    /// no such tag is then not seen at all, so there is no legacy mode.
    pub prefilter_members: bool,
    /// Whether a proxy is ready before an agent has answered for the first time. `false`.
    pub allow_start_before_discovery: bool,
    /// File that keeps the last good configuration, so that a proxy that starts while all agents are away still serves.
    /// Unset: none.
    pub persist: Option<PathBuf>,
    /// Which members are instances of services.
    pub catalog: CatalogOptions,
    /// What configuration services become.
    pub generate: GenerateOptions,
}

/// What happens when an agent comes back and knows less than before.
///
/// An agent that has just been started knows only itself, and another agent may be behind the one that was asked before.
/// Their first answer must not take away the services of a whole cluster. When that first answer lacks too much, the
/// members that it lacks are kept as they were for a while; whatever it has applies at once, and so does what the members
/// have said themselves, that they leave. Without a new connection nothing is ever held.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub struct HoldOptions {
    /// What share of the instances that served must be lacking, above 0 and up to 1. 1: all of them. An agent that sees
    /// nobody but itself lacks too much in any case.
    pub share: f64,
    /// How long a member is kept at most. 10 s. Zero: not at all. Further new connections do not make it longer.
    ///
    /// With [`SerfOptions::persist`] this is also how long an agent that knows no service at all is not believed when a
    /// proxy has just started.
    pub settle: Duration,
    /// How often the agent is asked meanwhile. 1 s; at least 10 ms.
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
    /// The agents at these addresses. One without a port has the port 7373.
    pub fn of<T: Into<String>>(agents: impl IntoIterator<Item = T>) -> Self {
        Self::default().with_agents(agents)
    }

    /// Sets [`auth_key`](Self::auth_key).
    #[must_use]
    pub fn with_auth_key(mut self, key: impl Into<AuthKey>) -> Self {
        self.auth_key = Some(key.into());
        self
    }

    /// Sets [`agents`](Self::agents). One without a port has the port 7373.
    #[must_use]
    pub fn with_agents<T: Into<String>>(mut self, agents: impl IntoIterator<Item = T>) -> Self {
        self.agents = agents.into_iter().map(Into::into).collect();
        self
    }
}

/// Longer than this nobody waits, and sums of times cannot overflow.
const LONGEST: Duration = Duration::from_secs(365 * 24 * 3600);

/// Under this a period would be a busy loop.
const SHORTEST: Duration = Duration::from_millis(10);

impl SerfOptions {
    /// The same with values that make sense. An address that is none stays as it is: connecting to it says why not.
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
