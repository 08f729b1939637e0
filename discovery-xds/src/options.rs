use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use super::TlsOptions;

/// Which variant of the protocol is spoken.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub enum Mode {
    /// Each answer has what changed.
    #[default]
    Delta,
    /// Each answer has all of a type.
    StateOfTheWorld,
}

/// How an [`XdsDiscoverer`](super::XdsDiscoverer) behaves.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct XdsOptions {
    /// Name of the source. `xds`.
    pub name: Arc<str>,
    /// The control planes, `http://host:port` or `https://host:port`. Where a proxy begins depends on its
    /// [`node_id`](Self::node_id), so that a fleet with one list asks all of them; the next one is asked when one is lost, or
    /// has given no sign of life for 15 s. `http://127.0.0.1:1701`.
    pub servers: Vec<String>,
    /// For `https` servers.
    pub tls: TlsOptions,
    /// The variant of the protocol. Delta.
    pub mode: Mode,
    /// Who this proxy is. `proxy`.
    pub node_id: String,
    /// Which fleet this proxy belongs to. Empty.
    pub node_cluster: String,
    /// Whatever else the control plane wants to know of this proxy. None.
    pub node_metadata: BTreeMap<String, String>,
    /// Route configurations that are asked for whether or not a listener names them. `main`.
    pub route_configs: Vec<String>,
    /// Whether listeners are asked for, to find route configurations. `true`.
    pub listeners: bool,
    /// How long connecting may take, TLS included. 5 s.
    pub connect_timeout: Duration,
    /// How long the control plane may take to answer at all. 30 s. With delta one that has nothing to say after a reconnect, since
    /// nothing has changed, is taken to be there after a second without an error.
    pub answer_timeout: Duration,
    /// How long the rest of a change is waited for, such as the endpoints of a new cluster. 15 s.
    pub fetch_timeout: Duration,
    /// How long it has to be quiet before a change is taken in. 20 ms.
    pub settle: Duration,
    /// The first and the longest wait before a lost control plane is asked again; each wait is up to twice the one before it,
    /// and a part of it is left to chance. 500 ms and 30 s.
    pub backoff: (Duration, Duration),
    /// The largest answer in bytes. 64 MiB.
    pub max_message: usize,
    /// The most resources of one type. 100,000.
    pub max_resources: usize,
    /// Whether the proxy is ready before there was a configuration. `false`.
    pub allow_start_before_discovery: bool,
    /// The file that keeps the last good configuration, so that a restart without a control plane serves. None.
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
