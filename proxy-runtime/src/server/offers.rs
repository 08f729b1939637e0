//! Connections that have asked for nothing yet, in the order in which they give way to others.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::num::NonZero;

/// Where a client is, as far as clients that are at one place are counted together: an address of IPv4, and of IPv6 the network of 64
/// bits, of which one client may have all addresses.
///
/// In 64 bits, since each connection has one: no network of IPv6 begins with the 32 bits of 0 that addresses of IPv4 get.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct Source(NonZero<u64>);

impl Source {
    pub(crate) fn new(address: IpAddr) -> Self {
        let number = match address.to_canonical() {
            IpAddr::V4(address) => u64::from(u32::from(address)),
            IpAddr::V6(address) => (u128::from(address) >> 64) as u64,
        };
        Self(NonZero::new(number).unwrap_or(NonZero::<u64>::MAX))
    }

    /// That of a client, all those of which nobody knows where they are being one.
    pub(crate) fn of(remote: Option<SocketAddr>) -> Self {
        let unknown = IpAddr::V4(Ipv4Addr::UNSPECIFIED);
        Self::new(remote.map_or(unknown, |remote| remote.ip()))
    }
}

/// A connection among the offers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Offer {
    source: Source,
    order: u64,
}

/// Connections that have asked for nothing yet. The one to give way is the oldest one of the source that has most of them.
#[derive(Debug, Default)]
pub(crate) struct Offers {
    next: u64,
    /// For each source its connections, the oldest one first, by their places.
    sources: HashMap<Source, BTreeMap<u64, u32>>,
    /// The sources by what they have; the last one gives way.
    ranks: BTreeSet<(usize, Reverse<u64>, Source)>,
}

impl Offers {
    pub(crate) fn is_empty(&self) -> bool {
        self.ranks.is_empty()
    }

    /// Adds the connection that has this place.
    pub(crate) fn add(&mut self, source: Source, place: u32) -> Offer {
        let order = self.next;
        self.next += 1;
        self.change(source, |places| {
            places.insert(order, place);
        });
        Offer { source, order }
    }

    /// Takes one out that asks for something, or has ended.
    pub(crate) fn remove(&mut self, offer: Offer) {
        self.change(offer.source, |places| {
            places.remove(&offer.order);
        });
    }

    /// Takes out the one that is to give way, and returns its place.
    pub(crate) fn take(&mut self) -> Option<u32> {
        let &(_, Reverse(order), source) = self.ranks.last()?;
        let mut taken = None;
        self.change(source, |places| taken = places.remove(&order));
        taken
    }

    fn change(&mut self, source: Source, change: impl FnOnce(&mut BTreeMap<u64, u32>)) {
        let places = self.sources.entry(source).or_default();
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
