//! The header of the PROXY protocol, version 2, at the beginning of a connection to a destination.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use proxy_header::{ProxiedAddress, ProxyHeader};

use crate::connection::ConnectionInfo;

/// The client that a connection is opened for, and the address that it connected to.
#[derive(Clone, Copy, Debug)]
pub(crate) struct AnnouncedClient {
    remote: Option<SocketAddr>,
    local: Option<SocketAddr>,
}

impl AnnouncedClient {
    pub(crate) fn of(connection: &ConnectionInfo) -> Self {
        Self {
            remote: connection.remote,
            local: connection.local,
        }
    }

    /// Both addresses, of one family. `None` if the client is not known.
    fn addresses(self) -> Option<(SocketAddr, SocketAddr)> {
        let remote = canonical(self.remote?);
        let unknown = match remote.ip() {
            IpAddr::V4(_) => IpAddr::V4(Ipv4Addr::UNSPECIFIED),
            IpAddr::V6(_) => IpAddr::V6(Ipv6Addr::UNSPECIFIED),
        };
        let local = self.local.map(canonical);
        // The header has no form for one address alone: an unspecified one stands for it.
        let local = local.unwrap_or_else(|| SocketAddr::new(unknown, 0));
        Some(match remote.is_ipv4() == local.is_ipv4() {
            true => (remote, local),
            // A trusted proxy may have reported a client of another family.
            false => (in_ipv6(remote), in_ipv6(local)),
        })
    }
}

/// Returns the header for a connection. Without a client, it is one of the proxy's own.
pub(super) fn header(client: Option<AnnouncedClient>) -> Vec<u8> {
    let header = match client.and_then(AnnouncedClient::addresses) {
        Some((source, destination)) => {
            ProxyHeader::with_address(ProxiedAddress::stream(source, destination))
        }
        None => ProxyHeader::with_local(),
    };
    // A head of 16 bytes, and 36 for two IPv6 addresses with their ports.
    let mut bytes = Vec::with_capacity(52);
    header
        .encode_v2(&mut bytes)
        .expect("two addresses of one family fit");
    bytes
}

fn canonical(address: SocketAddr) -> SocketAddr {
    SocketAddr::new(address.ip().to_canonical(), address.port())
}

fn in_ipv6(address: SocketAddr) -> SocketAddr {
    match address.ip() {
        IpAddr::V4(ip) => SocketAddr::new(ip.to_ipv6_mapped().into(), address.port()),
        IpAddr::V6(_) => address,
    }
}

#[cfg(test)]
mod tests {
    use proxy_header::ParseConfig;

    use super::*;

    fn sent(remote: Option<&str>, local: Option<&str>) -> Option<(String, String)> {
        let parse = |text: &str| text.parse().unwrap();
        let client = AnnouncedClient {
            remote: remote.map(parse),
            local: local.map(parse),
        };
        let bytes = header(Some(client));
        let (parsed, length) = ProxyHeader::parse(&bytes, ParseConfig::default()).unwrap();
        assert_eq!(length, bytes.len());
        let addresses = parsed.proxied_address()?;
        Some((
            addresses.source.to_string(),
            addresses.destination.to_string(),
        ))
    }

    #[test]
    fn a_header_names_the_client_and_where_it_connected_to() {
        for (remote, local, expected) in [
            (
                Some("192.0.2.1:5000"),
                Some("192.0.2.9:443"),
                Some(("192.0.2.1:5000", "192.0.2.9:443")),
            ),
            (
                Some("[2001:db8::1]:5000"),
                Some("[2001:db8::9]:443"),
                Some(("[2001:db8::1]:5000", "[2001:db8::9]:443")),
            ),
            // A listener for both families.
            (
                Some("[::ffff:192.0.2.1]:5000"),
                Some("[::ffff:192.0.2.9]:443"),
                Some(("192.0.2.1:5000", "192.0.2.9:443")),
            ),
            (
                Some("[2001:db8::1]:0"),
                Some("192.0.2.9:443"),
                Some(("[2001:db8::1]:0", "[::ffff:192.0.2.9]:443")),
            ),
            (
                Some("192.0.2.1:5000"),
                None,
                Some(("192.0.2.1:5000", "0.0.0.0:0")),
            ),
            (None, Some("192.0.2.9:443"), None),
            (None, None, None),
        ] {
            let expected = expected.map(|(a, b)| (a.to_owned(), b.to_owned()));
            assert_eq!(sent(remote, local), expected, "{remote:?} {local:?}");
        }
        // The fixed part of version 2, with the command LOCAL.
        assert_eq!(header(None), b"\r\n\r\n\0\r\nQUIT\n\x20\0\0\0");
    }
}
