//! Clients by network.

use std::net::{IpAddr, Ipv4Addr};

use ipnet::{IpNet, Ipv4Net};

use crate::config::NetworksConfig;

/// The networks whose clients may use a route.
#[derive(Debug)]
pub(super) struct Networks {
    allow: Option<Box<[IpNet]>>,
    deny: Box<[IpNet]>,
}

impl Networks {
    pub(super) fn new(config: &NetworksConfig) -> Self {
        Self {
            allow: config.allow.clone().map(Into::into),
            deny: config.deny.clone().into(),
        }
    }

    /// Returns true if a client may come. One whose address is unknown may not.
    pub(super) fn admit(&self, address: Option<IpAddr>) -> bool {
        let Some(address) = address else {
            return false;
        };
        let is_in = |networks: &[IpNet]| networks.iter().any(|network| network.contains(&address));
        !is_in(&self.deny) && self.allow.as_deref().is_none_or(is_in)
    }
}

/// Reads a network (`10.0.0.0/8`) or an address. A network of IPv4 in the form of IPv6 is one of IPv4, as addresses of
/// clients are.
///
/// # Errors
///
/// The error of a text that is no network, with what to write instead.
pub(crate) fn parse_network(text: &str) -> Result<IpNet, (String, Option<String>)> {
    let network = match text.parse::<IpNet>() {
        Ok(network) => network,
        Err(_) => match text.parse::<IpAddr>() {
            Ok(address) => IpNet::from(address),
            Err(_) => {
                let message = format!("`{text}` is not a network such as `10.0.0.0/8`");
                return Err((message, None));
            }
        },
    };
    if network.trunc() != network {
        let message = format!("`{text}` names an address within a network");
        return Err((message, Some(format!("write `{}`", network.trunc()))));
    }
    Ok(match network {
        IpNet::V6(v6) if v6.prefix_len() >= 96 => match v6.addr().to_ipv4_mapped() {
            Some(address) => mapped(address, v6.prefix_len() - 96),
            None => network,
        },
        IpNet::V4(_) | IpNet::V6(_) => network,
    })
}

fn mapped(address: Ipv4Addr, length: u8) -> IpNet {
    let network = Ipv4Net::new(address, length).expect("the length is at most 32");
    IpNet::V4(network)
}
