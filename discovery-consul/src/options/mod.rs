//! The options of discovery, from code or from the section `ConsulDiscovery` of a configuration.

mod section;

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

pub use self::section::Section;
use crate::client::ConsulOptions;
use crate::watch::WatchOptions;

/// The options of discovery. The defaults suit an agent on the same machine, and its own datacenter.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct DiscoveryOptions {
    /// Name of the source in logs, metrics and problems. A proxy of two clusters needs two names. Default:
    /// `consul`.
    pub name: Arc<str>,
    /// The connection to the agent.
    pub consul: ConsulOptions,
    /// The watched datacenters, and the options of the watch.
    pub watch: WatchOptions,
    /// The options for turning services into configuration.
    pub services: ServiceOptions,
    /// Key in the own datacenter whose value has labels for services that do not set them; see
    /// [`ConsulDiscoverer`](crate::ConsulDiscoverer). Default: none.
    pub defaults_key: Option<String>,
    /// The time for which the first result waits for datacenters other than the own one. Default: 3 s.
    pub patience: Duration,
    /// True if a proxy is ready before the first response of Consul. Default: false.
    pub allow_start_before_discovery: bool,
    /// The file that keeps the last known good configuration, so that a proxy that starts while Consul is
    /// unavailable still serves. Default: none.
    pub persist: Option<PathBuf>,
}

/// The options for turning services into configuration.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ServiceOptions {
    /// The prefix of our labels, including the dot. Default: `proxy.`.
    pub label_prefix: String,
    /// True to serve services without the label `enable`. Default: false.
    pub enabled_by_default: bool,
    /// True to read [Traefik's common tags](crate::traefik) of services that have none of our labels.
    /// Default: true.
    pub traefik_tags: bool,
    /// The entry points of Traefik that this proxy replaces. Routers for others are left out. Default:
    /// `web` and `websecure`.
    pub traefik_entry_points: Vec<String>,
    /// True to send requests to instances with a warning check too, with their weight in Consul. Default:
    /// false.
    pub include_warning: bool,
    /// True to use the address `wan` of instances in other datacenters, if they have one. Default: true.
    pub wan_addresses: bool,
    /// The tier of each datacenter: instances of a lower number get all requests while any of them is
    /// available. Default: 0 for the agent's own datacenter, 1 for others.
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
