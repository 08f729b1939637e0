//! The choice of connections to reset when a worker holds too much memory.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap};

use crate::server::offers::Source;

/// A connection that holds memory.
#[derive(Clone, Copy, Debug)]
pub(super) struct Candidate {
    pub(super) source: Source,
    pub(super) bytes: u64,
    /// The time of the last change of `bytes`; larger is later.
    pub(super) turn: u64,
    pub(super) place: usize,
}

impl Candidate {
    /// The rank by magnitude, and among similar connections by the time without progress.
    fn rank(&self) -> (u32, Reverse<u64>) {
        // Connections within a factor of two rank as equal.
        (self.bytes.ilog2(), Reverse(self.turn))
    }
}

/// Returns the slots of the connections to reset for `excess` bytes: repeatedly at the client
/// address that holds the most, the connection that holds the most; among similar ones, the one
/// without progress for the longest time.
pub(super) fn choose(candidates: Vec<Candidate>, excess: u64) -> Vec<usize> {
    let mut sources: HashMap<Source, (u64, Vec<Candidate>)> = HashMap::new();
    for candidate in candidates {
        let (sum, all) = sources.entry(candidate.source).or_default();
        *sum += candidate.bytes;
        all.push(candidate);
    }
    let mut heap = BinaryHeap::new();
    for (source, (sum, all)) in &mut sources {
        // The last connection is reset first.
        all.sort_unstable_by_key(Candidate::rank);
        heap.push((*sum, *source));
    }
    let mut chosen = Vec::new();
    let mut freed = 0;
    while freed < excess
        && let Some((sum, source)) = heap.pop()
    {
        let worst = sources.get_mut(&source).and_then(|(_, all)| all.pop());
        // An address whose connections are all chosen leaves the heap.
        let Some(worst) = worst else { continue };
        freed += worst.bytes;
        chosen.push(worst.place);
        // The address competes again with its remaining connections.
        heap.push((sum - worst.bytes, source));
    }
    chosen
}

#[cfg(test)]
mod tests {
    use super::*;

    fn candidates(all: &[(&str, u64, u64)]) -> Vec<Candidate> {
        let each = all.iter().enumerate();
        each.map(|(place, &(source, bytes, turn))| Candidate {
            source: Source::new(source.parse().unwrap()),
            bytes,
            turn,
            place,
        })
        .collect()
    }

    #[test]
    fn the_greediest_address_loses_first_and_of_it_the_largest_and_oldest() {
        let (greedy, other) = ("192.0.2.1", "192.0.2.2");
        let all = candidates(&[
            (other, 500, 0),
            (greedy, 300, 9),
            (greedy, 310, 3),
            (greedy, 290, 5),
            (greedy, 40, 1),
        ]);
        assert_eq!(choose(all.clone(), 0), [0; 0]);
        assert_eq!(choose(all.clone(), 1), [2], "of about as much the oldest");
        assert_eq!(
            choose(all.clone(), 311),
            [2, 3],
            "630 are still more than 500"
        );
        assert_eq!(choose(all.clone(), 601), [2, 3, 0], "340 are less");
        let mut every = choose(all, u64::MAX);
        every.sort_unstable();
        assert_eq!(every, [0, 1, 2, 3, 4]);
    }
}
