//! Trusted proxies, and the client that they report.

use std::fmt;
#[cfg(feature = "server")]
use std::net::{IpAddr, SocketAddr};
use std::num::NonZeroU8;
use std::sync::OnceLock;

use parking_lot::Mutex;

use super::network::Network;

/// The field in which trusted proxies report the client.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ClientField {
    /// `X-Forwarded-For`, with the scheme in `X-Forwarded-Proto`.
    #[default]
    XForwardedFor,
    /// `Forwarded` (RFC 7239).
    Forwarded,
}

/// The proxies that are trusted to report the client of a request. Cheap to copy.
///
/// The lists of a process are kept until it ends: a listener has one, and listeners are few.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct TrustedProxies(NonZeroU8);

#[derive(Debug, PartialEq, Eq)]
struct List {
    networks: Box<[Network]>,
    field: ClientField,
}

/// The most lists of a process.
const MOST: usize = u8::MAX as usize;

/// The lists by their numbers, from 1 on. Read without a lock.
static LISTS: [OnceLock<List>; MOST] = [const { OnceLock::new() }; MOST];

impl TrustedProxies {
    /// The proxies of these networks, which report the client in `field`. `None` if the process has 255 other lists
    /// already.
    pub fn new(networks: impl IntoIterator<Item = Network>, field: ClientField) -> Option<Self> {
        /// Held while a list is looked for, so that no two are added at once.
        static ADDING: Mutex<()> = Mutex::new(());
        let list = List {
            networks: networks.into_iter().collect(),
            field,
        };
        let _adding = ADDING.lock();
        let place = LISTS
            .iter()
            .position(|known| known.get().is_none_or(|known| *known == list))?;
        // Nothing is set if the list is known already.
        let _ = LISTS[place].set(list);
        let number = u8::try_from(place + 1).ok()?;
        NonZeroU8::new(number).map(Self)
    }

    fn list(self) -> &'static List {
        let list = LISTS[usize::from(self.0.get()) - 1].get();
        list.expect("a number is given with its list")
    }

    /// The field in which the proxies report the client.
    #[cfg(feature = "server")]
    pub(crate) fn field(self) -> ClientField {
        self.list().field
    }

    /// Returns true if the address is that of a trusted proxy.
    #[cfg(feature = "server")]
    pub(crate) fn trust(self, address: IpAddr) -> bool {
        let mut networks = self.list().networks.iter();
        networks.any(|network| network.contains(address))
    }

    /// Returns the client that a chain of proxies reports, of which `peer` is the nearest, and the number of entries
    /// that count. `entries` are read from the last one, which `peer` has added: each trusted proxy vouches for the
    /// entry that it has added. The first address that is no trusted proxy's is the client. What is left of it every
    /// client may have written.
    #[cfg(feature = "server")]
    pub(crate) fn client<'a>(
        self,
        peer: SocketAddr,
        entries: impl Iterator<Item = Option<&'a str>>,
    ) -> (SocketAddr, usize) {
        let (mut client, mut count) = (peer, 0);
        for entry in entries {
            if !self.trust(client.ip()) {
                break;
            }
            let Some(address) = entry.and_then(read_node) else {
                // The proxy that wrote this does not say who the client is, so it is the last one that is known.
                break;
            };
            client = address;
            count += 1;
        }
        (client, count)
    }
}

/// Reads an address, with a port or without: `192.0.2.1`, `192.0.2.1:80`, `2001:db8::1`, `[2001:db8::1]:80`. Without a
/// port it is 0.
#[cfg(feature = "server")]
fn read_node(text: &str) -> Option<SocketAddr> {
    let text = text.trim_ascii();
    let address = match text.parse::<IpAddr>() {
        // Port 0 stands for an unknown one.
        Ok(address) => SocketAddr::new(address, 0),
        Err(_) => match text
            .strip_prefix('[')
            .and_then(|rest| rest.strip_suffix(']'))
        {
            Some(address) => SocketAddr::new(IpAddr::V6(address.parse().ok()?), 0),
            None => text.parse().ok()?,
        },
    };
    // Mapped addresses of IPv4 are compared as IPv4.
    Some(SocketAddr::new(address.ip().to_canonical(), address.port()))
}

impl fmt::Debug for TrustedProxies {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.list().fmt(f)
    }
}

#[cfg(all(test, feature = "server"))]
mod tests {
    use super::*;

    fn proxies() -> TrustedProxies {
        let networks = ["10.0.0.0/8", "2001:db8::/32"].map(|text| text.parse().expect("a network"));
        TrustedProxies::new(networks, ClientField::XForwardedFor).expect("a field that is read")
    }

    #[test]
    fn the_client_is_the_first_address_from_the_right_that_is_no_trusted_proxy() {
        for (peer, entries, client, count) in [
            // The connection has no other client, or none is named.
            ("10.0.0.1", "", "10.0.0.1", 0),
            ("192.0.2.1", "6.6.6.6", "192.0.2.1", 0),
            ("10.0.0.1", "192.0.2.1", "192.0.2.1", 1),
            // What the client wrote itself.
            ("10.0.0.1", "6.6.6.6, 192.0.2.1", "192.0.2.1", 1),
            ("10.0.0.1", "10.9.9.9, 192.0.2.1", "192.0.2.1", 1),
            // Several proxies.
            ("10.0.0.1", "6.6.6.6, 192.0.2.1, 10.0.0.2", "192.0.2.1", 2),
            ("10.0.0.1", "192.0.2.1,10.0.0.3,2001:db8::1", "192.0.2.1", 3),
            // All are trusted: the one who began.
            ("10.0.0.1", "10.0.0.3, 10.0.0.2", "10.0.0.3", 2),
            // Ports and forms.
            ("10.0.0.1", "192.0.2.1:4711", "192.0.2.1:4711", 1),
            ("10.0.0.1", "[2001:dead::1]:80", "[2001:dead::1]:80", 1),
            ("10.0.0.1", "[2001:dead::1]", "2001:dead::1", 1),
            ("10.0.0.1", "::ffff:192.0.2.1", "192.0.2.1", 1),
            // An entry without an address ends the search.
            ("10.0.0.1", "192.0.2.1, unknown", "10.0.0.1", 0),
            ("10.0.0.1", "192.0.2.1, _hidden, 10.0.0.2", "10.0.0.2", 1),
            ("10.0.0.1", "192.0.2.1,", "10.0.0.1", 0),
            ("10.0.0.1", "192.0.2.1:", "10.0.0.1", 0),
        ] {
            let peer = read_node(peer).unwrap();
            let list = entries.rsplit(',').map(Some);
            let list = list.take(if entries.is_empty() { 0 } else { usize::MAX });
            let found = proxies().client(peer, list);
            assert_eq!(found, (read_node(client).unwrap(), count), "{entries}");
        }
    }

    #[test]
    fn equal_lists_are_one() {
        let again = proxies();
        assert_eq!(again, proxies());
        let other = TrustedProxies::new([], ClientField::Forwarded).unwrap();
        assert_ne!(again, other);
        assert!(!other.trust("10.0.0.1".parse().unwrap()));
        assert!(format!("{again:?}").contains("10.0.0.0/8"));
    }
}
