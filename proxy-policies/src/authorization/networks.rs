//! Clients by network.

use std::net::IpAddr;

use proxy_runtime::Network;

use crate::config::{NetworkSetting, NetworksConfig};

/// The networks whose clients may use a route.
#[derive(Debug)]
pub(super) struct Networks {
    allow: Option<Box<[Network]>>,
    deny: Box<[Network]>,
}

impl Networks {
    pub(super) fn new(config: &NetworksConfig) -> Self {
        let networks =
            |settings: &[NetworkSetting]| settings.iter().map(|setting| setting.0).collect();
        Self {
            allow: config.allow.as_deref().map(networks),
            deny: networks(&config.deny),
        }
    }

    /// Returns true if a client may come. One whose address is unknown may not.
    pub(super) fn admit(&self, address: Option<IpAddr>) -> bool {
        let Some(address) = address else {
            return false;
        };
        let is_in = |networks: &[Network]| networks.iter().any(|network| network.contains(address));
        !is_in(&self.deny) && self.allow.as_deref().is_none_or(is_in)
    }
}
