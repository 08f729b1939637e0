//! The five policies that every configuration can name.

use std::cmp::Ordering;

use proxy_model::RequestHead;

use super::{Candidates, LoadBalancer};

/// Two different ones are drawn at random, by weight; the one with fewer requests in flight per weight is picked, the
/// first drawn if they have the same. Of a busy destination each worker compares what came by itself.
///
/// Close to the best choice at the cost of two look-ups, and proof against herds: proxies that do not know of each other
/// do not all run to the same idle destination.
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

/// Each in turn, beginning with the first of the configuration; as often as its weight says, well spread. All workers take
/// from one row of turns, so that the order holds for requests of different connections as well.
#[derive(Clone, Copy, Debug, Default)]
pub struct RoundRobin;

impl LoadBalancer for RoundRobin {
    fn pick(&self, candidates: &Candidates<'_>, _: &dyn RequestHead) -> Option<usize> {
        (candidates.len() > 0).then(|| candidates.in_turn(candidates.next_turn()))
    }
}

/// The one with the fewest requests in flight per weight, the first of the configuration if several have the same.
///
/// It looks at all destinations and at what all workers have in flight there, so its cost grows with both numbers.
#[derive(Clone, Copy, Debug, Default)]
pub struct LeastRequests;

impl LoadBalancer for LeastRequests {
    fn pick(&self, candidates: &Candidates<'_>, _: &dyn RequestHead) -> Option<usize> {
        // Each is looked at once, since the look is what costs.
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

/// One at random, as often as its weight says: the policy called `Random`.
#[derive(Clone, Copy, Debug, Default)]
pub struct RandomChoice;

impl LoadBalancer for RandomChoice {
    fn pick(&self, candidates: &Candidates<'_>, _: &dyn RequestHead) -> Option<usize> {
        (candidates.len() > 0).then(|| candidates.draw())
    }
}

/// The one whose id comes first, ignoring case. The others serve only while it is not available.
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
