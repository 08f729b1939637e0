//! In-flight responses, which the client has not acknowledged or rejected yet.

use std::collections::VecDeque;
use std::sync::Arc;

use super::Content;
use crate::snapshot::Version;

/// Maximum number of in-flight responses. Beyond it, the oldest are combined.
const FLIGHTS: usize = 8;

#[derive(Debug, Default)]
pub(super) struct InFlight {
    open: VecDeque<Flight>,
}

/// An in-flight response, or several combined ones.
#[derive(Debug)]
pub(super) struct Flight {
    first: u64,
    last: u64,
    pub(super) version: Version,
    /// The names in it, sorted.
    pub(super) names: Vec<Arc<str>>,
    /// The names in it that the client did not have before, sorted.
    pub(super) new: Vec<Arc<str>>,
    /// True if it contains a changed resource that was rejected before.
    pub(super) corrects: bool,
}

impl InFlight {
    /// Adds a response.
    pub(super) fn depart(
        &mut self,
        nonce: u64,
        content: &Content,
        names: Vec<Arc<str>>,
        new: Vec<Arc<str>>,
        corrects: bool,
    ) {
        if self.open.len() == FLIGHTS
            && let Some(oldest) = self.open.pop_front()
            && let Some(next) = self.open.front_mut()
        {
            next.first = oldest.first;
            next.corrects |= oldest.corrects;
            next.names.extend(oldest.names);
            next.names.sort_unstable();
            next.names.dedup();
            next.new.extend(oldest.new);
            next.new.sort_unstable();
            next.new.dedup();
        }
        self.open.push_back(Flight {
            first: nonce,
            last: nonce,
            version: content.version,
            names,
            new,
            corrects,
        });
    }

    /// Removes the response of that nonce as accepted. A combined one stays until the last of its responses
    /// is accepted.
    pub(super) fn accepted(&mut self, nonce: u64) -> Option<Flight> {
        let place = self.open.iter().position(|flight| flight.last == nonce)?;
        self.open.remove(place)
    }

    /// Removes the response of that nonce as rejected, with all that it is combined with.
    pub(super) fn rejected(&mut self, nonce: u64) -> Option<Flight> {
        let place = self
            .open
            .iter()
            .position(|flight| (flight.first..=flight.last).contains(&nonce))?;
        self.open.remove(place)
    }

    /// Returns the names in all in-flight responses.
    pub(super) fn names(&self) -> Vec<Arc<str>> {
        let names = self.open.iter().flat_map(|flight| &flight.names);
        names.cloned().collect()
    }

    /// Returns true if a name of a rejected response has been sent again since. The later response then
    /// counts as correcting it.
    pub(super) fn is_sent_after(&mut self, nonce: u64, name: &Arc<str>) -> bool {
        let mut is_sent = false;
        let later = self.open.iter_mut().filter(|flight| flight.first > nonce);
        for flight in later.filter(|flight| flight.names.binary_search(name).is_ok()) {
            flight.corrects = true;
            is_sent = true;
        }
        is_sent
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn depart(in_flight: &mut InFlight, nonce: u64) {
        let names = vec![Arc::from(format!("n{nonce}"))];
        in_flight.depart(nonce, &Content::default(), names, Vec::new(), false);
    }

    #[test]
    fn of_many_the_oldest_are_one_and_none_is_forgotten() {
        let mut in_flight = InFlight::default();
        for nonce in 1..=10 {
            depart(&mut in_flight, nonce);
        }
        assert_eq!(in_flight.open.len(), FLIGHTS);
        assert!(in_flight.accepted(1).is_none());
        let rejected = in_flight.rejected(2).unwrap();
        let names: Vec<_> = rejected.names.iter().map(|name| &**name).collect();
        assert_eq!(names, ["n1", "n2", "n3"]);
        assert!(in_flight.rejected(3).is_none());
        assert_eq!(in_flight.accepted(4).unwrap().names.len(), 1);
    }

    #[test]
    fn what_was_sent_again_is_known() {
        let mut in_flight = InFlight::default();
        let name: Arc<str> = Arc::from("a");
        for nonce in 1..=2 {
            in_flight.depart(
                nonce,
                &Content::default(),
                vec![Arc::clone(&name)],
                Vec::new(),
                false,
            );
        }
        let rejected = in_flight.rejected(1).unwrap();
        assert!(in_flight.is_sent_after(1, &rejected.names[0]));
        assert!(in_flight.accepted(2).unwrap().corrects);
    }
}
