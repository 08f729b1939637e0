use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use super::TlsOptions;

/// The variant of the protocol.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub enum Mode {
    /// Delta: each response has the changes.
    #[default]
    Delta,
    /// State of the world (SotW): each response has all resources of a type.
    StateOfTheWorld,
}

/// The options of an [`XdsDiscoverer`](super::XdsDiscoverer).
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct XdsOptions {
    /// Name of the source. Default: `xds`.
    pub name: Arc<str>,
    /// The control planes, as `http://host:port` or `https://host:port`. The first one to use depends on
    /// the [`node_id`](Self::node_id), so that a fleet with one list uses all of them. The next one is used
    /// when a connection fails, or does not respond for 15 s. Default: `http://127.0.0.1:1701`.
    pub servers: Vec<String>,
    /// The TLS options for `https` servers.
    pub tls: TlsOptions,
    /// The variant of the protocol. Default: delta.
    pub mode: Mode,
    /// The id of this proxy. Default: `proxy`.
    pub node_id: String,
    /// The fleet that this proxy belongs to. Default: empty.
    pub node_cluster: String,
    /// Further facts about this proxy for the control plane. Default: none.
    pub node_metadata: BTreeMap<String, String>,
    /// Route configurations that are requested even if no listener names them. Default: `main`.
    pub route_configs: Vec<String>,
    /// True to request listeners, in order to find route configurations. Default: true.
    pub listeners: bool,
    /// The time limit for connecting, including TLS. Default: 5 s.
    pub connect_timeout: Duration,
    /// The time limit for the first response of the control plane. In delta mode, a control plane that is
    /// silent after a reconnect, since nothing has changed, counts as available after a second without an
    /// error. Default: 30 s.
    pub answer_timeout: Duration,
    /// The time limit for the rest of a change, such as the endpoints of a new cluster. Default: 15 s.
    pub fetch_timeout: Duration,
    /// The time without further changes after which a change is applied. Default: 20 ms.
    pub settle: Duration,
    /// The first and the longest wait before an unavailable control plane is retried. Each wait is up to
    /// twice the one before, and partly random. Default: 500 ms and 30 s.
    pub backoff: (Duration, Duration),
    /// Maximum length of a response, in bytes. Default: 64 MiB.
    pub max_message: usize,
    /// Maximum number of resources of one type. Default: 100,000.
    pub max_resources: usize,
    /// True if the proxy is ready before there is a configuration. Default: false.
    pub allow_start_before_discovery: bool,
    /// The file that keeps the last known good configuration, so that a restart without a control plane
    /// still serves. Default: none.
    pub persist: Option<PathBuf>,
}

impl Default for XdsOptions {
    fn default() -> Self {
        Self {
            name: "xds".into(),
            servers: vec!["http://127.0.0.1:1701".to_owned()],
            tls: TlsOptions::default(),
            mode: Mode::default(),
            node_id: "proxy".to_owned(),
            node_cluster: String::new(),
            node_metadata: BTreeMap::new(),
            route_configs: vec!["main".to_owned()],
            listeners: true,
            connect_timeout: Duration::from_secs(5),
            answer_timeout: Duration::from_secs(30),
            fetch_timeout: Duration::from_secs(15),
            settle: Duration::from_millis(20),
            backoff: (Duration::from_millis(500), Duration::from_secs(30)),
            max_message: 64 << 20,
            max_resources: 100_000,
            allow_start_before_discovery: false,
            persist: None,
        }
    }
}

macro_rules! setters {
    ($($name:ident => $field:ident: $type:ty,)*) => {
        impl XdsOptions {
            $(
                #[doc = concat!("Sets [`", stringify!($field), "`](Self::", stringify!($field), ").")]
                #[must_use]
                pub fn $name(mut self, value: $type) -> Self {
                    self.$field = value;
                    self
                }
            )*
        }
    };
}

setters! {
    with_name => name: Arc<str>,
    with_servers => servers: Vec<String>,
    with_tls => tls: TlsOptions,
    with_mode => mode: Mode,
    with_node_id => node_id: String,
    with_node_cluster => node_cluster: String,
    with_node_metadata => node_metadata: BTreeMap<String, String>,
    with_route_configs => route_configs: Vec<String>,
    with_listeners => listeners: bool,
    with_connect_timeout => connect_timeout: Duration,
    with_answer_timeout => answer_timeout: Duration,
    with_fetch_timeout => fetch_timeout: Duration,
    with_settle => settle: Duration,
    with_backoff => backoff: (Duration, Duration),
    with_max_message => max_message: usize,
    with_max_resources => max_resources: usize,
    with_allow_start_before_discovery => allow_start_before_discovery: bool,
    with_persist => persist: Option<PathBuf>,
}
