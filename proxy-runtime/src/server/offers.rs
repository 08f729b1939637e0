//! Evictable connections, in the order of their eviction.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::num::NonZero;

/// The origin of a client: an IPv4 address, or an IPv6 /64 network, all addresses of which may
/// belong to one client.
///
/// Fits into 64 bits, since each connection stores one: no IPv6 network begins with the 32 zero
/// bits of an IPv4 address.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct Source(NonZero<u64>);

impl Source {
    pub(crate) fn new(address: IpAddr) -> Self {
        let number = match address.to_canonical() {
            IpAddr::V4(address) => u64::from(u32::from(address)),
            IpAddr::V6(address) => (u128::from(address) >> 64) as u64,
        };
        // Only an unknown address is 0.
        Self(NonZero::new(number).unwrap_or(NonZero::<u64>::MAX))
    }

    /// The source of a client. All clients of unknown address count as one.
    pub(crate) fn of(remote: Option<SocketAddr>) -> Self {
        let unknown = IpAddr::V4(Ipv4Addr::UNSPECIFIED);
        Self::new(remote.map_or(unknown, |remote| remote.ip()))
    }
}

impl fmt::Display for Source {
    /// `192.0.2.7`, and of IPv6 the network: `2001:db8:0:1::/64`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let number = self.0.get();
        match u32::try_from(number) {
            Ok(address) => Ipv4Addr::from(address).fmt(f),
            Err(_) if number == u64::MAX => f.write_str("an unknown address"),
            Err(_) => write!(f, "{}/64", Ipv6Addr::from(u128::from(number) << 64)),
        }
    }
}

/// A connection in the queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Offer {
    source: Source,
    order: u64,
}

/// Connections without a request. The oldest connection of the source with the most of them is
/// evicted first.
#[derive(Debug, Default)]
pub(crate) struct Offers {
    next: u64,
    /// The slots of each source's connections, the oldest first.
    sources: HashMap<Source, BTreeMap<u64, u32>>,
    /// The sources by number of connections; the last one is evicted from.
    ranks: BTreeSet<(usize, Reverse<u64>, Source)>,
}

impl Offers {
    pub(crate) fn is_empty(&self) -> bool {
        self.ranks.is_empty()
    }

    /// Adds the connection in this slot.
    pub(crate) fn add(&mut self, source: Source, place: u32) -> Offer {
        let order = self.next;
        self.next += 1;
        self.change(source, |places| {
            places.insert(order, place);
        });
        Offer { source, order }
    }

    /// Removes a connection that has a request now, or has ended.
    pub(crate) fn remove(&mut self, offer: Offer) {
        self.change(offer.source, |places| {
            places.remove(&offer.order);
        });
    }

    /// Removes the next connection to evict. Returns its slot.
    pub(crate) fn take(&mut self) -> Option<u32> {
        let &(_, Reverse(order), source) = self.ranks.last()?;
        let mut taken = None;
        self.change(source, |places| taken = places.remove(&order));
        taken
    }

    fn change(&mut self, source: Source, change: impl FnOnce(&mut BTreeMap<u64, u32>)) {
        let places = self.sources.entry(source).or_default();
        // The rank depends on the connections, so it is removed before and added again after the
        // change.
        if let Some(rank) = rank(source, places) {
            self.ranks.remove(&rank);
        }
        change(places);
        match rank(source, places) {
            Some(rank) => {
                self.ranks.insert(rank);
            }
            None => {
                self.sources.remove(&source);
            }
        }
    }
}

fn rank(source: Source, places: &BTreeMap<u64, u32>) -> Option<(usize, Reverse<u64>, Source)> {
    let (&oldest, _) = places.first_key_value()?;
    Some((places.len(), Reverse(oldest), source))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn source(text: &str) -> Source {
        Source::new(text.parse().unwrap())
    }

    #[test]
    fn clients_of_one_network_are_one_source() {
        assert_eq!(source("::ffff:192.0.2.1"), source("192.0.2.1"));
        assert_ne!(source("192.0.2.1"), source("192.0.2.2"));
        assert_eq!(source("2001:db8::1"), source("2001:db8::ffff:0:0:2"));
        assert_ne!(source("2001:db8::1"), source("2001:db8:0:1::1"));
    }

    #[test]
    fn the_oldest_of_the_greediest_source_gives_way() {
        let (greedy, other) = (source("192.0.2.1"), source("192.0.2.2"));
        let mut offers = Offers::default();
        assert_eq!(offers.take(), None);
        offers.add(other, 0);
        let gone = offers.add(greedy, 1);
        for place in 2..5 {
            offers.add(greedy, place);
        }
        offers.remove(gone);
        offers.remove(gone);
        offers.add(other, 5);
        assert_eq!(offers.take(), Some(2), "three of one, two of the other");
        assert_eq!(offers.take(), Some(0), "as many: the oldest one");
        let rest: Vec<_> = std::iter::from_fn(|| offers.take()).collect();
        assert_eq!(rest, [3, 4, 5]);
        assert!(offers.is_empty() && offers.sources.is_empty());
    }
}
