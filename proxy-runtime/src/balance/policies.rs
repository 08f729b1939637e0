//! The five policies that every configuration can name.

use std::cmp::Ordering;

use proxy_model::RequestHead;

use super::{Candidates, LoadBalancer};

/// Draws two different candidates by weight, and picks the one with fewer requests in flight per
/// weight; on a tie, the first drawn. At a busy destination each worker compares its own requests
/// only.
///
/// Close to the best choice at the cost of two look-ups. It avoids herds: independent proxies do
/// not all choose the same idle destination.
#[derive(Clone, Copy, Debug, Default)]
pub struct PowerOfTwoChoices;

impl LoadBalancer for PowerOfTwoChoices {
    fn pick(&self, candidates: &Candidates<'_>, _: &dyn RequestHead) -> Option<usize> {
        if candidates.len() < 2 {
            return candidates.len().checked_sub(1);
        }
        let first = candidates.draw();
        let second = candidates.draw_other(first);
        let load = |position| (position, candidates.in_flight_here(position));
        Some(match compare_load(candidates, load(second), load(first)) {
            Ordering::Less => second,
            Ordering::Equal | Ordering::Greater => first,
        })
    }
}

/// Picks each candidate in turn, in the order of the configuration and in proportion to the
/// weights, evenly spread. All workers share one sequence of turns, so the order holds over all
/// connections.
#[derive(Clone, Copy, Debug, Default)]
pub struct RoundRobin;

impl LoadBalancer for RoundRobin {
    fn pick(&self, candidates: &Candidates<'_>, _: &dyn RequestHead) -> Option<usize> {
        (candidates.len() > 0).then(|| candidates.in_turn(candidates.next_turn()))
    }
}

/// Picks the candidate with the fewest requests in flight per weight; on a tie, the first in the
/// configuration.
///
/// Reads the counters of every worker for every candidate, so its cost grows with both numbers.
#[derive(Clone, Copy, Debug, Default)]
pub struct LeastRequests;

impl LoadBalancer for LeastRequests {
    fn pick(&self, candidates: &Candidates<'_>, _: &dyn RequestHead) -> Option<usize> {
        // Each load is read once, since the read is the expensive part.
        let loads =
            (0..candidates.len()).map(|position| (position, candidates.in_flight(position)));
        let least = loads.reduce(
            |least, other| match compare_load(candidates, other, least) {
                Ordering::Less => other,
                Ordering::Equal | Ordering::Greater => least,
            },
        );
        least.map(|(position, _)| position)
    }
}

/// Picks at random, in proportion to the weights: the policy called `Random`.
#[derive(Clone, Copy, Debug, Default)]
pub struct RandomChoice;

impl LoadBalancer for RandomChoice {
    fn pick(&self, candidates: &Candidates<'_>, _: &dyn RequestHead) -> Option<usize> {
        (candidates.len() > 0).then(|| candidates.draw())
    }
}

/// Picks the candidate whose id comes first, ignoring case. The others serve only while it is not
/// available.
#[derive(Clone, Copy, Debug, Default)]
pub struct FirstAlphabetical;

impl LoadBalancer for FirstAlphabetical {
    fn pick(&self, candidates: &Candidates<'_>, _: &dyn RequestHead) -> Option<usize> {
        (candidates.len() > 0).then(|| candidates.first_by_id())
    }
}

/// Compares requests in flight per weight.
#[inline]
fn compare_load(
    candidates: &Candidates<'_>,
    (a, in_flight_a): (usize, u32),
    (b, in_flight_b): (usize, u32),
) -> Ordering {
    // in_flight_a / weight_a <=> in_flight_b / weight_b, without the division.
    let load_a = u64::from(in_flight_a) * u64::from(candidates.weight(b));
    let load_b = u64::from(in_flight_b) * u64::from(candidates.weight(a));
    load_a.cmp(&load_b)
}
