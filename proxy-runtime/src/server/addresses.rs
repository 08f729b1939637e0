//! Connection counts per client address.

use std::collections::HashMap;
use std::net::SocketAddr;

use parking_lot::Mutex;

use super::offers::Source;

/// Connection counts per client address, over all workers. Updated when connections open and close,
/// not per request.
#[derive(Debug)]
pub(crate) struct Addresses {
    most: usize,
    counts: Mutex<HashMap<Source, usize>>,
}

impl Addresses {
    /// Sets the maximum per address.
    pub(crate) fn new(most: usize) -> Self {
        Self {
            most,
            counts: Mutex::default(),
        }
    }

    /// Counts a connection. `None` if its address is at the maximum.
    pub(super) fn enter(&self, remote: SocketAddr) -> Option<Source> {
        let source = Source::new(remote.ip());
        let mut counts = self.counts.lock();
        let count = counts.entry(source).or_default();
        if *count >= self.most {
            return None;
        }
        *count += 1;
        Some(source)
    }

    pub(super) fn leave(&self, source: Source) {
        let mut counts = self.counts.lock();
        if let Some(count) = counts.get_mut(&source) {
            *count -= 1;
            // Keeps the map as small as the number of connected addresses.
            if *count == 0 {
                counts.remove(&source);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_address_has_its_own_share() {
        let addresses = Addresses::new(2);
        let one: SocketAddr = "192.0.2.1:1".parse().unwrap();
        let two: SocketAddr = "192.0.2.2:1".parse().unwrap();
        let first = addresses.enter(one).unwrap();
        assert!(addresses.enter(one).is_some());
        assert!(addresses.enter(one).is_none());
        let other = addresses.enter(two).unwrap();
        addresses.leave(first);
        assert!(addresses.enter(one).is_some());
        addresses.leave(first);
        addresses.leave(first);
        addresses.leave(other);
        assert!(addresses.counts.lock().is_empty());
    }
}
