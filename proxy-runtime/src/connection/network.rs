//! Networks of IP addresses.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr};
use std::str::FromStr;

use ipnet::{IpNet, Ipv4Net};

/// A network of IP addresses, such as `10.0.0.0/8`. A single address is a network of one.
///
/// An IPv4-mapped IPv6 network counts as IPv4, like such addresses of clients.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Network(IpNet);

impl Network {
    /// Returns true if the network contains the address. An IPv4-mapped IPv6 address counts as IPv4.
    pub fn contains(&self, address: IpAddr) -> bool {
        self.0.contains(&address.to_canonical())
    }
}

impl fmt::Display for Network {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// The error of a text that is no network.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct NetworkError {
    message: String,
    suggestion: Option<String>,
}

impl NetworkError {
    /// The text to write instead, if that is known.
    pub fn suggestion(&self) -> Option<&str> {
        self.suggestion.as_deref()
    }
}

impl FromStr for Network {
    type Err = NetworkError;

    fn from_str(text: &str) -> Result<Self, NetworkError> {
        let network = match text.parse::<IpNet>() {
            Ok(network) => network,
            Err(_) => match text.parse::<IpAddr>() {
                Ok(address) => IpNet::from(address),
                Err(_) => {
                    return Err(NetworkError {
                        message: format!("`{text}` is not a network such as `10.0.0.0/8`"),
                        suggestion: None,
                    });
                }
            },
        };
        if network.trunc() != network {
            return Err(NetworkError {
                message: format!("`{text}` names an address within a network"),
                suggestion: Some(format!("write `{}`", network.trunc())),
            });
        }
        Ok(Self(match network {
            // All IPv4-mapped addresses are in `::ffff:0:0/96`.
            IpNet::V6(v6) if v6.prefix_len() >= 96 => match v6.addr().to_ipv4_mapped() {
                Some(address) => mapped(address, v6.prefix_len() - 96),
                None => network,
            },
            IpNet::V4(_) | IpNet::V6(_) => network,
        }))
    }
}

fn mapped(address: Ipv4Addr, length: u8) -> IpNet {
    let network = Ipv4Net::new(address, length).expect("the length is at most 32");
    IpNet::V4(network)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn networks_are_read_and_contain_addresses_of_either_form() {
        for (network, address, expected) in [
            ("10.0.0.0/8", "10.1.2.3", true),
            ("10.0.0.0/8", "::ffff:10.1.2.3", true),
            ("10.0.0.0/8", "11.0.0.1", false),
            ("192.0.2.7", "192.0.2.7", true),
            ("192.0.2.7", "192.0.2.8", false),
            ("::ffff:192.0.2.0/120", "192.0.2.77", true),
            ("2001:db8::/32", "2001:db8:1::1", true),
            ("2001:db8::/32", "2001:db9::1", false),
            ("0.0.0.0/0", "1.2.3.4", true),
            ("0.0.0.0/0", "::1", false),
            ("::/0", "1.2.3.4", false),
        ] {
            let network: Network = network.parse().unwrap();
            let address = address.parse().unwrap();
            assert_eq!(network.contains(address), expected, "{network} {address}");
        }
    }

    #[test]
    fn a_text_that_is_no_network_says_what_to_write() {
        let error = "10.0.0.7/8".parse::<Network>().unwrap_err();
        assert_eq!(error.suggestion(), Some("write `10.0.0.0/8`"));
        for text in ["", "proxy.example", "10.0.0.0/33", "10.0.0", "::1/129"] {
            let error = text.parse::<Network>().unwrap_err();
            assert_eq!(
                error.to_string(),
                format!("`{text}` is not a network such as `10.0.0.0/8`")
            );
        }
    }
}
