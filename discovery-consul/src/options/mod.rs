//! How discovery behaves, from code or from the section `ConsulDiscovery` of a configuration.

mod section;

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

pub use self::section::Section;
use crate::client::ConsulOptions;
use crate::watch::WatchOptions;

/// How discovery behaves. The defaults suit an agent on the same machine, and its own datacenter.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct DiscoveryOptions {
    /// Names the source in logs, metrics and problems. `consul`. A proxy of two clusters needs two names.
    pub name: Arc<str>,
    /// How the agent is reached.
    pub consul: ConsulOptions,
    /// Which datacenters are watched, and how.
    pub watch: WatchOptions,
    /// What services become.
    pub services: ServiceOptions,
    /// Key in the own datacenter whose value has labels for services that do not say otherwise; see
    /// [`ConsulDiscoverer`](crate::ConsulDiscoverer). None.
    pub defaults_key: Option<String>,
    /// How long the first answer waits for datacenters other than the own one. 3 s.
    pub patience: Duration,
    /// Whether a proxy is ready before Consul has answered for the first time. `false`.
    pub allow_start_before_discovery: bool,
    /// File that keeps the last good configuration, so that a proxy that starts while Consul is away still serves. None.
    pub persist: Option<PathBuf>,
}

/// What services become.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ServiceOptions {
    /// What our labels begin with, with the dot. `proxy.`.
    pub label_prefix: String,
    /// Whether services that do not say `enable` are served. `false`.
    pub enabled_by_default: bool,
    /// Whether [Traefik's common tags](crate::traefik) are understood, of services that have none of our labels. `true`.
    pub traefik_tags: bool,
    /// The entry points of Traefik that this proxy stands for: routers for others are left out. `web` and `websecure`.
    pub traefik_entry_points: Vec<String>,
    /// Whether instances with a check that warns get requests, with the weight that Consul has for them. `false`.
    pub include_warning: bool,
    /// Whether instances in other datacenters are reached at their address `wan`, if they have one. `true`.
    pub wan_addresses: bool,
    /// The tier of each datacenter: instances of a lower number get all requests while any of them is available. Those that
    /// are not named have 0 if it is the agent's own, and 1.
    pub priorities: BTreeMap<Arc<str>, u32>,
}

impl Default for DiscoveryOptions {
    fn default() -> Self {
        Self {
            name: "consul".into(),
            consul: ConsulOptions::default(),
            watch: WatchOptions::default(),
            services: ServiceOptions::default(),
            defaults_key: None,
            patience: Duration::from_secs(3),
            allow_start_before_discovery: false,
            persist: None,
        }
    }
}

impl Default for ServiceOptions {
    fn default() -> Self {
        Self {
            label_prefix: "proxy.".to_owned(),
            enabled_by_default: false,
            traefik_tags: true,
            traefik_entry_points: vec!["web".to_owned(), "websecure".to_owned()],
            include_warning: false,
            wan_addresses: true,
            priorities: BTreeMap::new(),
        }
    }
}

macro_rules! setters {
    ($options:ident: $($(#[$doc:meta])* $setter:ident $field:ident: $type:ty;)*) => {
        impl $options {
            $(
                $(#[$doc])*
                #[must_use]
                pub fn $setter(mut self, value: impl Into<$type>) -> Self {
                    let value: $type = value.into();
                    self.$field = value.into();
                    self
                }
            )*
        }
    };
}

setters! { DiscoveryOptions:
    /// Sets [`name`](Self::name).
    with_name name: Arc<str>;
    /// Sets [`consul`](Self::consul).
    with_consul consul: ConsulOptions;
    /// Sets [`watch`](Self::watch).
    with_watch watch: WatchOptions;
    /// Sets [`services`](Self::services).
    with_services services: ServiceOptions;
    /// Sets [`defaults_key`](Self::defaults_key).
    with_defaults_key defaults_key: String;
    /// Sets [`patience`](Self::patience).
    with_patience patience: Duration;
    /// Sets [`allow_start_before_discovery`](Self::allow_start_before_discovery).
    with_allow_start_before_discovery allow_start_before_discovery: bool;
    /// Sets [`persist`](Self::persist).
    with_persist persist: PathBuf;
}

setters! { ServiceOptions:
    /// Sets [`label_prefix`](Self::label_prefix).
    with_label_prefix label_prefix: String;
    /// Sets [`enabled_by_default`](Self::enabled_by_default).
    with_enabled_by_default enabled_by_default: bool;
    /// Sets [`traefik_tags`](Self::traefik_tags).
    with_traefik_tags traefik_tags: bool;
    /// Sets [`traefik_entry_points`](Self::traefik_entry_points).
    with_traefik_entry_points traefik_entry_points: Vec<String>;
    /// Sets [`include_warning`](Self::include_warning).
    with_include_warning include_warning: bool;
    /// Sets [`wan_addresses`](Self::wan_addresses).
    with_wan_addresses wan_addresses: bool;
    /// Sets [`priorities`](Self::priorities).
    with_priorities priorities: BTreeMap<Arc<str>, u32>;
}
